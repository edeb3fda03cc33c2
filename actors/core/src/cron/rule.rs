//! One expression, on local time: which readings of a wall clock it means.
//!
//! Owns: `CronRule` and the search for the next and the previous matching local time, each bounded
//! by the months from 1970 to 9998.
//! Must never: know a zone or a policy; that is `plan`.

use super::dates::{Dates, Years};
use super::days::DayTable;
use super::hash::HashSeed;
use super::item::{self, FieldValues};
use super::times::Times;
use super::token::{self, Token, Tokens};
use super::{CronError, CronErrorKind, CronField};
use crate::zone::LocalSeconds;

/// A parsed expression. `text` is what the user wrote, `plain` means the same without `H` and macros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronRule {
    text: String,
    plain: String,
    notes: Vec<String>,
    wildcard: bool,
    times: Times,
    dates: Dates,
}

/// The two ends of a search: the first local second of 1970 and the first of 9999.
const LOCAL_MIN: LocalSeconds = LocalSeconds(0);
const LOCAL_END: LocalSeconds = LocalSeconds(253_370_764_800);

impl CronRule {
    /// Reads an expression; `H` is drawn from the seed.
    pub fn parse(text: &str, seed: HashSeed) -> Result<Self, CronError> {
        let tokens = token::split(text)?;
        let parsed = Parsed::read(&tokens, seed)?;
        let Some(dates) = parsed.dates()? else {
            return Err(parsed.never(&tokens)?);
        };
        let Parsed { fields, plus, .. } = &parsed;
        let [second, minute, hour, ..] = fields;
        let mut words: Vec<String> = fields.iter().map(|field| field.plain.clone()).collect();
        if let (true, Some(weekday)) = (*plus, words.get_mut(5)) {
            weekday.insert(0, '+');
        }
        let given = match tokens.given {
            5 => words.get(1..6),
            6 => words.get(..6),
            _ => Some(words.as_slice()),
        };
        Ok(Self {
            text: text.trim_matches([' ', '\t']).to_owned(),
            plain: given.unwrap_or_default().join(" "),
            notes: fields.iter().flat_map(|field| field.notes.clone()).collect(),
            wildcard: [second, minute, hour].iter().any(|field| field.plain.starts_with('*')),
            times: Times {
                seconds: second.bits(),
                minutes: minute.bits(),
                hours: hour.bits(),
            },
            dates,
        })
    }

    /// The expression as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same rule without `H` and macros; it reads back as the same rule with any seed.
    pub fn plain(&self) -> &str {
        &self.plain
    }

    /// Whether the name of its schedule decides some of its times.
    pub fn has_h(&self) -> bool {
        super::has_h(&self.text)
    }

    /// What was accepted but may surprise, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// A wildcard rule fires at every real instant whose local time matches; any other is
    /// fixed-time and follows the gap and overlap policies.
    pub fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    /// Whether it means this local time.
    pub fn matches(&self, local: LocalSeconds) -> bool {
        self.next_local(local) == Some(local)
    }

    /// The first matching local time at or after one.
    pub fn next_local(&self, from: LocalSeconds) -> Option<LocalSeconds> {
        let from = from.max(LOCAL_MIN);
        if from >= LOCAL_END {
            return None;
        }
        let day = from.date();
        let date = self.dates.next(day)?;
        if date > day {
            return Some(LocalSeconds::new(date, self.times.first()));
        }
        if let Some(second) = self.times.next(from.second_of_day()) {
            return Some(LocalSeconds::new(day, second));
        }
        let date = self.dates.next(day.succ_opt()?)?;
        Some(LocalSeconds::new(date, self.times.first()))
    }

    /// The last matching local time before one.
    pub fn previous_local(&self, before: LocalSeconds) -> Option<LocalSeconds> {
        let last = LocalSeconds(before.min(LOCAL_END).0 - 1);
        if last < LOCAL_MIN {
            return None;
        }
        let day = last.date();
        let date = self.dates.previous(day)?;
        if date < day {
            return Some(LocalSeconds::new(date, self.times.last()));
        }
        if let Some(second) = self.times.previous(last.second_of_day()) {
            return Some(LocalSeconds::new(day, second));
        }
        let date = self.dates.previous(day.pred_opt()?)?;
        Some(LocalSeconds::new(date, self.times.last()))
    }

