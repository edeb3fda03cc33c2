//! A whole node on the model store whose rows were tampered with between two of its lives.
//!
//! Owns: what becomes of rows that cannot be read. Next: `rows.rs`, `audit.rs`, `harness.rs`, `../node.rs`.
#![cfg(not(madsim))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod audit;
mod harness;
#[path = "../support/requests.rs"]
mod requests;
mod rows;

use fencepost::gateway::Gateway;
use harness::*;
use requests::*;

#[test]
fn f35_what_was_acknowledged_is_read_at_once() {
    run(async {
        let node = World::new().start_idle().await;
        for _ in 0..50 {
            let id = create(&node, item(fresh(&node), "noop")).await;
            assert!(node.gateway.job(id).await.unwrap().is_some(), "read after its answer");
        }
    });
}
