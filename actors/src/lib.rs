//! Fencepost.

pub mod net;
