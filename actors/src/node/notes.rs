//! News of a node: what shards tell of jobs and schedules once it is durable.
//!
//! Owns: the trait that shards tell, and clients that wait for a job's end. Must never: be needed
//! for anything to happen (news may be lost in a crash; rows are the truth). Next: `../telemetry/`.

use fencepost_core::ids::{JobId, ShardId};
use fencepost_core::job::{Job, JobState};
use fencepost_core::name::Name;
use fencepost_core::scheduler_shard::audit::AuditFault;
use fencepost_core::scheduler_shard::io::FireNote;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// Who is told.
pub trait Notes: Send + Sync + 'static {
    /// A job moved other than by the end of an attempt.
    fn job_changed(&self, job: &Job);
    /// An attempt ended and moved its job.
    fn attempt_ended(&self, job: &Job);
    /// An old job was removed.
    fn job_purged(&self, id: JobId, state: JobState);
    /// A schedule fired, skipped and so on.
    fn fired(&self, note: &FireNote);
    /// So many schedules of a shard are in quarantine now.
    fn quarantined(&self, _shard: ShardId, _schedules: u64) {}
    /// A row that could not be read was put into quarantine.
    fn row_quarantined(&self, _shard: ShardId) {}
    /// Whether the store's clock is in doubt, told every second.
    fn clock_doubt(&self, _doubt: bool) {}
    /// The auditor found a fault in a schedule's history.
    fn audit_fault(&self, _schedule: &Name, _fault: &AuditFault) {}
}

/// Clients that wait for the end of a job.
#[derive(Debug, Default)]
pub struct Waiters {
    waiting: Mutex<BTreeMap<JobId, Vec<oneshot::Sender<()>>>>,
}

impl Waiters {
    /// Is told once the job is finished or uncertain.
    pub fn wait(&self, id: JobId) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let line = waiting.entry(id).or_default();
        line.retain(|waiter| !waiter.is_closed());
        line.push(tell);
        told
    }

    /// Nobody who went away is kept.
    pub fn forget(&self, id: JobId) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = waiting.get_mut(&id) {
            line.retain(|waiter| !waiter.is_closed());
            if line.is_empty() {
                waiting.remove(&id);
            }
        }
    }

    /// A job changed.
    pub fn job_changed(&self, job: &Job) {
        if !job.state.is_finished() && job.state != JobState::Uncertain {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for waiter in waiting.remove(&job.id).into_iter().flatten() {
            let _ = waiter.send(());
        }
    }
}
