//! Rows of the quarantine range that speak of schedules and of the shard's owner (PROTOCOL F9).
//!
//! Owns: their keys, and what they tell the next owner. Must never: evaluate a schedule. Next:
//! `trial.rs` (one by one behind a mark), `open.rs`.
//!
//! - `owner`: an owner has begun to evaluate and has not proven yet that it survives what is here; or one
//!   was told to stop before it had tried all, and the next goes on with the trials.
//! - `trying/TENANT/NAME/VERSION`: this one is evaluated alone; found by another process, it died of it.
//! - `schedule/TENANT/NAME/VERSION`: in quarantine, or, with one death, to be tried last.
//! - `past/TENANT/NAME/VERSION`: an edit replaced it; still never to be evaluated.

use super::Live;
use super::step::Step;
use crate::ids::ShardId;
use crate::limits::TRIAL_DEATHS_MAX;
use crate::machine::{Expect, Write};
use crate::name::Name;
use crate::row::{QuarantineRow, Row, RowKey};
use crate::time::StoreTime;
use std::sync::Arc;

const OWNER: &[u8] = b"owner";
/// In place of a process in the owner's mark: it was told to stop, and that is no death.
const LEFT: &str = "left";
const TRYING: &str = "trying";
const SCHEDULE: &str = "schedule";
const PAST: &str = "past";

/// What is known against a version of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poison {
    /// Tenant.
    pub tenant: Name,
    /// Schedule.
    pub name: Name,
    /// This version, and with deaths enough those before it.
    pub version: u64,
    /// Owners that ended while they tried it alone.
    pub deaths: u32,
    /// Why, for people.
    pub reason: Arc<str>,
    /// Since when.
    pub at: StoreTime,
    /// An edit has replaced the version.
    pub is_past: bool,
}

/// What an owner finds in the quarantine range, and what it must write before it evaluates anything.
#[derive(Clone, Debug, Default)]
pub struct OwnerMarks {
    /// Durable before the first evaluation.
    pub writes: Vec<Write>,
    /// Owners in a row that ended before they had proven themselves.
    pub deaths: u32,
    /// All that is known against schedules.
    pub poisons: Vec<Poison>,
}

/// Whether a row is a mark of the shard's own rather than a row in quarantine.
pub fn is_mark(row: &QuarantineRow) -> bool {
    let begins = |word: &str| row.key.starts_with(word.as_bytes()) && row.key.get(word.len()) == Some(&b'/');
    &*row.key == OWNER || begins(TRYING) || begins(PAST) || (begins(SCHEDULE) && is_suspicion(row.deaths))
}

/// The schedule that a row puts into quarantine, if it is a whole schedule.
pub fn schedule_in(row: &QuarantineRow) -> Option<(Name, Name)> {
    let (word, poison) = parse(row)?;
    (word == SCHEDULE).then_some((poison.tenant, poison.name))
}

/// Died once: it is tried again, after the others.
fn is_suspicion(deaths: u32) -> bool {
    (1..TRIAL_DEATHS_MAX).contains(&deaths)
}

/// The key of the row that holds a schedule's quarantine, were its current definition this version.
pub fn quarantine_key(shard: ShardId, tenant: &Name, name: &Name, version: u64) -> RowKey {
    RowKey::Quarantine(shard, text_key(SCHEDULE, tenant, name, version))
}

/// The key of the owner's mark.
pub(super) fn owner_key(shard: ShardId) -> RowKey {
    RowKey::Quarantine(shard, OWNER.into())
}

/// Reads the marks of earlier owners. `boot` names this process: its own marks are no deaths.
pub fn read_marks(shard: ShardId, rows: &[QuarantineRow], boot: &str, at: StoreTime) -> OwnerMarks {
    let mut marks = OwnerMarks::default();
    let owner = rows.iter().find(|row| &*row.key == OWNER);
    let is_other = owner.is_none_or(|row| &*row.reason != boot && &*row.reason != LEFT);
    marks.deaths = owner.map_or(0, |row| row.deaths.saturating_add(u32::from(is_other)));
    for row in rows {
        let Some((word, poison)) = parse(row) else { continue };
        match word {
            SCHEDULE | PAST => marks.poisons.push(poison),
            _ => marks
                .writes
                .push(Write::Delete(RowKey::Quarantine(shard, row.key.clone()))),
        }
    }
    for row in rows.iter().filter(|_| is_other) {
        if let Some((TRYING, tried)) = parse(row) {
            let poison = one_more_death(&mut marks.poisons, tried, at);
            let row = poison.row(shard);
            marks.writes.push(put(row));
        }
    }
    marks.writes.push(put(owner_row(shard, boot, at, marks.deaths)));
    marks
}

/// What an owner writes that was told to stop before its shard was open: its mark is no death.
pub fn leave_marks(shard: ShardId, rows: &[QuarantineRow], boot: &str, at: StoreTime) -> Vec<Write> {
    let owner = rows.iter().find(|row| &*row.key == OWNER && &*row.reason == boot);
    owner.map_or_else(Vec::new, |row| vec![left(shard, at, row.deaths)])
}

/// The owner's mark after an orderly end: none, or one that keeps the next owner careful.
pub(super) fn left(shard: ShardId, at: StoreTime, deaths: u32) -> Write {
    match deaths {
        0 => Write::Delete(owner_key(shard)),
        deaths => put(owner_row(shard, LEFT, at, deaths)),
    }
}

