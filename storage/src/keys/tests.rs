//! Order, round trip and bounds of keys.

use super::*;
use crate::codec::arbitrary;
use fencepost_core::ids::ShardMap;
use proptest::prelude::*;

fn key() -> impl Strategy<Value = RowKey> {
    arbitrary::row().prop_map(|row| row.key())
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_key_comes_back_as_it_went(key in key()) {
        prop_assert_eq!(parse_key(&key_bytes(&key)), Ok(key));
    }

    #[test]
    fn byte_order_is_row_order_within_a_kind(mut keys in prop::collection::vec(key(), 2..40)) {
        keys.sort_by(|a, b| Kind::of_row(a).cmp(&Kind::of_row(b)).then_with(|| a.cmp(b)));
        let bytes: Vec<Vec<u8>> = keys.iter().map(key_bytes).collect();
        for (pair, names) in bytes.windows(2).zip(keys.windows(2)) {
            prop_assert!(pair[0] <= pair[1], "{:?} lies after {:?}", names[0], names[1]);
        }
    }

    #[test]
    fn ready_rows_are_ordered_by_class_priority_and_time(mut rows in prop::collection::vec(arbitrary::ready(), 2..40)) {
        rows.sort();
        let bytes: Vec<Vec<u8>> = rows.iter().map(|row| key_bytes(&RowKey::Ready(row.clone()))).collect();
        prop_assert!(bytes.is_sorted());
    }

    #[test]
    fn a_class_holds_its_own_rows_and_no_others(row in arbitrary::ready(), other in arbitrary::ready()) {
        let range = KeyRange::ready_class(row.shard, &row.queue, &row.tenant);
        prop_assert!(range.contains(&key_bytes(&RowKey::Ready(row.clone()))));
        let is_same = (other.shard, &other.queue, &other.tenant) == (row.shard, &row.queue, &row.tenant);
        prop_assert_eq!(range.contains(&key_bytes(&RowKey::Ready(other))), is_same);
    }

    #[test]
    fn a_slot_range_holds_exactly_the_jobs_of_its_slots(id in arbitrary::job_id(), shards in 1_u16..=256) {
        let map = ShardMap::new(shards).unwrap();
        let owner = map.shard_of(id.slot());
        for shard in map.shards() {
            let range = KeyRange::jobs(map.slots_of(shard));
            prop_assert_eq!(range.contains(&key_bytes(&RowKey::Job(id))), shard == owner);
        }
    }

    #[test]
    fn a_job_has_its_own_pages_of_attempts(id in arbitrary::job_id(), other in arbitrary::job_id(), from in 0_u32..9) {
        let range = KeyRange::attempts(id, from);
        for page in [0, from, from + 1, u32::MAX] {
            prop_assert_eq!(range.contains(&key_bytes(&RowKey::Attempts(id, page))), page >= from);
            prop_assert_eq!(range.contains(&key_bytes(&RowKey::Attempts(other, page))), other == id && page >= from);
        }
    }

    #[test]
    fn a_shard_has_its_own_waiting_jobs(at in arbitrary::time(), id in arbitrary::job_id()) {
        let range = KeyRange::wait(ShardId(7));
        prop_assert!(range.contains(&key_bytes(&RowKey::Wait(ShardId(7), at, id))));
        prop_assert!(!range.contains(&key_bytes(&RowKey::Wait(ShardId(6), at, id))));
    }

    #[test]
    fn no_key_is_the_prefix_of_another_class(a in arbitrary::name(), b in arbitrary::name()) {
        let class = |queue: &Name| KeyRange::ready_class(ShardId(1), queue, &name("t")).from;
        prop_assert_eq!(class(&a).starts_with(&class(&b)), a == b);
    }

    #[test]
    fn random_bytes_are_a_key_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(key) = parse_key(&bytes) {
            prop_assert_eq!(key_bytes(&key), bytes);
        }
    }
}

#[test]
fn a_queue_does_not_leak_into_one_that_it_begins() {
    let range = KeyRange::ready_class(ShardId(1), &name("a"), &name("t"));
    let other = KeyRange::ready_class(ShardId(1), &name("ab"), &name("t"));
    assert!(range.to <= other.from);
    assert!(!range.contains(&other.from));
}

#[test]
fn a_skip_scan_meets_every_class_once() {
    let classes = [("a", "t"), ("a", "u"), ("ab", "t"), ("b", "a")];
    let starts: Vec<Vec<u8>> = classes
        .iter()
        .map(|(queue, tenant)| KeyRange::ready_class(ShardId(1), &name(queue), &name(tenant)).from)
        .collect();
    let mut from = KeyRange::ready(ShardId(1)).from;
    for (start, (queue, tenant)) in starts.iter().zip(classes) {
        let next = starts.iter().find(|key| **key >= from).unwrap();
        assert_eq!(next, start);
        from = KeyRange::ready_class(ShardId(1), &name(queue), &name(tenant)).to;
    }
    assert!(starts.iter().all(|key| *key < from));
}

#[test]
fn pages_go_on_after_the_last_key_in_both_directions() {
    let range = KeyRange::wait(ShardId(1));
    let key = key_bytes(&RowKey::Wait(
        ShardId(1),
        StoreTime(5),
        JobId::fresh(Slot::new(1).unwrap(), [0; 14]),
    ));
    assert!(range.contains(&key));
    assert!(!range.clone().after(&key).contains(&key));
    assert!(!range.clone().before(&key).contains(&key));
    assert_eq!(range.clone().starting_at(&[0]), range);
    assert_eq!(range.clone().before(&[0xff]), range);
}

#[test]
fn the_end_of_a_prefix_skips_full_bytes() {
    assert_eq!(prefix_end(&[1, 2]), [1, 3]);
    assert_eq!(prefix_end(&[1, 0xff, 0xff]), [2]);
}

#[test]
fn kinds_are_in_byte_order_and_below_255() {
    assert!(KINDS.windows(2).all(|pair| pair[0].byte() < pair[1].byte()));
    assert!(
        KINDS
            .iter()
            .all(|kind| kind.byte() < u8::MAX && Kind::of(&[kind.byte()]) == Some(*kind))
    );
}

#[test]
fn a_range_up_to_a_row_ends_right_behind_it() {
    let id = |n: u8| JobId::fresh(Slot::new(7).unwrap(), [n; 14]);
    let range = KeyRange::up_to_row(&RowKey::Leased(id(1)), &RowKey::Leased(id(3)));
    let within = |row: RowKey| {
        let key = key_bytes(&row);
        range.from <= key && key < range.to
    };
    assert!((1..=3).all(|n| within(RowKey::Leased(id(n)))));
    assert!(!within(RowKey::Leased(id(0))) && !within(RowKey::Leased(id(4))));
    assert!(!within(RowKey::Parked(id(2))), "another kind lies elsewhere");
}
