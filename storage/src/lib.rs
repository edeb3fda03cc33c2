//! Fencepost's store: the trait, rows as bytes, fjall, the model store and one conformance suite.
//!
//! Start at `store.rs`.

pub mod batch;
pub mod clock;
pub mod codec;
#[cfg(any(test, feature = "planted"))]
pub mod conformance;
#[cfg(not(madsim))]
pub mod fjall_store;
pub mod keys;
pub mod model;
pub mod remote;
pub mod rules;
pub mod store;
pub mod wire;