fn owner_row(shard: ShardId, reason: &str, at: StoreTime, deaths: u32) -> QuarantineRow {
    QuarantineRow {
        shard,
        key: OWNER.into(),
        reason: reason.into(),
        at,
        deaths,
    }
}

/// Counts a death in its own trial.
fn one_more_death(poisons: &mut Vec<Poison>, tried: Poison, at: StoreTime) -> Poison {
    let is_it =
        |known: &Poison| known.tenant == tried.tenant && known.name == tried.name && known.version == tried.version;
    let before = poisons.iter().position(is_it).map(|place| poisons.swap_remove(place));
    let deaths = before.map_or(0, |known| known.deaths).saturating_add(1);
    let poison = Poison {
        deaths,
        reason: format!("the process ended {deaths} times while it evaluated this schedule alone").into(),
        at,
        is_past: false,
        ..tried
    };
    poisons.push(poison.clone());
    poison
}

/// The mark of a trial.
pub(super) fn trying_row(shard: ShardId, poison: &Poison) -> QuarantineRow {
    QuarantineRow {
        key: text_key(TRYING, &poison.tenant, &poison.name, poison.version),
        ..poison.row(shard)
    }
}

fn put(row: QuarantineRow) -> Write {
    Write::Put {
        row: Row::Quarantine(Box::new(row)),
        expect: Expect::Any,
    }
}

fn text_key(word: &str, tenant: &Name, name: &Name, version: u64) -> Arc<[u8]> {
    format!("{word}/{tenant}/{name}/{version}").into_bytes().into()
}

/// The word and the version that a key names; keys of rows that cannot be read are none.
fn parse(row: &QuarantineRow) -> Option<(&'static str, Poison)> {
    let text = std::str::from_utf8(&row.key).ok()?;
    let mut parts = text.split('/');
    let word = match parts.next()? {
        TRYING => TRYING,
        SCHEDULE => SCHEDULE,
        PAST => PAST,
        _ => return None,
    };
    let (tenant, name) = (Name::new(parts.next()?).ok()?, Name::new(parts.next()?).ok()?);
    let version = parts.next()?.parse().ok()?;
    let poison = Poison {
        tenant,
        name,
        version,
        deaths: row.deaths,
        reason: row.reason.clone(),
        at: row.at,
        is_past: word == PAST,
    };
    parts.next().is_none().then_some((word, poison))
}

impl Poison {
    /// Whether its version is never evaluated.
    pub fn is_deadly(&self) -> bool {
        self.deaths >= TRIAL_DEATHS_MAX
    }

    fn key(&self, shard: ShardId) -> RowKey {
        RowKey::Quarantine(shard, self.row(shard).key)
    }

    fn row(&self, shard: ShardId) -> QuarantineRow {
        let word = if self.is_past { PAST } else { SCHEDULE };
        QuarantineRow {
            shard,
            key: text_key(word, &self.tenant, &self.name, self.version),
            reason: self.reason.clone(),
            at: self.at,
            deaths: self.deaths,
        }
    }
}

/// The newest version that must not be evaluated, 0 for none, and why.
pub(super) fn bound(poisons: &[Poison]) -> (u64, Option<Arc<str>>) {
    let deadly = poisons.iter().filter(|poison| poison.is_deadly());
    let last = deadly.max_by_key(|poison| poison.version);
    last.map_or((0, None), |poison| (poison.version, Some(poison.reason.clone())))
}

impl Live {
    /// Writes the row of its quarantine, unless it stands already.
    pub(super) fn mark_quarantined(&mut self, step: &mut Step<'_>, reason: &Arc<str>) {
        let version = self.cursor.definition;
        let stands = |known: &Poison| known.version == version && !known.is_past && known.reason == *reason;
        if self.poisons.iter().any(stands) {
            return;
        }
        let poison = Poison {
            tenant: self.cursor.tenant.clone(),
            name: self.cursor.name.clone(),
            version,
            deaths: 0,
            reason: Arc::clone(reason),
            at: step.now.store,
            is_past: false,
        };
        self.poisons.retain(|known| known.version != version || known.is_past);
        step.out.put(Row::Quarantine(Box::new(poison.row(step.shard))));
        self.poisons.push(poison);
    }

    /// It was evaluated and nothing happened: what was held against it goes, but for past versions.
    pub(super) fn acquit(&mut self, step: &mut Step<'_>) {
        for poison in self.poisons.extract_if(.., |poison| !poison.is_past) {
            step.out.delete(poison.key(step.shard));
        }
    }

    /// Its definition was replaced: versions that are deadly stay so.
    pub(super) fn leave_behind(&mut self, step: &mut Step<'_>) {
        for mut poison in std::mem::take(&mut self.poisons) {
            if !poison.is_past {
                step.out.delete(poison.key(step.shard));
            }
            if poison.is_deadly() {
                poison.is_past = true;
                step.out.put(Row::Quarantine(Box::new(poison.row(step.shard))));
                self.poisons.push(poison);
            }
        }
    }

    /// It goes, or a person vouches for all of it.
    pub(super) fn drop_marks(&mut self, step: &mut Step<'_>) {
        for poison in std::mem::take(&mut self.poisons) {
            step.out.delete(poison.key(step.shard));
        }
    }
}
