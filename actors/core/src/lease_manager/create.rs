//! New jobs: asked for by clients (idempotent by key and by id), or made by fires.
//!
//! Owns: the rules of admission and of key reuse (F26). Must never: make a second job for a key that
//! is still held, whatever else is in the same step. Next: `places.rs`.

use super::io::{CreateItem, Created, LeaseEffect, LeaseReply};
use super::item::first_due;
use super::places::Lies;
use super::{LeaseManager, Orders};
use crate::ids::{JobId, Slot};
use crate::job::{Job, JobSpec, JobState, KEY_KEPT, Origin, Place};
use crate::limits::{ATTEMPT_COUNT_MAX, BATCH_JOBS_MAX, CLASS_COUNT_MAX, PAYLOAD_BYTES_MAX, PRIORITY_MAX};
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::refusal::{Refusal, RefusalKind, storage_full};
use crate::row::{KeyRow, Row};
use crate::scheduler_shard::io::Fire;
use crate::time::{Now, Span, StoreTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one step has made so far: rows that no item of it was handed.
#[derive(Default)]
struct Made {
    keys: BTreeMap<(Name, Arc<str>), (JobId, [u8; 32])>,
    ids: BTreeMap<JobId, Asked>,
}

/// What was asked for under an id: sent again, it must be the same.
#[derive(PartialEq)]
struct Asked {
    spec: Arc<JobSpec>,
    /// `None` is "at once", or after a delay.
    due_at: Option<StoreTime>,
    delay: Option<Span>,
}

impl Asked {
    fn of(item: &CreateItem) -> Asked {
        Asked {
            spec: Arc::clone(&item.spec),
            due_at: item.due_at,
            delay: item.delay,
        }
    }

    /// Whether this job may have come of it: "at once" is due when it was made, a delay counts from then.
    fn is_of(&self, job: &Job) -> bool {
        let due_at = first_due(self.due_at, self.delay, job.created_at);
        self.spec == job.spec && due_at == job.due_at
    }
}

/// What an idempotency key says.
enum KeyAnswer {
    /// Nobody holds it.
    Free,
    /// This job holds it, with the same request.
    Replay(JobId),
    /// It is held with another request.
    Reused(JobId),
}

impl LeaseManager {
    /// Jobs asked for by a client.
    pub(super) fn on_create_jobs(&mut self, now: Now, reply: ReplyTo, items: Vec<CreateItem>, out: &mut Orders) {
        let mut made = Made::default();
        let mut answers = Vec::with_capacity(items.len());
        for (place, item) in items.into_iter().enumerate() {
            answers.push(if place < BATCH_JOBS_MAX {
                self.create(now, item, &mut made, out)
            } else {
                Err(batch_too_long())
            });
        }
        out.effect(LeaseEffect::Reply(reply, LeaseReply::Created(answers)));
    }

    /// Occurrences that fire: the one crossing between the two machines of a shard (F1).
    pub fn on_fires(&mut self, now: Now, fires: Vec<Fire>, out: &mut Orders) {
        self.begin_step(now);
        for fire in fires {
            self.insert(now, fire.id, fire.spec, fire.origin, (fire.due_at, None), out);
        }
        self.end_step(now, out);
    }

    fn create(&mut self, now: Now, item: CreateItem, made: &mut Made, out: &mut Orders) -> Result<Created, Refusal> {
        self.check_home(&item)?;
        match key_answer(now, &item, made) {
            KeyAnswer::Replay(id) => return Ok(Created { id, replayed: true }),
            KeyAnswer::Reused(id) => return Err(key_reused(id)),
            KeyAnswer::Free => {}
        }
        if let Some(is_same) = sent_before(&item, made) {
            let (id, replayed) = (item.id, true);
            return is_same.then_some(Created { id, replayed }).ok_or_else(|| id_taken(id));
        }
        if self.is_full {
            return Err(storage_full());
        }
        check_spec(&item.spec)?;
        check_times(now, &item)?;
        self.check_class(&item.spec)?;
        if let Some((key, digest)) = &item.key {
            let tenant = item.spec.tenant.clone();
            made.keys.insert((tenant.clone(), key.clone()), (item.id, *digest));
            out.put(Row::Key(Box::new(KeyRow {
                tenant,
                key: key.clone(),
                job: item.id,
                digest: *digest,
                created_at: now.store,
            })));
        }
        made.ids.insert(item.id, Asked::of(&item));
        let due = (item.first_due(now.store), item.delay);
        let origin = Origin::Request {
            key: item.key.map(|(key, _)| key),
        };
        self.insert(now, item.id, item.spec, origin, due, out);
        Ok(Created {
            id: item.id,
            replayed: false,
        })
    }

    /// Inserts a job where its due instant puts it, or waits out a delay. In clock doubt nothing with an
    /// instant of its own is taken as due.
    fn insert(
        &mut self,
        now: Now,
        id: JobId,
        spec: Arc<JobSpec>,
        origin: Origin,
        (due_at, delay): (StoreTime, Option<Span>),
        out: &mut Orders,
    ) {
        let is_due = due_at <= now.store && (!now.doubt || due_at == now.store);
        let at = delay.map_or(due_at, |delay| self.elapsed.end_of(now, delay, id));
        let (state, place) = if is_due {
            (JobState::Ready, Place::Ready { order: now.store })
        } else {
            let length = delay.unwrap_or(Span::ZERO);
            (JobState::Waiting, Place::Wait { at, length })
        };
        let job = Job {
            due_at,
            state,
            place,
            ..Job::due_at_once(id, spec, origin, now.store)
        };
        out.insert(Row::Job(Box::new(job.clone())));
        if is_due {
            self.enter_ready(Arc::new(job), now.store, Lies::Nowhere, out);
        } else {
            self.enter_wait(now, Arc::new(job), at, delay, out);
        }
    }

    fn check_home(&self, item: &CreateItem) -> Result<(), Refusal> {
        let at_home = |slot: Slot| self.facts.map.shard_of(slot) == self.facts.shard;
        let key_slot = item.key.as_ref().map(|(key, _)| Slot::of_key(&item.spec.tenant, key));
        if at_home(item.id.slot()) && key_slot.is_none_or(at_home) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalKind::Unavailable,
            "wrong_shard",
            "the request reached a shard that does not own this job",
            "Send it again; it will be routed anew.",
        ))
    }

    /// A new queue must fit into the directory; jobs that exist already are always let in.
    fn check_class(&self, spec: &JobSpec) -> Result<(), Refusal> {
        let known = self.ready.has_queue(&spec.queue, &spec.tenant);
        if known || self.ready.queue_count() < CLASS_COUNT_MAX || self.ready.has_idle() {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalKind::Limited,
            "queue_limit",
            format!("{CLASS_COUNT_MAX} queues have ready jobs already"),
            "Use fewer queues, or try again when some have been worked off.",
        )
        .at("job.queue"))
    }
}

