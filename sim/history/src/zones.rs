//! Zones as this simulator understands them: an offset, and at most one clock change in a run's year.
//!
//! Owns: the changes that a run may begin next to, worked out by hand from the published rules. Must
//! never: ask the product's zone data. Next: `rules.rs`.

/// A zone in which the clocks change at most once in the time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainZone {
    /// Its name.
    pub name: &'static str,
    /// Seconds east of UTC before the change.
    pub before: i64,
    /// Seconds east of UTC from the change on.
    pub after: i64,
    /// When the clocks change, in microseconds since the Unix epoch.
    pub changes_at: i64,
}

const fn steady(name: &'static str, minutes: i64) -> PlainZone {
    PlainZone {
        name,
        before: minutes * 60,
        after: minutes * 60,
        changes_at: 0,
    }
}

const fn changing(name: &'static str, (before, after): (i64, i64), changes_at: i64) -> PlainZone {
    PlainZone {
        name,
        before: before * 60,
        after: after * 60,
        changes_at: changes_at * 1_000_000,
    }
}

/// Zones whose clocks never change.
pub const STEADY: [PlainZone; 3] = [steady("UTC", 0), steady("Asia/Kolkata", 330), steady("Asia/Tokyo", 540)];

/// Changes of the year 2026.
pub const CHANGES: [PlainZone; 6] = [
    // 29 March, 02:00 becomes 03:00; 25 October, 03:00 becomes 02:00.
    changing("Europe/Berlin", (60, 120), 1_774_746_000),
    changing("Europe/Berlin", (120, 60), 1_792_890_000),
    // 8 March, 02:00 becomes 03:00; 1 November, 02:00 becomes 01:00.
    changing("America/New_York", (-300, -240), 1_772_953_200),
    changing("America/New_York", (-240, -300), 1_793_512_800),
    // Half an hour: 5 April, 02:00 becomes 01:30; 4 October, 02:00 becomes 02:30.
    changing("Australia/Lord_Howe", (660, 630), 1_775_314_800),
    changing("Australia/Lord_Howe", (630, 660), 1_791_041_400),
];

/// Further changes of 2026 with odd rules, which runs begin before only when a scenario says so.
const ODD: [PlainZone; 6] = [
    // At midnight itself: 24 April, 00:00 becomes 01:00; 30 October, 00:00 becomes 23:00 of the day before.
    changing("Africa/Cairo", (120, 180), 1_776_981_600),
    changing("Africa/Cairo", (180, 120), 1_793_307_600),
    // At a quarter: 5 April, 03:45 becomes 02:45; 27 September, 02:45 becomes 03:45.
    changing("Pacific/Chatham", (825, 765), 1_775_311_200),
    changing("Pacific/Chatham", (765, 825), 1_790_431_200),
    // Two hours: 29 March, 01:00 becomes 03:00; 25 October, 03:00 becomes 01:00.
    changing("Antarctica/Troll", (0, 120), 1_774_746_000),
    changing("Antarctica/Troll", (120, 0), 1_792_890_000),
];

/// Where a run may begin, by the words of a scenario: on any day, before any midnight, before a change.
pub const CHANGE_NAMES: &[&str] = &[
    "any",
    "midnight",
    "berlin-spring",
    "berlin-autumn",
    "new-york-spring",
    "new-york-autumn",
    "lord-howe-autumn",
    "lord-howe-spring",
    "cairo-spring",
    "cairo-autumn",
    "chatham-autumn",
    "chatham-spring",
    "troll-spring",
    "troll-autumn",
];

/// Zones that a scenario may name.
pub const ZONE_NAMES: &[&str] = &[
    "UTC",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Pacific/Chatham",
    "Antarctica/Troll",
];

/// A change by its number: those of `CHANGES`, then the odd ones.
pub fn change(number: usize) -> Option<PlainZone> {
    CHANGES.iter().chain(&ODD).nth(number).copied()
}

/// The number of the change that a word names.
pub fn change_number(word: &str) -> Option<usize> {
    let at = CHANGE_NAMES.iter().position(|name| *name == word)?;
    at.checked_sub(2)
}

/// The change that a word names.
pub fn change_of(word: &str) -> Option<PlainZone> {
    change_number(word).and_then(change)
}

/// Whether clocks change in a zone.
pub fn changes_clocks(zone: &str) -> bool {
    CHANGES.iter().chain(&ODD).any(|change| change.name == zone)
}

impl PlainZone {
    /// Whether clocks show this second of the zone twice.
    pub fn is_twice(&self, at: i64) -> bool {
        self.before != self.after && self.instants_of(self.local(at)).len() == 2
    }

    /// Seconds east of UTC at an instant in microseconds.
    pub fn offset_at(&self, at: i64) -> i64 {
        if at < self.changes_at { self.before } else { self.after }
    }

    /// Local seconds at an instant.
    pub fn local(&self, at: i64) -> i64 {
        at.div_euclid(1_000_000) + self.offset_at(at)
    }

    /// Local date as days since 1970.
    pub fn day(&self, at: i64) -> i64 {
        self.local(at).div_euclid(86_400)
    }

    /// The instants at which clocks show this local second: none, one, or two.
    pub fn instants_of(&self, local: i64) -> Vec<i64> {
        let mut found: Vec<i64> = [self.before, self.after]
            .into_iter()
            .map(|offset| ((local - offset) * 1_000_000, offset))
            .filter(|(at, offset)| self.offset_at(*at) == *offset)
            .map(|(at, _)| at)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_has_its_word() {
        assert_eq!(CHANGE_NAMES.len(), 2 + CHANGES.len() + ODD.len());
        for word in CHANGE_NAMES.iter().skip(2) {
            let zone = change_of(word).unwrap();
            let place = zone.name.rsplit('/').next().unwrap().to_lowercase().replace('_', "-");
            assert!(word.starts_with(&place), "{word}: {zone:?}");
            assert!(ZONE_NAMES.contains(&zone.name) && changes_clocks(zone.name));
        }
        assert_eq!(change_of("any"), None);
        assert!(STEADY.iter().all(|zone| !changes_clocks(zone.name)));
    }

    #[test]
    fn a_local_second_exists_never_once_or_twice() {
        let (spring, autumn) = (CHANGES[0], CHANGES[1]);
        let local = |zone: &PlainZone, shift: i64| zone.changes_at / 1_000_000 + zone.before + shift;
        assert!(spring.instants_of(local(&spring, 1)).is_empty());
        assert_eq!(spring.instants_of(local(&spring, -1)).len(), 1);
        assert_eq!(spring.instants_of(local(&spring, 3_600)), [spring.changes_at]);
        assert_eq!(autumn.instants_of(local(&autumn, -1)).len(), 2);
        assert_eq!(autumn.instants_of(local(&autumn, 0)).len(), 1);
    }
}
