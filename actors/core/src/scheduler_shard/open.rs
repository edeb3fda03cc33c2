//! Opening: builds the machine from its rows, and puts aside what cannot be evaluated.
//!
//! Owns: the load and quarantine (PROTOCOL F9). Must never: end the shell because of one schedule. Next:
//! `zone_data.rs`, the meeting with other zone data.

use super::SchedulerShard;
use super::backlog::Backlog;
use super::contradiction::{contradiction, is_dropped_odd, is_sound};
use super::index::Index;
use super::io::{LostCursor, ScheduleEffect, ScheduleOpened};
use super::live::Live;
use super::marks::{Poison, bound};
use super::past_lives::PastLives;
use super::settle::Case;
use super::step::Step;
use super::sweep::Sweep;
use super::tape::Piece;
use super::trial::Trials;
use super::version::Version;
use super::walk::Walk;
use crate::fate::{DEFINITION_UNKNOWN, FateCounts, FateKind};
use crate::job::FireCause;
use crate::level;
use crate::limits::{BATCH_BYTES_MAX, FIRES_PER_STEP_MAX};
use crate::machine::Out;
use crate::name::Name;
use crate::schedule::{BacklogRow, CursorRow, ScheduleDefinition};
use crate::self_audit::SelfAuditFault;
use crate::shard::ShardFacts;
use crate::time::{Now, StoreTime};
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
    /// Its self-audit found what must not be built upon.
    #[error(transparent)]
    SelfAudit(#[from] SelfAuditFault),
}

type Key = (Name, Name, crate::ids::Incarnation);

/// The rows of one schedule.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) cursor: CursorRow,
    pub(super) definitions: Vec<ScheduleDefinition>,
    pub(super) backlogs: Vec<BacklogRow>,
    /// Of the newest entry in its history of edits.
    pub(super) recorded_at: Option<StoreTime>,
    /// What is known against its versions.
    pub(super) poisons: Vec<Poison>,
    /// Its cursor is one in place of one that could not be read.
    pub(super) is_lost: bool,
    /// Why it must not be evaluated.
    pub(super) fault: Option<Arc<str>>,
}

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
            shard: facts.shard,
            bytes: BATCH_BYTES_MAX,
            is_full: false,
            // Nothing that has one is written here.
            level: level::OLDEST,
            zone_version: &zone_version,
        };
        let (is_careful, is_marked) = (opened.is_careful, opened.is_marked);
        let (schedules, rest) = gather(opened, &zone_version, now.store)?;
        let mut machine = SchedulerShard {
            facts,
            index: Index::default(),
            past: PastLives::default(),
            requests: Walk::default(),
            edits: Walk::default(),
            level: level::OLDEST,
            trials: Trials::default(),
            zone_version: Arc::clone(&zone_version),
            creations: 0,
            is_full: false,
            sweep: Sweep::new(now.mono),
            last: now,
        };
        for rows in schedules {
            match is_careful && rows.may_be_evaluated() {
                true => machine.trials.add(rows),
                false => machine.index.insert(load(&mut step, rows)),
            }
        }
        machine.trials.is_unproven = is_marked;
        machine.ask_trial(&mut step);
        for definitions in rest {
            machine.past.add(&definitions);
        }
        machine.past.begin_round();
        Ok(machine)
    }
}