/// Own step first, then the stored row. A key is free again when it was kept for its time, never in doubt.
fn key_answer(now: Now, item: &CreateItem, made: &Made) -> KeyAnswer {
    let Some((key, digest)) = &item.key else {
        return KeyAnswer::Free;
    };
    let in_step = made.keys.get(&(item.spec.tenant.clone(), key.clone())).copied();
    let stored = item.key_row.as_ref().map(|row| (row.job, row.digest));
    let stored = stored.filter(|(holder, _)| !is_key_over(now, item.existing.as_deref(), *holder));
    match in_step.or(stored) {
        None => KeyAnswer::Free,
        Some((holder, held)) if held == *digest => KeyAnswer::Replay(holder),
        Some((holder, _)) => KeyAnswer::Reused(holder),
    }
}

/// Whether a job has this id already, and then whether it is the one that is asked for. Of one that is sent again
/// only what its sender chose is compared: a delay is an instant on the way to or from a node of the version before.
fn sent_before(item: &CreateItem, made: &Made) -> Option<bool> {
    let asked = Asked::of(item);
    if let Some(before) = made.ids.get(&item.id) {
        return Some(*before == asked);
    }
    let stored = item.existing.as_ref().filter(|job| job.id == item.id)?;
    let key = item.key.as_ref().map(|(key, _)| key);
    let is_its_origin = matches!(&stored.origin, Origin::Request { key: held } if held.as_ref() == key);
    Some(
        is_its_origin
            && if item.resent {
                item.spec == stored.spec
            } else {
                asked.is_of(stored)
            },
    )
}

