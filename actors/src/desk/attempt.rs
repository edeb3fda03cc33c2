//! An attempt that was handed out: what its worker says of it, and what it is told.
//!
//! Owns: the run that stands for the work done elsewhere. It ends with the worker's report, or when the worker was
//! silent for a lease, ran out of time, or lost the lease. Must never: end as "not started" without the worker's
//! word, or with two reports. Next: `claim.rs`, `../worker/actor.rs` (the lease behind it).

use super::claim::Claim;
use super::{Desk, Grant, Key, OF_EARLIER, attempt_lost, outcome_unknown};
use crate::clock::SharedClock;
use crate::net::rt::spawn;
#[cfg(madsim)]
use crate::planted::{Bug, is_planted};
use crate::targets::attempt::{failed, with_error};
use crate::targets::tail::OutputTail;
use crate::targets::{AttemptContext, CancelSignal, StopReason};
use crate::watched::Watched;
use crate::worker::ToWorker;
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::lease_manager::io::Recorded;
use fencepost_core::limits::REPORT_WAIT_MS;
use fencepost_core::name::Name;
use fencepost_core::refusal::Refusal;
use fencepost_core::silence::{SILENT, SILENT_TO_THE_END};
use fencepost_core::time::{Monotonic, Span};
use fencepost_core::worker::io::WorkerInput;
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// What a worker reports at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub verdict: Verdict,
    /// For people.
    pub error: Option<String>,
    /// The end of it is kept.
    pub output: Vec<u8>,
}

/// What a worker is told of an attempt that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// It is its own for this long from now; nothing if it lost it.
    pub left: Option<Span>,
    /// Someone asked to cancel the job: stop, and report it as cancelled.
    pub cancel: bool,
}

/// One attempt.
pub(super) struct Attempt {
    pub(super) grant: Grant,
    /// Of what this start of the node handed out.
    pub(super) context: Option<AttemptContext>,
    claim: Weak<Claim>,
    /// What the node's worker says of the lease.
    signal: CancelSignal,
    clock: SharedClock,
    /// A worker that says nothing for so long is lost.
    patience: Span,
    /// So much earlier than we end it its worker must stop: its clock may be slower than ours.
    margin: Span,
    /// Its time is over then.
    timeout_at: Monotonic,
    state: Watched<State>,
}

struct State {
    /// The worker is lost then.
    silent_at: Monotonic,
    /// The node's own lease ends then.
    lease_ends_at: Monotonic,
    cancel: bool,
    /// What the worker reported.
    report: Option<Report>,
    /// It has ended without a report.
    lost: Option<&'static str>,
    /// It is being given back: nothing else counts any more.
    releasing: bool,
    /// Its worker machine knows that it was given back.
    released: bool,
    /// Its lease is over: what becomes of the job its owner decides without us.
    forfeited: bool,
    recorded: Option<Recorded>,
    /// What the worker reported after it had ended here; the first one stands.
    late: bool,
    late_recorded: Option<Recorded>,
}

impl State {
    fn until(silent_at: Monotonic, lease_ends_at: Monotonic) -> State {
        State {
            silent_at,
            lease_ends_at,
            cancel: false,
            report: None,
            lost: None,
            releasing: false,
            released: false,
            forfeited: false,
            recorded: None,
            late: false,
            late_recorded: None,
        }
    }
}

/// What a report is.
enum Heard {
    /// The attempt's end.
    InTime,
    /// A word about an attempt that ended before, for this reason; the outcome is there for the first of these.
    Late(&'static str, Option<Outcome>),
}

impl Attempt {
    pub(super) fn new(claim: &Arc<Claim>, desk: &Desk, context: AttemptContext, signal: CancelSignal) -> Attempt {
        let (now, patience) = (desk.parts.clock.mono(), desk.parts.lease);
        let left = signal.lease().1.unwrap_or(patience);
        Attempt {
            grant: Grant {
                tenant: context.tenant.clone(),
                job: context.job,
                attempt: context.attempt,
                token: context.token,
            },
            claim: Arc::downgrade(claim),
            signal,
            timeout_at: now + context.timeout,
            context: Some(context),
            clock: desk.parts.clock.clone(),
            patience,
            margin: desk.lease_margin(),
            state: Watched::new(State::until(now + patience, now + left)),
        }
    }

    /// One that an earlier start of this node handed out. Nobody is left to say anything of it but its worker.
    pub(super) fn of_earlier(desk: &Desk, grant: Grant) -> Attempt {
        let now = desk.parts.clock.mono();
        Attempt {
            grant,
            context: None,
            timeout_at: now,
            claim: Weak::new(),
            signal: CancelSignal::never(),
            clock: desk.parts.clock.clone(),
            patience: desk.parts.lease,
            margin: desk.lease_margin(),
            state: Watched::new(State {
                lost: Some(OF_EARLIER),
                recorded: Some(Recorded::Stale),
                ..State::until(now, now)
            }),
        }
    }

    pub(super) fn key(&self) -> Key {
        (self.grant.job, self.grant.token)
    }

