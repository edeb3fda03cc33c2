//! The POSIX rule that zone data ends with: `EST5EDT,M3.2.0,M11.1.0`.
//!
//! Owns: reading the rule (with the extensions of RFC 8536: hours up to 167, negative times,
//! names in angle brackets) and the segments that it makes.
//! Must never: be asked about instants before the last stored change.

use chrono::{Datelike, Days, NaiveDate};

use super::{LocalSeconds, OFFSET_BOUND_SECONDS, Segment, UnixSeconds};

/// The whole rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Footer {
    /// One offset for ever, or no rule at all: the last stored offset stays.
    Fixed,
    /// Two changes a year.
    Yearly(Yearly),
}

/// Two offsets and the days on which they follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Yearly {
    standard: i32,
    summer: i32,
    /// When `summer` begins, on the clock of `standard`.
    start: YearDay,
    /// When `standard` begins, on the clock of `summer`.
    end: YearDay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct YearDay {
    day: DayRule,
    /// Seconds after that day's midnight; may be negative or longer than a day.
    time: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayRule {
    /// `Jn`: day 1 to 365, 29 February never counted.
    Julian(u16),
    /// `n`: day 0 to 365, 29 February counted.
    ZeroBased(u16),
    /// `Mm.w.d`: week 1 to 5 (5 is the last) of a month, weekday 0 is Sunday.
    Weekday { month: u8, week: u8, weekday: u8 },
}

impl Footer {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Ok(Self::Fixed);
        }
        let mut cursor = Cursor { rest: text };
        cursor.name()?;
        let standard = -cursor.time(24)?;
        if cursor.rest.is_empty() {
            return Ok(Self::Fixed);
        }
        cursor.name()?;
        let summer = match cursor.rest.starts_with(',') {
            true => standard + 3600,
            false => -cursor.time(24)?,
        };
        let start = cursor.year_day()?;
        let end = cursor.year_day()?;
        if !cursor.rest.is_empty() {
            return Err("text after the footer rule");
        }
        Ok(Self::Yearly(Yearly {
            standard,
            summer,
            start,
            end,
        }))
    }

    /// The rule, if it makes clock changes: some only say that summer time stays for ever.
    pub(super) fn changing(self) -> Option<Yearly> {
        match self {
            Self::Fixed => None,
            Self::Yearly(rule) => (rule.changes_around(2001).len() == 6).then_some(rule),
        }
    }
}

impl Yearly {
    /// The segment of an instant. `last` is the one after the last stored change of offset; the
    /// rule counts only after `since`, which may be later (a stored change can be of name only).
    pub(super) fn segment_at(&self, at: UnixSeconds, last: Segment, since: UnixSeconds) -> Segment {
        let year = LocalSeconds(at.max(since).0).year();
        let mut segment = last;
        for (change, offset) in self.changes_around(year) {
            if change <= since || offset == segment.offset {
                continue;
            }
            if change > at {
                segment.end = change;
                break;
            }
            segment = Segment {
                start: change,
                end: UnixSeconds::END,
                offset,
            };
        }
        segment
    }

    /// The changes of a year and of its neighbours, ascending, none without an effect.
    fn changes_around(&self, year: i32) -> Vec<(UnixSeconds, i32)> {
        let mut all = Vec::with_capacity(6);
        for year in [year - 1, year, year + 1] {
            all.push((self.start.instant(year, self.standard), self.summer));
            all.push((self.end.instant(year, self.summer), self.standard));
        }
        // Summer time that ends in the instant it starts again never ended.
        all.sort_by_key(|(at, offset)| (*at, *offset == self.summer));
        let mut kept: Vec<(UnixSeconds, i32)> = Vec::with_capacity(6);
        for (index, (at, offset)) in all.iter().enumerate() {
            let replaced = all.get(index + 1).is_some_and(|(next, _)| next == at);
            let same = kept.last().is_some_and(|(_, before)| before == offset);
            if !replaced && !same {
                kept.push((*at, *offset));
            }
        }
        kept
    }
}