/// Each schedule's rows together, and the definitions of lives that are over.
fn gather(
    opened: ScheduleOpened,
    zone_version: &Arc<str>,
    now: StoreTime,
) -> Result<(Vec<Rows>, impl Iterator<Item = Vec<ScheduleDefinition>>), OpenRefused> {
    let mut poisons: BTreeMap<(Name, Name), Vec<Poison>> = BTreeMap::new();
    for poison in opened.poisons {
        let name = (poison.tenant.clone(), poison.name.clone());
        poisons.entry(name).or_default().push(poison);
    }
    let recorded: BTreeMap<(Name, Name), StoreTime> = opened.recorded.into_iter().collect();
    let mut definitions = grouped(opened.definitions, |row| {
        (row.tenant.clone(), row.name.clone(), row.incarnation)
    });
    let mut backlogs = grouped(opened.backlogs, |row| {
        (row.tenant.clone(), row.name.clone(), row.incarnation)
    });
    let found = opened.lost.into_iter().filter_map(|lost| {
        let cursor = lost_cursor(&lost, &definitions, &backlogs, zone_version, now)?;
        Some((cursor, Some(lost.reason)))
    });
    let mut cursors: Vec<_> = found.collect();
    let lost_count = cursors.len();
    cursors.extend(opened.cursors.into_iter().map(|cursor| (cursor, None)));
    let mut schedules = Vec::with_capacity(cursors.len());
    for (place, (cursor, fault)) in cursors.into_iter().enumerate() {
        if cursor.zone_version > *zone_version {
            return Err(OpenRefused::NewerZoneData {
                name: cursor.name,
                theirs: cursor.zone_version,
                ours: Arc::clone(zone_version),
            });
        }
        let key: Key = (cursor.tenant.clone(), cursor.name.clone(), cursor.incarnation);
        let poisons = poisons.remove(&(cursor.tenant.clone(), cursor.name.clone()));
        let mut rows = Rows {
            definitions: definitions.remove(&key).unwrap_or_default(),
            backlogs: backlogs.remove(&key).unwrap_or_default(),
            poisons: poisons.unwrap_or_default(),
            recorded_at: recorded.get(&(cursor.tenant.clone(), cursor.name.clone())).copied(),
            cursor,
            is_lost: place < lost_count,
            fault,
        };
        rows.find_fault(&opened.unreadable);
        schedules.push(rows);
    }
    Ok((schedules, definitions.into_values()))
}

/// A cursor in place of one that could not be read. It stands where the closed fates end: what lies
/// between there and now was fired or not, nobody can say, and gets the fate *quarantined* of no known definition:
/// it is not made up again unless that is asked for.
fn lost_cursor(
    lost: &LostCursor,
    definitions: &BTreeMap<Key, Vec<ScheduleDefinition>>,
    backlogs: &BTreeMap<Key, Vec<BacklogRow>>,
    zone_version: &Arc<str>,
    now: StoreTime,
) -> Option<CursorRow> {
    let named = |key: &&Key| key.0 == lost.tenant && key.1 == lost.name;
    let key = definitions.keys().rfind(named)?;
    let versions = definitions.get(key)?;
    let (first, last) = (versions.first()?, versions.last()?);
    let (history_at, nominal) = lost.closed.unwrap_or((first.effective_at, first.effective_at));
    let backlogs = backlogs.get(key).map_or(&[][..], Vec::as_slice);
    let decided = backlogs.iter().map(|row| row.to).max();
    Some(CursorRow {
        tenant: lost.tenant.clone(),
        name: lost.name.clone(),
        incarnation: last.incarnation,
        definition: last.version,
        history_at,
        nominal: decided.map_or(nominal, |decided| decided.max(nominal)),
        offset: 0,
        zone_version: Arc::clone(zone_version),
        kept: None,
        dropped: Vec::new(),
        open: None,
        paused_at: None,
        finished_at: None,
        fired: 0,
        counts: FateCounts::default(),
        backlog_next: fresh_number(backlogs, now),
        requests: Vec::new(),
    })
}

/// A number that no backlog of this life has had, those included that are over and left no row: ids of jobs that run
/// again are made of it, and an id that comes twice contradicts the store. Seconds since 1970 are far beyond any count.
fn fresh_number(backlogs: &[BacklogRow], now: StoreTime) -> u32 {
    let known = backlogs.iter().map(|row| row.number.saturating_add(1)).max();
    let by_time = u32::try_from(now.secs()).unwrap_or(u32::MAX / 2);
    known.unwrap_or(1).max(by_time)
}

impl Rows {
    fn may_be_evaluated(&self) -> bool {
        self.fault.is_none()
    }

