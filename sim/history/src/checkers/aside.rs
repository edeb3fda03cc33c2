//! What waits for a person by rule: schedules in whose own trials owners ended (PROTOCOL F9).
//!
//! Owns: when that is explained by what befell the run. Must never: ask the product why. Next: `settles.rs`.

use super::Evidence;
use fencepost_core::row::{QuarantineRow, Row};

/// Owners that end before a schedule is put aside: one among all of its shard, two in trials of its own.
const OWNERS_LOST: usize = 3;

/// The name of the schedule that a row puts aside because owners ended while they tried it alone.
pub(super) fn name_of(row: &QuarantineRow) -> Option<&str> {
    let key = std::str::from_utf8(&row.key).ok()?;
    let mut parts = key.strip_prefix("schedule/")?.split('/');
    let name = parts.nth(1)?;
    (row.deaths + 1 >= u32::try_from(OWNERS_LOST).ok()?).then_some(name)
}

/// Whether the run had killed owners enough by then.
pub(super) fn is_explained(evidence: &Evidence<'_>, by: i64) -> bool {
    let by = by - evidence.setting.starts_at;
    let deaths = evidence.seen.disturbances.iter();
    let deaths = deaths.filter(|one| matches!(one.kind, "down" | "second-down") && one.from.cast_signed() <= by);
    deaths.count() >= OWNERS_LOST
}

/// The schedules that are put aside at the end.
pub(super) fn names(rows: &[Row]) -> impl Iterator<Item = (&str, &QuarantineRow)> {
    rows.iter().filter_map(|row| match row {
        Row::Quarantine(row) => Some((name_of(row)?, &**row)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::name_of;
    use fencepost_core::ids::ShardId;
    use fencepost_core::row::QuarantineRow;
    use fencepost_core::time::StoreTime;

    fn row(key: &str, deaths: u32) -> QuarantineRow {
        QuarantineRow {
            shard: ShardId(0),
            key: key.as_bytes().into(),
            reason: "why".into(),
            at: StoreTime(0),
            deaths,
        }
    }

    #[test]
    fn only_what_owners_died_of_waits_for_a_person() {
        assert_eq!(name_of(&row("schedule/default/daily/3", 2)), Some("daily"));
        for (key, deaths) in [
            ("schedule/default/daily/3", 0),
            ("schedule/default/daily/3", 1),
            ("past/default/daily/3", 2),
            ("trying/default/daily/3", 2),
            ("owner", 2),
        ] {
            assert_eq!(name_of(&row(key, deaths)), None, "{key} {deaths}");
        }
    }
}
