//! Which cold rows an input needs, and the input once they are known.
//!
//! Owns: requests and worker messages turned into machine inputs. Must never: read or decide. Next:
//! `gather.rs`.

use crate::gateway::{ScheduleRequest, ShardRequest};
use crate::shell::messages::FromWorker;
use fencepost_core::ids::{JobId, Slot, Token, WorkerId};
use fencepost_core::job::{Job, Outcome};
use fencepost_core::lease_manager::io::{AttemptOutcome, CreateItem, LeaseInput};
use fencepost_core::machine::ReplyTo;
use fencepost_core::name::Name;
use fencepost_core::row::{Row, RowKey};
use fencepost_core::scheduler_shard::io::ScheduleInput;
use fencepost_core::shard::ShardInput;
use fencepost_core::target::Payload;
use fencepost_core::time::Monotonic;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known of rows and leases.
pub(crate) trait Known {
    /// `None` is not known; `Some(None)` is known to be absent.
    fn row(&self, key: &RowKey) -> Option<Option<Row>>;
    /// The name of the row of a request about a schedule, if there is such a schedule.
    fn request_key(&self, name: &(Name, Name), request: u64) -> Option<RowKey>;
    /// The job that the version before makes or made of a run-now request.
    fn run_now_id(&self, name: &(Name, Name), request: u64) -> Option<JobId>;
    /// Whether this attempt is current.
    fn holds(&self, id: JobId, token: Token) -> bool;
}

/// An input that waits for its rows.
pub(crate) enum Needs {
    /// Needs nothing.
    Nothing(Box<ShardInput>),
    /// Needs key rows and the jobs they name.
    Create(ReplyTo, Vec<CreateItem>),
    /// Needs one job.
    OneJob(ReplyTo, JobId, JobRequest),
    /// Needs the row of the request, if it was carried out.
    RunNow(ReplyTo, (Name, Name), u64),
    /// Needs the jobs whose attempts are not current.
    Outcomes(WorkerId, Vec<(JobId, Token, Outcome)>),
}

/// Requests about one job.
pub(crate) enum JobRequest {
    Cancel,
    Retry,
    Settle(fencepost_core::lease_manager::io::Settlement),
}

impl Needs {
    pub(crate) fn client(reply: ReplyTo, request: ShardRequest) -> Needs {
        match request {
            ShardRequest::CreateJobs(items) => Needs::Create(reply, items),
            ShardRequest::CancelJob(id) => Needs::OneJob(reply, id, JobRequest::Cancel),
            ShardRequest::RetryDead(id) => Needs::OneJob(reply, id, JobRequest::Retry),
            ShardRequest::SettleUncertain(id, verdict) => Needs::OneJob(reply, id, JobRequest::Settle(verdict)),
            ShardRequest::Schedule(name, ScheduleRequest::RunNow { request }) => Needs::RunNow(reply, name, request),
            ShardRequest::Schedule(name, request) => {
                nothing(ShardInput::Schedule(schedule_input(reply, name, request)))
            }
        }
    }

    pub(crate) fn worker(worker: WorkerId, message: FromWorker, _received_at: Monotonic) -> Needs {
        match message {
            FromWorker::Offer {
                offer,
                slots,
                queues,
                commands,
                waits,
                apart,
            } => lease(LeaseInput::Offer {
                worker,
                offer,
                slots,
                queues,
                commands,
                waits,
                apart,
            }),
            FromWorker::Heartbeat { beat, held } => lease(LeaseInput::Heartbeat { worker, beat, held }),
            FromWorker::Begin { id, token } => lease(LeaseInput::Begin { worker, id, token }),
            FromWorker::Outcomes { items } => Needs::Outcomes(worker, items),
            FromWorker::HandBack { items } => lease(LeaseInput::HandBack { worker, items }),
        }
    }

    /// Whether it renews leases and does nothing else.
    pub(crate) fn is_heartbeat(&self) -> bool {
        match self {
            Needs::Nothing(input) => matches!(**input, ShardInput::Lease(LeaseInput::Heartbeat { .. })),
            Needs::Create(..) | Needs::OneJob(..) | Needs::RunNow(..) | Needs::Outcomes(..) => false,
        }
    }

