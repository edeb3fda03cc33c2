//! The simulator: the product's own node, API and worker on simulated time, network and disk.
//!
//! Read `runtime/` (the only place that names madsim), `world/` (what runs and what befalls it),
//! `scenario/` (files that tell a run what to be), `run.rs` (one seed; `../history` has what was seen and what must
//! hold), `report/` (what is left of a run), `cli/` (the program), `own/` (a user's handlers). Must never: be imported
//! by the product.
#![cfg_attr(not(madsim), allow(unused))]

#[cfg(not(madsim))]
compile_error!("run `cargo sim` from the root, which sets --cfg madsim; unset RUSTFLAGS");

#[cfg(madsim)]
pub mod bugs;
#[cfg(madsim)]
pub mod cli;
#[cfg(madsim)]
pub mod options;
#[cfg(madsim)]
pub mod own;
#[cfg(madsim)]
pub mod report;
#[cfg(madsim)]
pub mod run;
#[cfg(madsim)]
pub mod runtime;
#[cfg(madsim)]
pub mod scenario;
#[cfg(madsim)]
pub mod trace;
#[cfg(madsim)]
pub mod without;
#[cfg(madsim)]
pub mod world;

#[cfg(madsim)]
pub use own::{Effects, NoAnswer, Service, Simulation};
