//! Opening: builds the machine from its rows, and puts aside what cannot be evaluated.
//!
//! Owns: the load, quarantine (PROTOCOL F9) and the meeting with other zone data (F22). Must never:
//! end the shell because of one schedule.

use super::SchedulerShard;
use super::backlog::Backlog;
use super::index::Index;
use super::io::{ScheduleEffect, ScheduleOpened};
use super::live::Live;
use super::past_lives::PastLives;
use super::step::Step;
use super::sweep::Sweep;
use super::tape::{Bulk, Piece};
use super::version::Version;
use crate::fate::FateKind;
use crate::limits::{BATCH_BYTES_MAX, FIRES_PER_STEP_MAX};
use crate::machine::Out;
use crate::name::Name;
use crate::row::{QuarantineRow, Row};
use crate::schedule::{BacklogRow, CursorRow, EditKind, ScheduleDefinition};
use crate::shard::ShardFacts;
use crate::time::Now;
use crate::zone::ZoneVersion;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a shard is not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenRefused {
    /// A row was written with newer zone data: this build would fire it at other instants.
    #[error(
        "schedule '{name}' was planned with zone data {theirs}, newer than {ours} of this build; start a newer build"
    )]
    NewerZoneData {
        /// The schedule.
        name: Name,
        /// Version of its row.
        theirs: Arc<str>,
        /// Version of this build.
        ours: Arc<str>,
    },
}

type Key = (Name, Name, crate::ids::Incarnation);

impl SchedulerShard {
    /// Builds the machine from all rows of its kinds. Writes what quarantine and newer zone data ask for.
    pub fn open(
        facts: ShardFacts,
        opened: ScheduleOpened,
        now: Now,
        out: &mut Out<ScheduleEffect>,
    ) -> Result<SchedulerShard, OpenRefused> {
        let zone_version: Arc<str> = ZoneVersion::bundled().as_str().into();
        let mut fires = Vec::new();
        let mut step = Step {
            now,
            out,
            fires: &mut fires,
            budget: FIRES_PER_STEP_MAX,
            bytes: BATCH_BYTES_MAX,
            is_full: false,
            zone_version: &zone_version,
        };
        let mut index = Index::default();
        let mut suspects: BTreeMap<(Name, Name), Arc<str>> = BTreeMap::new();
        for (tenant, name, reason) in opened.quarantined {
            suspects.insert((tenant, name), reason);
        }
        let mut definitions = grouped(opened.definitions, |row| {
            (row.tenant.clone(), row.name.clone(), row.incarnation)
        });
        let mut backlogs = grouped(opened.backlogs, |row| {
            (row.tenant.clone(), row.name.clone(), row.incarnation)
        });
        for cursor in opened.cursors {
            if cursor.zone_version > zone_version {
                return Err(OpenRefused::NewerZoneData {
                    name: cursor.name,
                    theirs: cursor.zone_version,
                    ours: zone_version,
                });
            }
            let key: Key = (cursor.tenant.clone(), cursor.name.clone(), cursor.incarnation);
            let suspect = suspects.get(&(cursor.tenant.clone(), cursor.name.clone())).cloned();
            let rows = (
                definitions.remove(&key).unwrap_or_default(),
                backlogs.remove(&key).unwrap_or_default(),
            );
            index.insert(load(&mut step, facts, cursor, rows, suspect));
        }
        let mut past = PastLives::default();
        for definitions in definitions.values() {
            past.add(definitions);
        }
        past.begin_round();
        Ok(SchedulerShard {
            facts,
            index,
            past,
            zone_version,
            creations: 0,
            is_full: false,
            sweep: Sweep::new(now.mono),
            last: now,
        })
    }
}

fn grouped<T>(rows: Vec<T>, key: impl Fn(&T) -> Key) -> BTreeMap<Key, Vec<T>> {
    let mut groups: BTreeMap<Key, Vec<T>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(&row)).or_default().push(row);
    }
    groups
}