    /// Who waits for an answer that a row decides.
    pub(crate) fn reply(&self) -> Option<ReplyTo> {
        match self {
            Needs::Create(reply, _) | Needs::OneJob(reply, ..) | Needs::RunNow(reply, ..) => Some(*reply),
            Needs::Nothing(_) | Needs::Outcomes(..) => None,
        }
    }

    /// Rows that must still be fetched.
    pub(crate) fn missing(&self, known: &dyn Known) -> Vec<RowKey> {
        match self {
            Needs::Nothing(_) => Vec::new(),
            Needs::Create(_, items) => items.iter().flat_map(|item| missing_for_item(item, known)).collect(),
            Needs::OneJob(_, id, _) => unknown(RowKey::Job(*id), known).into_iter().collect(),
            Needs::RunNow(_, name, request) => {
                let earlier = known.run_now_id(name, *request).map(RowKey::Job);
                let keys = [known.request_key(name, *request), earlier].into_iter().flatten();
                keys.filter_map(|key| unknown(key, known)).collect()
            }
            Needs::Outcomes(_, items) => {
                let late = items.iter().filter(|(id, token, _)| !known.holds(*id, *token));
                late.filter_map(|(id, _, _)| unknown(RowKey::Job(*id), known)).collect()
            }
        }
    }

    /// Takes fetched rows. What could not be reached within the bound of a fetch is fetched next, or, where
    /// rows must be held whole, put off: answers the needs that are left for later.
    pub(crate) fn take(
        &mut self,
        rows: BTreeMap<RowKey, Option<Row>>,
        unread: Option<&[RowKey]>,
        fetched: &mut BTreeMap<RowKey, Option<Row>>,
    ) -> Option<Needs> {
        let unread: BTreeSet<&RowKey> = unread
            .into_iter()
            .flatten()
            .filter(|key| !rows.contains_key(*key))
            .collect();
        let rest = match self {
            Needs::Outcomes(worker, items) if !unread.is_empty() => {
                let later = |(id, _, _): &(JobId, Token, Outcome)| unread.contains(&RowKey::Job(*id));
                let (later, now) = std::mem::take(items).into_iter().partition(later);
                *items = now;
                Some(Needs::Outcomes(worker.clone(), later))
            }
            _ => None,
        };
        let is_named = |id: JobId| match &*self {
            Needs::Create(_, items) => items.iter().all(|item| item.id != id || item.key.is_some()),
            _ => false,
        };
        fetched.extend(rows.into_iter().map(|(key, row)| match row {
            Some(Row::Job(job)) if is_named(job.id) => (key, Some(Row::Job(Box::new(without_payload(*job))))),
            row => (key, row),
        }));
        rest
    }

    /// The input, once nothing is missing.
    pub(crate) fn into_input(self, known: &dyn Known) -> ShardInput {
        match self {
            Needs::Nothing(input) => *input,
            Needs::Create(reply, items) => {
                let items = items.into_iter().map(|item| fill_item(item, known)).collect();
                ShardInput::Lease(LeaseInput::CreateJobs { reply, items })
            }
            Needs::OneJob(reply, id, request) => {
                let job = job_of(id, known);
                #[cfg(madsim)]
                let job = planted_unfinished(job, &request);
                ShardInput::Lease(match request {
                    JobRequest::Cancel => LeaseInput::CancelJob { reply, id, job },
                    JobRequest::Retry => LeaseInput::RetryDead { reply, id, job },
                    JobRequest::Settle(verdict) => LeaseInput::SettleUncertain {
                        reply,
                        id,
                        job,
                        verdict,
                    },
                })
            }
            Needs::RunNow(reply, name, request) => {
                let key = known.request_key(&name, request);
                let made = known.run_now_id(&name, request);
                let made = made.and_then(|id| Some((id, job_of(id, known)?.ended_at)));
                let seen = key.and_then(|key| known.row(&key).flatten()?.into_request());
                #[cfg(madsim)]
                let seen = seen.filter(|_| !crate::planted::is_planted(crate::planted::Bug::RequestForgotten));
                ShardInput::Schedule(ScheduleInput::RunNow {
                    reply,
                    name,
                    request,
                    seen,
                    made,
                })
            }
            Needs::Outcomes(worker, items) => {
                let fill = |(id, token, outcome): (JobId, Token, Outcome)| {
                    let job = if known.holds(id, token) {
                        None
                    } else {
                        job_of(id, known)
                    };
                    AttemptOutcome {
                        id,
                        token,
                        outcome,
                        job,
                    }
                };
                ShardInput::Lease(LeaseInput::Outcomes {
                    worker,
                    items: items.into_iter().map(fill).collect(),
                })
            }
        }
    }
}

