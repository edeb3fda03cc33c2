//! JSON shapes and their way to and from core types.
//!
//! Owns: what requests and answers look like. Must never: do IO or ask a clock. One file per thing: what is
//! asked for (`job`, `new_job`, `target`, `schedule`, `rule`) and what is shown (`…_view`).

pub mod job;
pub mod job_view;
pub mod kept_secrets;
pub mod new_job;
#[cfg(test)]
mod properties;
pub mod rule;
pub mod schedule;
pub mod schedule_view;
pub mod target;
