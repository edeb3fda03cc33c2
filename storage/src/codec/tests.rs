//! Round trips, refusals and size of encoded rows.

use super::arbitrary;
use super::samples;
use super::*;
use crate::keys::key_bytes;
use fencepost_core::level::Level;
use fencepost_core::machine::{Expect, Write};
use proptest::prelude::*;

fn encoded(row: &Row) -> (Vec<u8>, Vec<u8>) {
    let mut value = Vec::new();
    encode_row(row, &mut value);
    (key_bytes(&row.key()), value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_row_comes_back_as_it_went(row in arbitrary::row()) {
        let (key, value) = encoded(&row);
        prop_assert_eq!(decode_row(&key, &value), Ok(row));
    }

    #[test]
    fn a_row_cut_short_or_made_longer_is_an_error(row in arbitrary::row(), cut in any::<prop::sample::Index>()) {
        let (key, mut value) = encoded(&row);
        let short = &value[..cut.index(value.len())];
        // A wait row's length is its optional tail: without it, it is a row of its own.
        if !matches!(row, Row::Wait(_)) {
            prop_assert!(decode_row(&key, short).is_err());
        }
        value.extend_from_slice(&[0, 0]);
        prop_assert!(decode_row(&key, &value).is_err());
    }

    #[test]
    fn a_damaged_row_is_decoded_or_refused_but_never_panics(
        row in arbitrary::row(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (key, mut value) = encoded(&row);
        for (place, byte) in &flips {
            let place = place.index(value.len());
            value[place] = *byte;
        }
        if let Ok(read) = decode_row(&key, &value) {
            let (key_again, value_again) = encoded(&read);
            prop_assert_eq!(&key_again, &key);
            prop_assert_eq!(decode_row(&key_again, &value_again), Ok(read));
        }
        let mut bad_key = key;
        for (place, byte) in &flips {
            let place = place.index(bad_key.len());
            bad_key[place] = *byte;
        }
        let _ = decode_row(&bad_key, &value);
    }

    #[test]
    fn random_bytes_never_panic(kind in any::<u8>(), key in prop::collection::vec(any::<u8>(), 0..60), value in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut named = vec![kind];
        named.extend_from_slice(&key);
        let _ = decode_row(&named, &value);
        let _ = decode_scope(&named, &value);
        let _ = version_of(&named, &value);
    }

    #[test]
    fn random_fields_under_a_good_key_never_panic(row in arbitrary::row(), tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut value = vec![ROW_VERSION];
        value.extend_from_slice(&tail);
        let _ = decode_row(&key_bytes(&row.key()), &value);
    }

    #[test]
    fn the_version_of_a_job_is_read_without_decoding(job in arbitrary::job()) {
        let (key, value) = encoded(&Row::Job(Box::new(job.clone())));
        prop_assert_eq!(version_of(&key, &value), Some(job.version));
    }
}

#[test]
fn a_row_of_a_later_format_is_refused_as_newer() {
    for row in samples::rows() {
        let (key, mut value) = encoded(&row);
        value[0] = JOB_ROW_VERSION + 1;
        assert_eq!(decode_row(&key, &value), Err(RowError::Newer(JOB_ROW_VERSION + 1)));
    }
}

#[test]
fn a_cell_of_a_level_that_is_not_known_is_refused_by_its_number() {
    let Row::Cell(cell) = &samples::rows()[0] else {
        panic!("the first sample is a cell");
    };
    let at = |level| encoded(&Row::Cell(fencepost_core::row::CellRow { level, ..cell.clone() }));
    let (key, second) = at(Level(2));
    assert!(matches!(decode_row(&key, &second), Ok(Row::Cell(cell)) if cell.level == Level(2)));
    assert_eq!(
        (second[0], at(Level(1)).1[0]),
        (2, 1),
        "the first level is as it always was"
    );
    let refused = decode_row(&key, &at(Level(3)).1).unwrap_err();
    assert_eq!(refused, RowError::Level(Level(3)));
    assert!(refused.to_string().contains("levels up to 2"), "{refused}");
}

#[test]
fn a_length_beyond_the_row_is_refused_before_anything_is_allocated() {
    let (key, _) = encoded(&Row::Job(Box::new(samples::small_job(0))));
    // Version, job version, flags, state, time, then a payload of 2^64 - 1 bytes.
    let mut value = vec![ROW_VERSION];
    value.extend_from_slice(&1_u64.to_be_bytes());
    value.extend_from_slice(&[0, 0, 0, 0, 1, 253]);
    value.extend_from_slice(&[0xff; 8]);
    assert!(matches!(decode_row(&key, &value), Err(RowError::Undecodable(_))));
    let long = vec![ROW_VERSION; fencepost_core::limits::ROW_BYTES_MAX + 1];
    assert_eq!(decode_row(&key, &long), Err(RowError::TooLong(long.len())));
}

#[test]
fn a_small_pending_job_takes_at_most_120_bytes() {
    for payload in [0, 30] {
        let job = samples::small_job(payload);
        let wait = samples::wait_of(&job);
        let total: usize = [Row::Job(Box::new(job)), wait]
            .iter()
            .map(encoded)
            .map(|(key, value)| key.len() + value.len())
            .sum();
        assert!(total <= 120, "{payload} bytes of payload make rows of {total} bytes");
    }
}

#[test]
fn the_digest_covers_keys_values_order_and_conditions() {
    let rows = samples::rows();
    let put = |row: &Row, expect| Write::Put {
        row: row.clone(),
        expect,
    };
    let batches = [
        vec![put(&rows[0], Expect::Any), put(&rows[1], Expect::Any)],
        vec![put(&rows[1], Expect::Any), put(&rows[0], Expect::Any)],
        vec![put(&rows[0], Expect::Absent), put(&rows[1], Expect::Any)],
        vec![put(&rows[0], Expect::Version(0)), put(&rows[1], Expect::Any)],
        vec![put(&rows[0], Expect::Version(1)), put(&rows[1], Expect::Any)],
        vec![put(&rows[0], Expect::Any), Write::Delete(rows[1].key())],
        vec![put(&rows[0], Expect::Any)],
    ];
    let digests: std::collections::BTreeSet<[u8; 32]> = batches
        .iter()
        .map(|writes| encode_batch(writes, true).unwrap().digest)
        .collect();
    assert_eq!(digests.len(), batches.len());
    let again = encode_batch(&batches[0], true).unwrap();
    assert_eq!(digest_of(&again.writes), (again.digest, again.bytes));
}

#[test]
fn an_oversize_row_is_refused_by_the_encoder() {
    let mut job = samples::small_job(0);
    job.reason = Some("x".repeat(fencepost_core::limits::ROW_BYTES_MAX).as_str().into());
    let write = Write::Put {
        row: Row::Job(Box::new(job)),
        expect: Expect::Any,
    };
    assert_eq!(encode_batch(&[write], true).unwrap_err().kind, crate::keys::Kind::Job);
}