fn is_key_over(now: Now, existing: Option<&Job>, holder: JobId) -> bool {
    let ended = existing.filter(|job| job.id == holder);
    let ended = ended.and_then(|job| Some((job.ended_at?, job.key_kept.unwrap_or(KEY_KEPT))));
    ended.is_some_and(|(at, kept)| retention_over(now, at, kept))
}

/// Whether something that ended at `at` has been kept for long enough; never in doubt.
pub(super) fn retention_over(now: Now, at: StoreTime, kept: Span) -> bool {
    !now.doubt && now.store.since(at) >= kept && at <= now.store
}

fn check_times(now: Now, item: &CreateItem) -> Result<(), Refusal> {
    let invalid = |code, detail: &str, hint: &str, field: &str| {
        Err(Refusal::new(RefusalKind::Invalid, code, detail, hint).at(field))
    };
    let due_at = item.first_due(now.store);
    if due_at > StoreTime::MAX {
        return invalid(
            "due_out_of_range",
            "the job is due after the year 9999",
            "Name an earlier time.",
            "job.at",
        );
    }
    if now.doubt {
        return Ok(());
    }
    if item.grace.is_some_and(|grace| now.store.since(due_at) > grace) {
        return invalid(
            "too_late",
            "the job was due longer ago than its grace",
            "Name a later time, or a longer grace, or none.",
            "job.at",
        );
    }
    if item.spec.expires_at.is_some_and(|at| at <= now.store || at <= due_at) {
        return invalid(
            "already_expired",
            "the job would expire before it may start",
            "Name a later expiry, or none.",
            "job.expires_at",
        );
    }
    Ok(())
}

/// What the gateway has checked already; a job that passes can always be decided on.
fn check_spec(spec: &JobSpec) -> Result<(), Refusal> {
    let refuse = |kind, code, detail: String, field: &str| {
        Err(Refusal::new(kind, code, detail, "Correct the field and send it again.").at(field))
    };
    if spec.payload.bytes.len() > PAYLOAD_BYTES_MAX {
        let detail = format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes");
        return refuse(RefusalKind::TooLarge, "payload_too_large", detail, "job.payload");
    }
    if spec.priority > PRIORITY_MAX {
        let detail = format!("priorities run from 0 to {PRIORITY_MAX}");
        return refuse(RefusalKind::Invalid, "bad_priority", detail, "job.priority");
    }
    let attempts = spec.retry.attempt_count_max;
    if attempts == 0 || attempts > ATTEMPT_COUNT_MAX {
        let detail = format!("a job has 1 to {ATTEMPT_COUNT_MAX} attempts");
        return refuse(RefusalKind::Invalid, "bad_attempt_count", detail, "job.retry.attempts");
    }
    Ok(())
}

fn key_reused(holder: JobId) -> Refusal {
    Refusal::new(
        RefusalKind::KeyReused,
        "idempotency_key_reused",
        format!("this idempotency key was used for {holder} with another request"),
        "Send the same request again, or use a new key.",
    )
    .at("idempotency_key")
}

fn id_taken(id: JobId) -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "job_id_taken",
        format!("{id} is another job"),
        "Send the same request again, or draw a new id.",
    )
}

fn batch_too_long() -> Refusal {
    Refusal::new(
        RefusalKind::TooLarge,
        "batch_too_long",
        format!("a batch has at most {BATCH_JOBS_MAX} jobs"),
        "Send the rest in another batch.",
    )
    .at("jobs")
}
