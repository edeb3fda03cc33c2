//! Decides what is due: fires it, or gives it the fate that its policy asks for.
//!
//! Owns: the misfire set and its policies (PROTOCOL F39), grace, tolerance, expiry. Must never: decide
//! in clock doubt, or walk over a missed stretch. Next: `tape.rs`, `backlog.rs`.

use super::io::{Fire, FireNote};
use super::live::{Live, Planned};
use super::step::Step;
use super::tape::{Bulk, Piece};
use super::version::{Discriminator, Version};
use crate::fate::FateKind;
use crate::job::{FireCause, Origin};
use crate::limits::COUNT_STEPS_MAX;
use crate::schedule::{MisfirePolicy, ScheduleSpec};
use crate::time::{Span, StoreTime};
use std::sync::Arc;

/// One occurrence under decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) nominal: StoreTime,
    pub(super) due: StoreTime,
    /// How it comes to make a job, if it does.
    pub(super) cause: FireCause,
}

impl Live {
    /// Decides all that is due, as far as the budget goes.
    pub(super) fn settle(&mut self, step: &mut Step<'_>) {
        while let Some(planned) = self.plan
            && planned.due <= step.now.store
            && !step.now.doubt
            && step.has_budget()
        {
            self.decide(step, planned);
            self.replan(step.now.store);
        }
    }

    /// Whether nothing that is due is left undecided.
    pub(super) fn is_settled(&self, step: &Step<'_>) -> bool {
        self.plan.is_none_or(|planned| planned.due > step.now.store)
    }

    fn decide(&mut self, step: &mut Step<'_>, planned: Planned) {
        let Some(version) = self.versions.get(&planned.version).map(Arc::clone) else {
            return self.quarantine(step, "a definition version is missing");
        };
        #[cfg(any(test, feature = "test-switches"))]
        crate::planted::evaluated(&self.cursor.name);
        step.spend();
        if planned.dropped {
            return self.withdraw(step, planned.nominal, planned.version);
        }
        let late = step.now.store.since(planned.due);
        if planned.kept || late <= version.definition.spec.tolerance {
            let case = Case {
                nominal: planned.nominal,
                due: planned.due,
                cause: FireCause::Due,
            };
            return self.decide_one(step, &version, case);
        }
        self.decide_set(step, &version, planned);
    }

    /// The oldest of the set is beyond tolerance: the policy judges all of it.
    fn decide_set(&mut self, step: &mut Step<'_>, version: &Version, planned: Planned) {
        let (now, spec) = (step.now.store, &version.definition.spec);
        let too_late = |most: Span| now - most - Span(1);
        if let Some(grace) = spec.grace
            && let Some(to) = self.newest_due(version, too_late(grace))
        {
            return self.pass(step, version, FateKind::SkippedGrace, to);
        }
        let newest = self.newest_due(version, now).unwrap_or(planned.nominal);
        let to_fire = self.newest_to_fire(version, newest);
        match spec.misfire {
            MisfirePolicy::Latest => self.decide_newest(step, version, to_fire, None),
            MisfirePolicy::Coalesce => self.decide_newest(step, version, to_fire, Some(planned.nominal)),
            MisfirePolicy::All { cap, rate } => self.cut_backlog(step, version, newest, (cap, rate)),
            MisfirePolicy::Skip => {
                let to = self.newest_due(version, too_late(spec.tolerance));
                self.pass(step, version, FateKind::SkippedMisfire, to.unwrap_or(planned.nominal));
            }
        }
    }

    /// One job for the newest; `first` is set when it stands for the others.
    fn decide_newest(&mut self, step: &mut Step<'_>, version: &Version, newest: StoreTime, first: Option<StoreTime>) {
        let table = &version.timetable;
        let dropped = self.dropped_up_to(version, newest).len() as u64;
        let count = table.count(self.cursor.nominal, newest).unwrap_or(COUNT_STEPS_MAX);
        let count = count.saturating_sub(dropped);
        let before = table.prev_at_or_before(newest - Span(1));
        if let Some(to) = before.filter(|to| *to > self.cursor.nominal) {
            let kind = match first {
                None => FateKind::SkippedMisfire,
                Some(_) => FateKind::Coalesced,
            };
            self.pass(step, version, kind, to);
        }
        let due = self
            .planned_after(self.cursor.nominal)
            .map_or(newest, |planned| planned.due);
        let cause = match first {
            None => FireCause::CatchUp,
            Some(first) => FireCause::Coalesced { first, count },
        };
        let nominal = newest;
        self.decide_one(step, version, Case { nominal, due, cause });
    }

