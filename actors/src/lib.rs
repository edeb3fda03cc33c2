//! Fencepost.

pub mod gateway;
pub mod net;
