//! Fencepost's decisions, and nothing else: no clock, no randomness, no IO, no async.
//!
//! Start at `shard.rs` (what is stepped), then `scheduler_shard/` (when), `lease_manager/` (who),
//! `worker/` (the other end of a lease), `coordinator/` (which node owns what). Types that all parts
//! share: `job.rs`, `schedule.rs`, `fate.rs`, `row.rs`, `machine.rs`, `ids.rs`, `time.rs`, `limits/mod.rs`.

pub mod calendar;
pub mod clock_trust;
pub mod coordinator;
pub mod cron;
pub mod crontab;
pub mod duration;
pub mod fate;
pub mod ids;
pub mod interval;
pub mod job;
pub mod lease_manager;
pub mod level;
pub mod limits;
pub mod machine;
pub mod name;
pub mod once;
#[cfg(any(test, feature = "test-switches", madsim))]
pub mod planted;
pub mod refusal;
pub mod row;
mod row_kinds;
pub mod schedule;
pub mod scheduler_shard;
pub mod self_audit;
pub mod shard;
pub mod silence;
pub mod store_clock;
pub mod target;
pub mod time;
pub mod weight;
pub mod worker;
pub mod zone;
