//! Assignment rows that cannot be read any more (PROTOCOL F9).
//!
//! Owns: that none of them is taken for one that was never there. Next: `histories.rs`, `store.rs`.

use crate::events::Event;
use crate::histories::{all, cell, decider, setup};

/// F9: a row that cannot be read is not one that was never there: what replaces it is above every version that a
/// node may know, or that node would take the decisions after it for older ones, and never open the shard again.
#[test]
fn f09_a_row_that_cannot_be_read_is_replaced_by_a_later_one_and_its_owner_keeps_the_shard() {
    let mut world = cell(setup(2, 1));
    for _ in 0..3 {
        let owner = world.owners()[0].unwrap();
        let before = world.store.rows[0].as_ref().unwrap().version;
        all(&mut world, &[Event::Rot(0)]);
        // The one who decides dies with all that it knew.
        let decides = decider(&world);
        all(&mut world, &[Event::Crash(decides)]);
        world.run(60);
        let row = world.store.rows[0].as_ref().unwrap();
        assert!(row.version > before, "{} after {before}", row.version);
        assert!(world.store.unreadable.is_empty(), "it can be read again");
        assert!(world.owners()[0].is_some(), "{owner} had it");
    }
}

/// F9: the one who decides knows what it decided; a row that rots under it is said again, and nothing moves.
#[test]
fn f09_a_row_that_rots_while_its_coordinator_lives_is_said_again() {
    let mut world = cell(setup(2, 2));
    let (owners, epochs) = (world.owners(), world.store.shards.clone());
    all(&mut world, &[Event::Rot(0), Event::Rot(1)]);
    world.run(20);
    assert!(world.store.unreadable.is_empty(), "both can be read again");
    assert_eq!(
        (world.owners(), &world.store.shards),
        (owners, &epochs),
        "nothing was opened anew"
    );
}