    /// How many matching local times lie from `from` up to, but not including, `until`.
    pub fn count_local(&self, from: LocalSeconds, until: LocalSeconds) -> u64 {
        let (from, until) = (from.max(LOCAL_MIN), until.min(LOCAL_END));
        if from >= until {
            return 0;
        }
        let (first, end) = (from.date(), until.date());
        let whole = self.dates.count(first, end) * self.times.per_day();
        let early = |local: LocalSeconds| match self.dates.contains(local.date()) {
            true => self.times.count_before(local.second_of_day()),
            false => 0,
        };
        whole + early(until) - early(from)
    }
}

/// The seven fields read, before it is known whether any date fits.
struct Parsed {
    fields: [FieldValues; 7],
    plus: bool,
    both: bool,
}

impl Parsed {
    fn read(tokens: &Tokens, seed: HashSeed) -> Result<Self, CronError> {
        let mut plus = false;
        let mut fields: [FieldValues; 7] = Default::default();
        for ((token, field), slot) in tokens.fields.iter().zip(CronField::ALL).zip(&mut fields) {
            let mut token = token.clone();
            if field == CronField::DayOfWeek {
                plus = strip_plus(&mut token)?;
            }
            let days = matches!(field, CronField::DayOfMonth | CronField::DayOfWeek);
            if days && token.text == "?" {
                token.text = "*".to_owned();
            }
            *slot = item::parse(field, &token, seed)?;
        }
        let [_, _, _, dom, _, dow, _] = &fields;
        let both = plus || dom.plain.starts_with('*') || dow.plain.starts_with('*');
        Ok(Self { fields, plus, both })
    }

    /// The dates that fit; `None` if there are none.
    fn dates(&self) -> Result<Option<Dates>, CronError> {
        let [_, _, _, dom, month, dow, year] = &self.fields;
        let days = DayTable::build(dom, dow, self.both).map_err(|reason| CronError {
            kind: CronErrorKind::Matcher,
            field: CronField::Expression,
            position: 0,
            message: format!("expression: the date matcher refused the days: {reason}"),
            hint: "please report this expression; as a way round, use several simpler ones".to_owned(),
        })?;
        let dates = Dates {
            days,
            months: month.bits(),
            years: Years::of(year),
        };
        let begin = LOCAL_MIN.date();
        Ok(dates.next(begin).is_some().then_some(dates))
    }

    /// The refusal that names the field without which dates would fit.
    fn never(&self, tokens: &Tokens) -> Result<CronError, CronError> {
        let mut blamed = CronField::DayOfMonth;
        let suspects = [
            CronField::Year,
            CronField::DayOfMonth,
            CronField::DayOfWeek,
            CronField::Month,
        ];
        for field in suspects {
            let mut fields = self.fields.clone();
            let index = CronField::ALL.iter().position(|other| *other == field);
            let star = Token {
                text: "*".to_owned(),
                at: 0,
            };
            let Some(slot) = index.and_then(|index| fields.get_mut(index)) else {
                continue;
            };
            *slot = item::parse(field, &star, HashSeed(0))?;
            if (Self { fields, ..*self }).dates()?.is_some() {
                blamed = field;
                break;
            }
        }
        let index = CronField::ALL.iter().position(|other| *other == blamed).unwrap_or(0);
        Ok(CronError {
            kind: CronErrorKind::Never,
            field: blamed,
            position: tokens.fields.get(index).map_or(0, |token| token.at),
            message: format!("{}: never matches a calendar date", blamed.name()),
            hint: "check the day against the months and years; L means the last day of a month".to_owned(),
        })
    }
}

fn strip_plus(token: &mut Token) -> Result<bool, CronError> {
    let Some(rest) = token.text.strip_prefix('+') else {
        return Ok(false);
    };
    if rest.is_empty() {
        return Err(CronError {
            kind: CronErrorKind::LonelyPlus,
            field: CronField::DayOfWeek,
            position: token.at,
            message: "day-of-week: + without a value".to_owned(),
            hint: "write +5 for Fridays that also match day-of-month".to_owned(),
        });
    }
    *token = Token {
        text: rest.to_owned(),
        at: token.at + 1,
    };
    Ok(true)
}