fn load(
    step: &mut Step<'_>,
    facts: ShardFacts,
    cursor: CursorRow,
    (definitions, backlogs): (Vec<ScheduleDefinition>, Vec<BacklogRow>),
    suspect: Option<Arc<str>>,
) -> Live {
    let mono = step.now.mono;
    let mut cursor = cursor;
    let mut fault = suspect.or_else(|| contradiction(&cursor, &backlogs).map(Arc::from));
    if fault.is_some() {
        // What cannot be right is not built upon; the audit shows what it leaves uncovered.
        cursor.open = cursor.open.filter(|open| open.to == cursor.nominal);
        cursor.kept = None;
    }
    let sound = backlogs.into_iter().filter(is_sound);
    let backlogs = sound.map(|row| (row.number, Backlog::new(row, mono, false)));
    let mut live = Live {
        versions: BTreeMap::new(),
        cursor,
        plan: None,
        backlogs: backlogs.collect(),
        quarantined: None,
        dirty: false,
    };
    for definition in definitions {
        let number = definition.version;
        let version = match fault.is_some() {
            true => Version::broken(definition),
            false => Version::compile(definition.clone()).unwrap_or_else(|refusal| {
                if number == live.cursor.definition {
                    fault = Some(refusal.to_string().into());
                }
                Version::broken(definition)
            }),
        };
        live.versions.insert(number, Arc::new(version));
    }
    if live.current().is_none() {
        fault.get_or_insert_with(|| "its definition is missing".into());
    }
    match fault {
        Some(reason) => live.quarantine_row(step, facts, &reason),
        None => live.meet_zone_data(step),
    }
    live.replan(step.now.store);
    live.flush(step);
    live
}

/// What a row that was read cannot say, if it says so.
fn contradiction(cursor: &CursorRow, backlogs: &[BacklogRow]) -> Option<&'static str> {
    let open = cursor.open.as_ref();
    let is_odd = |row: &BacklogRow| !is_sound(row) || row.to > cursor.nominal || row.number >= cursor.backlog_next;
    if open.is_some_and(|open| open.to != cursor.nominal || open.from >= open.to) {
        return Some("the open fate span of its cursor row does not end at the cursor");
    }
    if cursor.kept.is_some_and(|kept| kept.nominal <= cursor.nominal) || cursor.history_at > cursor.nominal {
        return Some("its cursor row contradicts itself");
    }
    backlogs
        .iter()
        .any(is_odd)
        .then_some("a backlog row of it contradicts itself")
}

fn is_sound(row: &BacklogRow) -> bool {
    let ends_at_progress = row
        .open
        .as_ref()
        .is_none_or(|open| open.to == row.from && open.from < open.to);
    row.from < row.to && ends_at_progress
}

impl Live {
    /// Puts the schedule aside: what falls in this time has the fate *quarantined*.
    pub(super) fn quarantine(&mut self, step: &mut Step<'_>, reason: &str) {
        self.quarantined = Some(reason.into());
        self.pass_unknown(step, FateKind::Quarantined);
        self.replan(step.now.store);
    }

    fn quarantine_row(&mut self, step: &mut Step<'_>, facts: ShardFacts, reason: &str) {
        self.quarantine(step, reason);
        let key = format!("schedule/{}/{}", self.cursor.tenant, self.cursor.name);
        step.out.put(Row::Quarantine(Box::new(QuarantineRow {
            shard: facts.shard,
            key: key.as_bytes().into(),
            reason: reason.into(),
            at: step.now.store,
            deaths: 0,
        })));
    }

    /// Gives all up to now one fate, without asking the rule, which cannot be asked.
    pub(super) fn pass_unknown(&mut self, step: &mut Step<'_>, kind: FateKind) {
        let to = step.now.store;
        if to <= self.cursor.nominal {
            return;
        }
        let definition = self.cursor.definition;
        let piece = Piece {
            to,
            kind,
            count: None,
            late: None,
            definition,
        };
        self.tape(step.zone_version).grow(piece, step.out);
        self.cursor_moved(step);
    }

    /// Newer zone data is an edit at now (F22): of a fixed-time rule, the next occurrence must be later
    /// by the local clock too, or the same local day would fire twice.
    fn meet_zone_data(&mut self, step: &mut Step<'_>) {
        let Some(version) = self.current() else {
            return;
        };
        let table = &version.timetable;
        let moved = i64::from(self.cursor.offset) - i64::from(table.offset_at(self.cursor.nominal));
        let is_same = self.cursor.zone_version == *step.zone_version || moved == 0;
        if is_same || !table.is_fixed_time() {
            return;
        }
        let number = version.definition.version;
        self.record(step, EditKind::ZoneData, (number, number), None);
        let local = |at, offset: i32| at + i64::from(offset) * crate::time::MICROS;
        let shown = local(self.cursor.nominal.0, self.cursor.offset);
        while let Some(next) = table.next_raw(self.cursor.nominal)
            && local(next.0, table.offset_at(next)) <= shown
            && !table.is_second_pass(next)
        {
            let bulk = Bulk {
                to: next,
                kind: FateKind::WithdrawnEdit,
                definition: number,
            };
            self.tape(step.zone_version).pass(table, bulk, step.out);
            self.cursor_moved(step);
        }
        self.cursor_moved(step);
    }
}
