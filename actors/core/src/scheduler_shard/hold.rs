//! Pause, resume and delete.
//!
//! Owns: the fates *paused* and *withdrawn by delete*. On a full disk both also take what was due and
//! found no room. Must never: touch a job: those that wait when
//! their schedule is deleted stay and run, and the answer of the API says so.

use super::SchedulerShard;
use super::io::ScheduleReply;
use super::live::Live;
use super::refusals;
use super::step::Step;
use super::version::Version;
use crate::fate::FateKind;
use crate::ids::Slot;
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::row::RowKey;
use crate::schedule::EditKind;
use std::sync::Arc;

impl SchedulerShard {
    pub(super) fn on_pause(&mut self, step: &mut Step<'_>, reply: ReplyTo, name: &(Name, Name)) {
        let answer = self.find(name).and_then(|place| self.touch(step, place, Live::pause));
        step.reply(reply, answer);
    }

    pub(super) fn on_resume(&mut self, step: &mut Step<'_>, reply: ReplyTo, name: &(Name, Name)) {
        let found = step.need_room().and_then(|()| self.find(name));
        let answer = found.and_then(|place| self.touch(step, place, Live::resume));
        step.reply(reply, answer);
    }

    pub(super) fn on_delete(&mut self, step: &mut Step<'_>, reply: ReplyTo, name: &(Name, Name)) {
        let answer = self.find(name).and_then(|place| {
            let answer = self.touch(step, place, Live::delete);
            if answer.is_ok() {
                let removed = self.index.remove(place);
                removed.iter().for_each(|live| self.past.bury(live));
            }
            answer
        });
        step.reply(reply, answer);
    }
}

impl Live {
    fn pause(&mut self, step: &mut Step<'_>) -> Result<ScheduleReply, Refusal> {
        if self.cursor.paused_at.is_none() {
            self.cursor.paused_at = Some(step.now.store);
            self.dirty = true;
            let version = self.cursor.definition;
            self.record(step, EditKind::Paused, (version, version), None);
            self.replan(step.now.store);
        }
        self.view()
    }

    /// Ends a pause; what is in quarantine is evaluated again first, as a person asks for it.
    fn resume(&mut self, step: &mut Step<'_>) -> Result<ScheduleReply, Refusal> {
        if self.quarantined.is_some() {
            self.try_again(step)?;
        }
        if self.cursor.paused_at.is_some() {
            self.pass_line(step, FateKind::Paused, step.now.store);
            self.cursor.paused_at = None;
            self.dirty = true;
            let version = self.cursor.definition;
            self.record(step, EditKind::Resumed, (version, version), None);
            self.replan(step.now.store);
        }
        self.view()
    }

    /// Evaluates what was put aside. If that ends the process, its row still stands at the next start.
    fn try_again(&mut self, step: &mut Step<'_>) -> Result<(), Refusal> {
        let Some(current) = self.current() else {
            return self.view().map(drop);
        };
        let compiled = Version::compile(current.definition.clone());
        compiled.map_err(|refusal| refusals::quarantined(&refusal.to_string()))?;
        self.pass_unknown(step, FateKind::Quarantined);
        for version in self.versions.values_mut().filter(|version| version.is_broken()) {
            if let Ok(whole) = Version::compile(version.definition.clone()) {
                *version = Arc::new(whole);
            }
        }
        self.quarantined = None;
        self.drop_marks(step);
        self.dirty = true;
        let version = self.cursor.definition;
        self.record(step, EditKind::Resumed, (version, version), None);
        self.replan(step.now.store);
        Ok(())
    }

    /// The planned fire, what a pause hid and what backlogs still owe get their last fate; fates and
    /// definitions stay as history, the cursor goes.
    fn delete(&mut self, step: &mut Step<'_>) -> Result<ScheduleReply, Refusal> {
        let mut planned = None;
        if self.quarantined.is_some() {
            self.pass_unknown(step, FateKind::Quarantined);
        } else if self.cursor.paused_at.is_some() {
            self.pass_line(step, FateKind::Paused, step.now.store);
        } else {
            if !self.is_settled(step) {
                self.pass_line(step, FateKind::WithdrawnDelete, step.now.store);
                self.replan(step.now.store);
            }
            planned = self.next_fire();
            if let Some(planned) = planned {
                self.grow_one(step, planned.nominal, FateKind::WithdrawnDelete, planned.version);
            }
        }
        let numbers: Vec<u32> = self.backlogs.keys().copied().collect();
        for number in numbers {
            self.close_backlog(step, number, FateKind::WithdrawnDelete);
        }
        self.drop_marks(step);
        self.tape(step.zone_version).close(step.out);
        let version = self.cursor.definition;
        self.record(
            step,
            EditKind::Deleted,
            (version, version),
            planned.map(|planned| (planned.nominal, crate::schedule::PendingFate::Drop)),
        );
        let (tenant, name) = (self.cursor.tenant.clone(), self.cursor.name.clone());
        step.out
            .delete(RowKey::Cursor(Slot::of_schedule(&tenant, &name), tenant, name));
        self.plan = None;
        self.dirty = false;
        Ok(ScheduleReply::Deleted)
    }
}