impl YearDay {
    fn instant(&self, year: i32, offset: i32) -> UnixSeconds {
        let midnight = LocalSeconds::midnight(self.day.date(year)).0;
        UnixSeconds(midnight + i64::from(self.time) - i64::from(offset))
    }
}

impl DayRule {
    fn date(self, year: i32) -> NaiveDate {
        let date = match self {
            Self::Julian(day) => {
                let leap = NaiveDate::from_ymd_opt(year, 2, 29).is_some();
                NaiveDate::from_yo_opt(year, u32::from(day) + u32::from(leap && day > 59))
            }
            Self::ZeroBased(day) => {
                NaiveDate::from_yo_opt(year, 1).and_then(|first| first.checked_add_days(Days::new(u64::from(day))))
            }
            Self::Weekday { month, week, weekday } => week_day(year, month, week, weekday),
        };
        date.unwrap_or(NaiveDate::MAX)
    }
}

fn week_day(year: i32, month: u8, week: u8, weekday: u8) -> Option<NaiveDate> {
    let first = NaiveDate::from_ymd_opt(year, u32::from(month), 1)?;
    let ahead = (7 + u32::from(weekday) - first.weekday().num_days_from_sunday()) % 7;
    let day = 1 + ahead + 7 * (u32::from(week) - 1);
    first.with_day(day).or_else(|| first.with_day(day - 7))
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn name(&mut self) -> Result<(), &'static str> {
        let length = if self.eat('<') {
            self.rest.find('>').ok_or("an open bracket in the footer")?
        } else {
            self.rest
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(self.rest.len())
        };
        if length < 3 {
            return Err("a name in the footer is too short");
        }
        self.rest = self.rest.get(length..).ok_or("a broken name in the footer")?;
        self.eat('>');
        Ok(())
    }

    fn number(&mut self, max: u16) -> Result<u16, &'static str> {
        let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at_checked(digits).ok_or("a broken number")?;
        let number = number.parse().map_err(|_| "the footer lacks a number")?;
        self.rest = rest;
        if number > max {
            Err("a footer number out of range")
        } else {
            Ok(number)
        }
    }

    /// `[+-]hh[:mm[:ss]]` in seconds.
    fn time(&mut self, hours_max: u16) -> Result<i32, &'static str> {
        let negative = !self.eat('+') && self.eat('-');
        let mut seconds = i32::from(self.number(hours_max)?) * 3600;
        if self.eat(':') {
            seconds += i32::from(self.number(59)?) * 60;
            if self.eat(':') {
                seconds += i32::from(self.number(59)?);
            }
        }
        debug_assert!(i64::from(seconds) < OFFSET_BOUND_SECONDS * 7);
        Ok(if negative { -seconds } else { seconds })
    }

    fn year_day(&mut self) -> Result<YearDay, &'static str> {
        if !self.eat(',') {
            return Err("the footer lacks a date");
        }
        let day = self.day()?;
        let time = if self.eat('/') { self.time(167)? } else { 2 * 3600 };
        Ok(YearDay { day, time })
    }

    fn day(&mut self) -> Result<DayRule, &'static str> {
        if self.eat('J') {
            return match self.number(365)? {
                0 => Err("day J0 in the footer"),
                day => Ok(DayRule::Julian(day)),
            };
        }
        if !self.eat('M') {
            return Ok(DayRule::ZeroBased(self.number(365)?));
        }
        let month = self.number(12)?;
        let week = if self.eat('.') { self.number(5)? } else { 0 };
        let weekday = if self.eat('.') {
            self.number(6)?
        } else {
            return Err("a broken M day");
        };
        if month == 0 || week == 0 {
            return Err("month or week 0 in the footer");
        }
        let small = |number: u16| u8::try_from(number).map_err(|_| "a huge number");
        Ok(DayRule::Weekday {
            month: small(month)?,
            week: small(week)?,
            weekday: small(weekday)?,
        })
    }
}
