//! Fencepost.

pub mod api;
pub mod cli;
pub mod gateway;
pub mod guard;
pub mod net;
pub mod problem;
pub mod targets;