    /// How long it is still its worker's; nothing once it has ended. The node's own lease has its margin already.
    pub(super) fn left(&self) -> Option<Span> {
        let now = self.clock.mono();
        let state = self.state.lock();
        let is_open = state.report.is_none() && state.lost.is_none() && !state.releasing;
        let ours = state.silent_at.min(self.timeout_at).since(now);
        let told = ours - self.margin.min(Span(ours.0 / 10));
        let left = told.min(state.lease_ends_at.since(now));
        (is_open && left > Span::ZERO).then_some(left)
    }

    /// The worker is alive and has it.
    fn beat(&self, progress: Option<&str>) -> Beat {
        if self.left().is_some() {
            self.state
                .change(|state| state.silent_at = self.clock.mono() + self.patience);
            if let Some(text) = progress {
                self.signal.set_progress(text);
            }
        }
        let cancel = self.state.lock().cancel;
        Beat {
            left: self.left(),
            cancel,
        }
    }

    /// Takes the report; the first one stands. Owners of the version before tell a late one that is noted as one
    /// that is recorded: none is taken while there may be such an owner.
    fn report(&self, report: Report, hears_late: bool) -> Result<Heard, Refusal> {
        let mut heard = Ok(Heard::InTime);
        self.state.change(|state| {
            heard = match (&state.report, state.lost, state.releasing) {
                (Some(_), ..) => Ok(Heard::InTime),
                (None, _, true) => Err(attempt_lost("it was given back")),
                (None, Some(why), false) if !hears_late => Err(attempt_lost(why)),
                (None, Some(why), false) => {
                    let is_first = !std::mem::replace(&mut state.late, true);
                    Ok(Heard::Late(why, is_first.then(|| outcome_of(&report))))
                }
                (None, None, false) => {
                    state.report = Some(report);
                    Ok(Heard::InTime)
                }
            };
        });
        heard
    }

    pub(super) fn lose(&self, why: &'static str) {
        self.state.change(|state| {
            if state.report.is_none() && !state.releasing {
                state.lost.get_or_insert(why);
            }
        });
    }

    fn forfeit(&self) {
        self.lose("its lease is over");
        self.state
            .change(|state| state.forfeited = state.report.is_none() && !state.releasing);
    }

    /// Whether it is recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.state.lock().recorded.is_some()
    }

    /// What the owner says to the late report.
    pub(super) fn note_late_recorded(&self, recorded: Recorded) {
        self.state.change(|state| {
            if state.late {
                state.late_recorded.get_or_insert(recorded);
            }
        });
    }

    /// Whether it ended because its lease was over.
    pub(super) fn is_forfeited(&self) -> bool {
        self.state.lock().forfeited
    }

    /// Nothing is said of how it ended: the owner has ended it or will, and a word of ours would stand for the
    /// worker's own, which may still come.
    pub(super) async fn let_go(&self) {
        if let Some(claim) = self.claim.upgrade() {
            let items = vec![self.key()];
            claim.tell(ToWorker::Input(WorkerInput::NotStarted { items })).await;
        }
    }

    /// False if it was known before: the first word stands.
    pub(super) fn note_recorded(&self, recorded: Recorded) -> bool {
        let mut is_new = false;
        self.state.change(|state| {
            is_new = state.recorded.is_none();
            state.recorded.get_or_insert(recorded);
        });
        is_new
    }

    /// Nothing was done and nothing will be: it goes back, and costs the job no attempt (F14).
    pub(super) async fn release(&self) -> Result<(), Refusal> {
        let refused = {
            let mut state = self.state.lock();
            match (&state.report, state.lost) {
                (Some(_), _) => Some("it was reported"),
                (None, Some(why)) => Some(why),
                (None, None) => {
                    state.releasing = true;
                    None
                }
            }
        };
        if let Some(why) = refused {
            return Err(attempt_lost(why));
        }
        #[cfg(madsim)]
        if is_planted(Bug::HandBackDropped) {
            return Ok(());
        }
        // Before the run ends: its end would be an outcome.
        self.let_go().await;
        self.state.change(|state| state.released = true);
        Ok(())
    }

    /// The run behind it: ends as soon as anything ends it.
    pub(super) async fn run(&self) -> Outcome {
        let (mut extensions, _) = self.signal.lease();
        let mut told_cancel = false;
        loop {
            let mut changed = pin!(self.state.next_change());
            changed.as_mut().enable();
            let now = self.clock.mono();
            if let Some(outcome) = self.outcome(now) {
                return outcome;
            }
            let next = self.next_look();
            let told = pin!(self.signal.stopped_or_extended(extensions, told_cancel));
            match select(select(told, changed), self.clock.sleep(next.since(now))).await {
                Either::Left((Either::Left((heard, _)), _)) => match heard {
                    Ok((count, left)) => {
                        extensions = count;
                        let ends_at = self.clock.mono() + left;
                        self.state.change(|state| state.lease_ends_at = ends_at);
                    }
                    Err(StopReason::CancelRequested) => {
                        told_cancel = true;
                        self.state.change(|state| state.cancel = true);
                    }
                    Err(StopReason::LeaseLost) => self.forfeit(),
                    Err(StopReason::Draining) => self.lose("the server went away"),
                },
                Either::Left((Either::Right(_), _)) | Either::Right(_) => {}
            }
        }
    }