/// Of a job that a key names, a creation asks only whether and when it ended; one that was sent before is
/// compared whole.
fn without_payload(mut job: Job) -> Job {
    let mut spec = (*job.spec).clone();
    spec.payload = Payload::empty();
    job.spec = Arc::new(spec);
    job.attempts.clear();
    job
}

fn nothing(input: ShardInput) -> Needs {
    Needs::Nothing(Box::new(input))
}

fn lease(input: LeaseInput) -> Needs {
    nothing(ShardInput::Lease(input))
}

fn unknown(key: RowKey, known: &dyn Known) -> Option<RowKey> {
    known.row(&key).is_none().then_some(key)
}

fn key_of(item: &CreateItem) -> Option<RowKey> {
    let (key, _) = item.key.as_ref()?;
    Some(RowKey::Key(
        Slot::of_key(&item.spec.tenant, key),
        item.spec.tenant.clone(),
        key.clone(),
    ))
}

/// Items without a key carry a fresh id that nothing can know, unless they were sent before; the insert
/// expects it absent.
fn missing_for_item(item: &CreateItem, known: &dyn Known) -> Option<RowKey> {
    let Some(key) = key_of(item) else {
        return unknown(RowKey::Job(item.id), known).filter(|_| item.resent);
    };
    let Some(row) = known.row(&key) else { return Some(key) };
    let named = row.and_then(Row::into_key).map_or(item.id, |row| row.job);
    unknown(RowKey::Job(named), known)
}

fn fill_item(mut item: CreateItem, known: &dyn Known) -> CreateItem {
    let Some(key) = key_of(&item) else {
        // Also one not sent before: what is in memory costs no look, and a conflict would end this owner.
        item.existing = job_of(item.id, known);
        return item;
    };
    item.key_row = known.row(&key).flatten().and_then(Row::into_key);
    let named = item.key_row.as_ref().map_or(item.id, |row| row.job);
    item.existing = job_of(named, known);
    item
}

fn job_of(id: JobId, known: &dyn Known) -> Option<Box<Job>> {
    known.row(&RowKey::Job(id)).flatten().and_then(Row::into_job)
}

pub(crate) fn schedule_input(reply: ReplyTo, name: (Name, Name), request: ScheduleRequest) -> ScheduleInput {
    match request {
        ScheduleRequest::Create { spec, paused } => ScheduleInput::Create {
            reply,
            name,
            spec,
            paused,
        },
        ScheduleRequest::Edit {
            if_match,
            spec,
            pending,
            dry_run,
        } => ScheduleInput::Edit {
            reply,
            name,
            if_match,
            spec,
            pending,
            dry_run,
        },
        ScheduleRequest::Pause => ScheduleInput::Pause { reply, name },
        ScheduleRequest::Resume => ScheduleInput::Resume { reply, name },
        ScheduleRequest::Delete => ScheduleInput::Delete { reply, name },
        ScheduleRequest::RunNow { request } => ScheduleInput::RunNow {
            reply,
            name,
            request,
            seen: None,
            made: None,
        },
        ScheduleRequest::Backfill {
            from,
            to,
            cap,
            rerun,
            request,
            dry_run,
        } => ScheduleInput::Backfill {
            reply,
            name,
            from,
            to,
            cap,
            rerun,
            request,
            seen: None,
            dry_run,
            life: None,
            fates: Vec::new(),
        },
    }
}

/// The planted bug: a finished job is handed in as it was before its end.
#[cfg(madsim)]
fn planted_unfinished(mut job: Option<Box<Job>>, request: &JobRequest) -> Option<Box<Job>> {
    let is_planted = crate::planted::is_planted(crate::planted::Bug::CancelSeesTheUnfinished);
    let is_cancel = matches!(request, JobRequest::Cancel);
    if let Some(job) = job
        .as_mut()
        .filter(|job| is_planted && is_cancel && job.state.is_finished())
    {
        job.state = fencepost_core::job::JobState::Waiting;
        job.ended_at = None;
    }
    job
}
