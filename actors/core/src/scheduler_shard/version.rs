//! One version of a definition, ready to be asked, with the jitter of its occurrences.
//!
//! Owns: the pair of definition and timetable. Must never: know cursors (see `live.rs`).

use super::timetable::Timetable;
use crate::ids::{JobId, Slot, hash64};
use crate::refusal::Refusal;
use crate::schedule::ScheduleDefinition;
use crate::time::{Span, StoreTime};

/// A definition version and its timetable.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) definition: ScheduleDefinition,
    pub(super) timetable: Timetable,
}

/// Where a job of a schedule comes from, as far as its id is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Discriminator {
    /// The occurrence itself: it can make one job.
    Occurrence,
    /// A run-now request, and the instant of its entry in the history: a key that is used anew makes another.
    RunNow(u64, StoreTime),
    /// A backfill request that runs again what fired already.
    Rerun(u64),
}

impl Version {
    /// Ready to be asked.
    pub(super) fn compile(definition: ScheduleDefinition) -> Result<Version, Refusal> {
        #[cfg(any(test, feature = "test-switches"))]
        crate::planted::evaluated(&definition.name);
        let timetable = Timetable::compile(&definition.spec, definition.effective_at)?;
        Ok(Version { definition, timetable })
    }

    /// Cannot be evaluated: asks for nothing.
    pub(super) fn broken(definition: ScheduleDefinition) -> Version {
        Version {
            definition,
            timetable: Timetable::never(),
        }
    }

    /// Whether it cannot be evaluated.
    pub(super) fn is_broken(&self) -> bool {
        self.timetable.is_never()
    }

    /// When an occurrence is due whose successor is `next` (F21): due order is nominal order.
    pub(super) fn due(&self, nominal: StoreTime, next: Option<StoreTime>) -> StoreTime {
        let window = self.definition.spec.jitter;
        let window = next.map_or(window, |next| window.min(next.since(nominal)));
        if window == Span::ZERO {
            return nominal;
        }
        let definition = &self.definition;
        let hash = hash64(
            "jitter",
            &[
                definition.tenant.as_bytes(),
                definition.name.as_bytes(),
                &definition.incarnation.to_bytes(),
                &nominal.0.to_be_bytes(),
            ],
        );
        nominal + Span(hash % window.0)
    }

    /// Whether jitter moves anything.
    pub(super) fn has_jitter(&self) -> bool {
        self.definition.spec.jitter > Span::ZERO
    }

    /// The id of a job of this schedule.
    pub(super) fn job_id(&self, nominal: StoreTime, discriminator: Discriminator) -> JobId {
        let definition = &self.definition;
        let request = |word: &[u8], number: u64| [word, &number.to_be_bytes()].concat();
        let (nominal, discriminator) = match discriminator {
            Discriminator::Occurrence => (nominal, Vec::new()),
            Discriminator::RunNow(number, at) => (at, request(b"run-now", number)),
            Discriminator::Rerun(number) => (nominal, request(b"backfill", number)),
        };
        JobId::of_occurrence(
            Slot::of_schedule(&definition.tenant, &definition.name),
            (&definition.tenant, &definition.name),
            definition.incarnation,
            nominal,
            &discriminator,
        )
    }
}
