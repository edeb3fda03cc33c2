//! Fencepost.

pub mod cli;
pub mod gateway;
pub mod net;
pub mod targets;
