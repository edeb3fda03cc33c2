//! Fencepost's store: the trait, rows as bytes, fjall, the model store and one conformance suite.
//!
//! Start at `store.rs`.

pub mod batch;
pub mod codec;
pub mod keys;
pub mod store;