    /// When it may end by time alone.
    fn next_look(&self) -> Monotonic {
        let state = self.state.lock();
        match state.releasing {
            true => self.clock.mono() + self.patience,
            false => state.silent_at.min(self.timeout_at),
        }
    }

    /// How it ended, if it has.
    fn outcome(&self, now: Monotonic) -> Option<Outcome> {
        let mut state = self.state.lock();
        if let Some(report) = &state.report {
            return Some(outcome_of(report));
        }
        if state.releasing && !state.released {
            return None;
        }
        if now >= self.timeout_at {
            state.lost.get_or_insert("its time was over");
            let verdict = Verdict::TimedOut {
                effect: EffectProof::Unproven,
            };
            return Some(with_error(verdict, SILENT_TO_THE_END, OutputTail::default()));
        }
        if now >= state.silent_at {
            state.lost.get_or_insert("its worker was silent for a whole lease");
        }
        let why = state.lost.or(state.released.then_some("it was given back"))?;
        let error = format!("{SILENT}{why}");
        let (retry, effect) = (RetryAdvice::ByPolicy, EffectProof::Unproven);
        Some(failed(retry, effect, &error, OutputTail::default()))
    }

    async fn recorded(&self) -> Recorded {
        self.state.wait_for(|state| state.recorded).await
    }

    async fn late_recorded(&self) -> Recorded {
        self.state.wait_for(|state| state.late_recorded).await
    }
}

fn outcome_of(report: &Report) -> Outcome {
    let mut output = OutputTail::default();
    output.push(&report.output);
    match report.error.as_deref() {
        Some(error) => with_error(report.verdict, error, output),
        None => Outcome {
            verdict: report.verdict,
            error: None,
            output: output.into_output(),
        },
    }
}

/// After the word that the attempt ended with here, or that one would be the late one.
async fn tell_late(desk: Arc<Desk>, attempt: Arc<Attempt>, outcome: Outcome) {
    attempt.recorded().await;
    let (job, token) = attempt.key();
    let items = vec![(job, token, outcome)];
    desk.tell_clerk(WorkerInput::CameLate { items }).await;
}

impl Desk {
    /// A worker says that it lives and has these attempts. What is not its own, or not any more, is told as lost:
    /// one old grant must not cost it the others.
    pub fn beat(&self, worker: &Name, attempts: &[(String, Option<String>)]) -> Vec<Beat> {
        let each = attempts.iter().map(|(grant, progress)| {
            let sealed = self.seal.open(worker, grant);
            let found = sealed.and_then(|sealed| self.state().attempts.get(&(sealed.job, sealed.token)).cloned());
            let lost = Beat {
                left: None,
                cancel: false,
            };
            found.map_or(lost, |attempt| attempt.beat(progress.as_deref()))
        });
        each.collect()
    }

    /// A worker reports how an attempt ended. The answer means durable; the same report again is answered alike. One
    /// that comes after the attempt ended here goes to its owner all the same: it may settle an uncertain job (F18).
    ///
    /// # Errors
    /// It is not this worker's any more, or whether it is recorded is not known yet.
    pub async fn report(self: &Arc<Self>, worker: &Name, grant: &str, report: Report) -> Result<(), Refusal> {
        let attempt = self.reported(worker, grant)?;
        let (recorded, why) = match attempt.report(report, self.parts.level.get().hears_late_words())? {
            Heard::InTime => (attempt.recorded().boxed(), "the report came too late"),
            #[cfg(madsim)]
            Heard::Late(..) if is_planted(Bug::LateWordTakenForRecorded) => return Ok(()),
            Heard::Late(why, first) => {
                if let Some(outcome) = first {
                    self.note_late(attempt.key(), false);
                    // A caller that hangs up must not keep it from being told.
                    spawn(tell_late(self.clone(), attempt.clone(), outcome));
                }
                (attempt.late_recorded().boxed(), why)
            }
        };
        let limit = self.parts.clock.sleep(Span::from_millis(REPORT_WAIT_MS));
        match select(recorded, limit).await {
            Either::Left((Recorded::Recorded, _)) => Ok(()),
            Either::Left((Recorded::Stale, _)) => Err(attempt_lost(why)),
            Either::Right(_) => Err(outcome_unknown()),
        }
    }

    /// A worker gives an attempt back that it has not begun.
    ///
    /// # Errors
    /// It is not this worker's any more.
    pub async fn release(&self, worker: &Name, grant: &str) -> Result<(), Refusal> {
        let attempt = self.attempt(worker, grant)?;
        let (tell, told) = oneshot::channel();
        // A caller that hangs up must not leave it half given back.
        spawn(async move {
            let _ = tell.send(attempt.release().await);
        });
        told.await
            .unwrap_or_else(|_| Err(attempt_lost("the server is shutting down")))
    }
}
