//! Fencepost's store.