    /// Finds what is wrong with it before anything of it is evaluated.
    fn find_fault(&mut self, unreadable: &[(Name, Name, u64, Arc<str>)]) {
        let cursor = &self.cursor;
        let current = cursor.definition;
        let (bound, deadly) = bound(&self.poisons);
        let is_current = |(tenant, name, version, _): &&(Name, Name, u64, Arc<str>)| {
            *tenant == cursor.tenant && *name == cursor.name && *version == current
        };
        let missing = || self.definitions.iter().all(|row| row.version != current);
        let unread = || {
            unreadable
                .iter()
                .find(is_current)
                .map(|(.., reason)| Arc::clone(reason))
        };
        let missing = || missing().then(|| unread().unwrap_or_else(|| "its definition is missing".into()));
        let fault = self
            .fault
            .take()
            .or_else(|| deadly.filter(|_| current <= bound))
            .or_else(missing)
            .or_else(|| contradiction(cursor, &self.backlogs).map(Arc::from));
        self.fault = fault;
    }
}

fn grouped<T>(rows: Vec<T>, key: impl Fn(&T) -> Key) -> BTreeMap<Key, Vec<T>> {
    let mut groups: BTreeMap<Key, Vec<T>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(&row)).or_default().push(row);
    }
    groups
}

/// Builds one schedule from its rows: the first time that anything of it is evaluated.
pub(super) fn load(step: &mut Step<'_>, rows: Rows) -> Live {
    let mono = step.now.mono;
    let (mut cursor, mut fault) = (rows.cursor, rows.fault);
    if fault.is_some() {
        // What cannot be right is not built upon; the audit shows what it leaves uncovered.
        cursor.open = cursor.open.filter(|open| open.to == cursor.nominal);
        cursor.kept = None;
        if is_dropped_odd(&cursor) {
            cursor.dropped.clear();
        }
    }
    let sound = rows.backlogs.into_iter().filter(is_sound);
    let backlogs = sound.map(|row| (row.number, Backlog::new(row, mono, false)));
    let unevaluated = bound(&rows.poisons).0;
    let mut live = Live {
        versions: BTreeMap::new(),
        cursor,
        plan: None,
        backlogs: backlogs.collect(),
        quarantined: None,
        poisons: rows.poisons,
        dirty: false,
        recorded_at: rows.recorded_at,
    };
    for definition in rows.definitions {
        let number = definition.version;
        let version = match fault.is_some() || number <= unevaluated {
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
    if rows.is_lost {
        live.pass_unknown_of(step, FateKind::Quarantined, DEFINITION_UNKNOWN);
    }
    match fault {
        Some(reason) => live.quarantine(step, &reason),
        None => {
            live.acquit(step);
            live.meet_zone_data(step);
        }
    }
    live.replan(step.now.store);
    live.flush(step);
    live
}

impl Live {
    /// Puts the schedule aside, with a row that says why: what falls in this time has the fate
    /// *quarantined*.
    pub(super) fn quarantine(&mut self, step: &mut Step<'_>, reason: &str) {
        let reason: Arc<str> = reason.into();
        let is_new = self.poisons.iter().all(|known| known.is_past || known.reason != reason);
        self.mark_quarantined(step, &reason);
        self.quarantined = Some(reason);
        self.pass_unknown(step, FateKind::Quarantined);
        self.replan(step.now.store);
        if is_new {
            let (nominal, due) = (self.cursor.nominal, self.cursor.nominal);
            let cause = FireCause::Due;
            self.note(step, FateKind::Quarantined, &Case { nominal, due, cause }, None, None);
        }
    }

    /// Gives all up to now one fate, without asking the rule, which cannot be asked.
    pub(super) fn pass_unknown(&mut self, step: &mut Step<'_>, kind: FateKind) {
        self.pass_unknown_of(step, kind, self.cursor.definition);
    }

    fn pass_unknown_of(&mut self, step: &mut Step<'_>, kind: FateKind, definition: u64) {
        let to = step.now.store;
        if to <= self.cursor.nominal {
            return;
        }
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
}
