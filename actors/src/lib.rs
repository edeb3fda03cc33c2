//! Fencepost: the job scheduler that is never off by one.
//!
//! Start at `node/` (a node, the same in production and under simulation), then `shell/` (durable
//! before visible), `worker/` and `targets/` (what jobs do), `desk/` (jobs for
//! workers over HTTP), `gateway.rs` and `api/` (HTTP), `cli/`.

pub mod api;
#[cfg(not(madsim))]
pub mod bench;
pub mod chance;
#[cfg(not(madsim))]
pub mod cli;
pub mod clock;
pub mod cluster;
#[cfg(not(madsim))]
pub mod config;
#[cfg(not(madsim))]
pub mod conformance;
pub mod desk;
pub mod gateway;
pub mod guard;
#[cfg(not(madsim))]
mod kept_file;
pub mod mesh;
pub mod net;
pub mod node;
#[cfg(madsim)]
pub mod planted;
pub mod problem;
pub mod process;
pub mod shell;
pub mod targets;
pub mod telemetry;
mod watched;
pub mod worker;
