//! Making a schedule: a new one has missed nothing.
//!
//! Owns: the first rows of an incarnation (PROTOCOL F27). Must never: revive an older incarnation.

use super::SchedulerShard;
use super::live::Live;
use super::refusals;
use super::step::Step;
use super::validate::{resolve_hashes, validate};
use super::version::Version;
use crate::fate::FateCounts;
use crate::ids::Incarnation;
use crate::limits::SCHEDULES_PER_SHARD_MAX;
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::row::Row;
use crate::schedule::{CursorRow, EditKind, EditRow, Rule, ScheduleDefinition, ScheduleSpec};
use crate::time::{Span, StoreTime};
use std::collections::BTreeMap;
use std::sync::Arc;

impl SchedulerShard {
    pub(super) fn on_create(
        &mut self,
        step: &mut Step<'_>,
        reply: ReplyTo,
        name: (Name, Name),
        spec: ScheduleSpec,
        paused: bool,
    ) {
        let answer = self.create(step, &name, spec, paused).and_then(|place| {
            let settled = self.index.with(place, |live| {
                live.settle(step);
                live.flush(step);
                live.view()
            });
            settled.unwrap_or_else(|| Err(refusals::not_found(name.1.as_str())))
        });
        step.reply(reply, answer);
    }

    fn create(
        &mut self,
        step: &mut Step<'_>,
        name: &(Name, Name),
        mut spec: ScheduleSpec,
        paused: bool,
    ) -> Result<usize, Refusal> {
        if !self.is_home_of(name) {
            return Err(refusals::other_shard());
        }
        if self.index.find(name).is_some() {
            return Err(refusals::exists(name.1.as_str()));
        }
        step.need_room()?;
        if self.index.len() >= SCHEDULES_PER_SHARD_MAX {
            return Err(refusals::too_many(SCHEDULES_PER_SHARD_MAX));
        }
        check_spec(&mut spec, name)?;
        refusals::need_memory(self.index.bytes(), spec.weight())?;
        let now = step.now.store;
        let begin = begin_of(&spec, now);
        let definition = ScheduleDefinition {
            tenant: name.0.clone(),
            name: name.1.clone(),
            incarnation: self.next_incarnation(),
            version: 1,
            created_at: now,
            effective_at: begin,
            spec,
        };
        let version = Version::compile(definition)?;
        if version.timetable.next_raw(begin).is_none() {
            return Err(refusals::never_fires());
        }
        let mut live = Live::first(version, begin, step);
        live.cursor.paused_at = paused.then_some(now);
        live.replan(now);
        live.record(step, EditKind::Created, (0, 1), None);
        self.index.insert(live);
        self.index
            .find(name)
            .ok_or_else(|| refusals::not_found(name.1.as_str()))
    }

    /// Unique without tombstones: counted within the epoch, which no other owner shares.
    fn next_incarnation(&mut self) -> Incarnation {
        self.creations += 1;
        Incarnation {
            generation: self.facts.generation,
            epoch: self.facts.epoch,
            batch: self.creations,
            place: 0,
        }
    }
}

/// Resolves `H` where that is still to be done, and finds the first fault.
pub(super) fn check_spec(spec: &mut ScheduleSpec, name: &(Name, Name)) -> Result<(), Refusal> {
    resolve_hashes(spec, &name.0, &name.1)?;
    validate(spec).into_iter().next().map_or(Ok(()), Err)
}

/// Occurrences before creation do not exist, but for a one-shot: a past instant is its occurrence.
fn begin_of(spec: &ScheduleSpec, now: StoreTime) -> StoreTime {
    match &spec.rule {
        Rule::Once { at, .. } => now.min(*at - Span(1)),
        Rule::Cron { .. } | Rule::Interval { .. } => now,
    }
}

impl Live {
    /// A schedule at the begin of its history.
    fn first(version: Version, begin: StoreTime, step: &mut Step<'_>) -> Live {
        let definition = version.definition.clone();
        let cursor = CursorRow {
            tenant: definition.tenant.clone(),
            name: definition.name.clone(),
            incarnation: definition.incarnation,
            definition: definition.version,
            history_at: begin,
            nominal: begin,
            offset: version.timetable.offset_at(begin),
            zone_version: Arc::clone(step.zone_version),
            kept: None,
            dropped: Vec::new(),
            open: None,
            paused_at: None,
            finished_at: None,
            fired: 0,
            counts: FateCounts::default(),
            backlog_next: 1,
            requests: Vec::new(),
        };
        step.out.insert(Row::Definition(Box::new(definition)));
        Live {
            versions: BTreeMap::from([(1, Arc::new(version))]),
            cursor,
            plan: None,
            backlogs: BTreeMap::new(),
            quarantined: None,
            poisons: Vec::new(),
            dirty: true,
            recorded_at: None,
        }
    }

    /// Adds to the history of edits. Two entries of one instant, as while the store's clock is held, must
    /// not take each other's place: the later one moves up by a microsecond.
    pub(super) fn record(
        &mut self,
        step: &mut Step<'_>,
        kind: EditKind,
        (from_version, to_version): (u64, u64),
        pending: Option<(StoreTime, crate::schedule::PendingFate)>,
    ) {
        let at = self
            .recorded_at
            .map_or(step.now.store, |last| step.now.store.max(last + Span(1)));
        self.recorded_at = Some(at);
        step.out.put(Row::Edit(Box::new(EditRow {
            tenant: self.cursor.tenant.clone(),
            name: self.cursor.name.clone(),
            incarnation: self.cursor.incarnation,
            at,
            kind,
            from_version,
            to_version,
            pending,
        })));
    }
}