    /// Gives one occurrence, the next of the line, its fate.
    pub(super) fn decide_one(&mut self, step: &mut Step<'_>, version: &Version, case: Case) {
        let kind = judge(&version.definition.spec, &case, step.now.store);
        let late = step.now.store.since(case.due);
        let piece = Piece {
            to: case.nominal,
            kind,
            count: Some(1),
            late: kind.is_fired().then_some(late),
            definition: version.definition.version,
        };
        self.grow_next(step, piece);
        let job = kind.is_fired().then(|| {
            self.cursor.fired += 1;
            fire(step, version, case, Discriminator::Occurrence)
        });
        self.note(step, kind, &case, Some(1), job);
    }

    /// Gives all occurrences up to `to` one fate, without walking over them; those that an edit dropped keep theirs.
    pub(super) fn pass(&mut self, step: &mut Step<'_>, version: &Version, kind: FateKind, to: StoreTime) {
        for dropped in self.dropped_up_to(version, to) {
            self.pass_alike(step, version, kind, dropped - Span(1));
            self.withdraw(step, dropped, version.definition.version);
        }
        self.pass_alike(step, version, kind, to);
    }

    fn pass_alike(&mut self, step: &mut Step<'_>, version: &Version, kind: FateKind, to: StoreTime) {
        if to <= self.cursor.nominal {
            return;
        }
        let definition = version.definition.version;
        let mut tape = self.tape(step.zone_version);
        let count = tape.pass(&version.timetable, Bulk { to, kind, definition }, step.out);
        self.cursor_moved(step);
        if count != Some(0) {
            let case = Case {
                nominal: to,
                due: to,
                cause: FireCause::Due,
            };
            self.note(step, kind, &case, count, None);
        }
    }

    pub(super) fn note(
        &self,
        step: &mut Step<'_>,
        kind: FateKind,
        case: &Case,
        count: Option<u64>,
        job: Option<crate::ids::JobId>,
    ) {
        step.note(FireNote {
            name: (self.cursor.tenant.clone(), self.cursor.name.clone()),
            incarnation: self.cursor.incarnation,
            kind,
            nominal: case.nominal,
            due: case.due,
            at: step.now.store,
            count,
            job,
            cause: job.map(|_| case.cause),
        });
    }
}

/// The fate of one due occurrence, on its own.
pub(super) fn judge(spec: &ScheduleSpec, case: &Case, now: StoreTime) -> FateKind {
    let late = now.since(case.due);
    let is_made_up = case.cause == FireCause::Backfill;
    if !is_made_up && spec.grace.is_some_and(|grace| late > grace) {
        return FateKind::SkippedGrace;
    }
    if spec.job.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return FateKind::Expired;
    }
    match late <= spec.tolerance {
        // What a person makes up was not fired when it was due.
        true if is_made_up => FateKind::FiredLate,
        true => FateKind::FiredOnTime,
        false if spec.misfire == MisfirePolicy::Skip && !is_made_up => FateKind::SkippedMisfire,
        false => FateKind::FiredLate,
    }
}

/// Orders the job of an occurrence.
pub(super) fn fire(
    step: &mut Step<'_>,
    version: &Version,
    case: Case,
    discriminator: Discriminator,
) -> crate::ids::JobId {
    let definition = &version.definition;
    let id = version.job_id(case.nominal, discriminator);
    step.spend_bytes(&definition.spec.job);
    step.fires.push(Fire {
        id,
        spec: Arc::clone(&definition.spec.job),
        origin: Origin::Occurrence {
            schedule: definition.name.clone(),
            incarnation: definition.incarnation,
            definition: definition.version,
            nominal: case.nominal,
            cause: case.cause,
        },
        due_at: case.due,
    });
    id
}
