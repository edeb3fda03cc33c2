//! The lives of a schedule, as rows and requests tell them: what each asked for and what became of it.
//!
//! Owns: which instants belong to which definition (PROTOCOL F25), from the plain rules. Must never:
//! judge. Next: `no_missed_fire.rs`.

use super::{Evidence, tag_of};
use crate::spec::PlainSpec;
use fencepost_core::fate::{FateKind, FateSpan};
use fencepost_core::ids::Incarnation;
use fencepost_core::job::{FireCause, Job, Origin};
use fencepost_core::name::Name;
use fencepost_core::row::Row;
use fencepost_core::schedule::{CursorRow, EditKind, EditRow, PendingFate, ScheduleDefinition};
use std::collections::BTreeMap;

/// A stretch `(from, to]` and its fate; `None` while a backlog holds it.
pub struct Tile {
    pub from: i64,
    pub to: i64,
    pub kind: Option<FateKind>,
    pub count: Option<u64>,
    pub definition: u64,
}

/// An instant that some definition asks for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// By version of a definition that asks for it, whether its calendar leaves the day out. Two when
    /// an edit kept what the new definition asks for too.
    pub by: BTreeMap<u64, bool>,
    /// A later edit may have taken it back.
    pub is_optional: bool,
}

impl Asked {
    /// Whether every definition that asks for it leaves its day out.
    pub fn is_excluded(&self) -> bool {
        self.by.values().all(|is_excluded| *is_excluded)
    }
}

/// One life of a name.
pub struct Life<'a> {
    pub name: String,
    /// By version, with what was asked for.
    pub versions: BTreeMap<u64, (&'a ScheduleDefinition, Option<&'a PlainSpec>)>,
    pub cursor: Option<&'a CursorRow>,
    /// In order of time.
    pub tiles: Vec<Tile>,
    pub edits: Vec<&'a EditRow>,
    /// By nominal instant; those fired by hand are left out.
    pub jobs: BTreeMap<i64, Vec<&'a Job>>,
}

/// Lives as they are put together from rows.
#[derive(Default)]
struct Lives<'a>(BTreeMap<(String, Incarnation), Life<'a>>);

/// Every life that left rows.
pub fn lives<'a>(evidence: &Evidence<'a>) -> Vec<Life<'a>> {
    let mut lives = Lives::default();
    for row in evidence.rows {
        lives.take(evidence, row);
    }
    let mut lives: Vec<Life<'_>> = lives.0.into_values().collect();
    for life in &mut lives {
        life.tiles.sort_by_key(|tile| (tile.from, tile.to));
        life.edits.sort_by_key(|edit| (edit.at, edit.to_version));
    }
    lives
}

impl<'a> Lives<'a> {
    fn of(&mut self, name: &Name, incarnation: Incarnation) -> &mut Life<'a> {
        let name = name.to_string();
        self.0.entry((name.clone(), incarnation)).or_insert_with(|| Life {
            name,
            versions: BTreeMap::new(),
            cursor: None,
            tiles: Vec::new(),
            edits: Vec::new(),
            jobs: BTreeMap::new(),
        })
    }

    fn take(&mut self, evidence: &Evidence<'a>, row: &'a Row) {
        match row {
            Row::Definition(row) => {
                let spec = evidence.seen.specs.get(&tag_of(&row.spec.job));
                let life = self.of(&row.name, row.incarnation);
                life.versions.insert(row.version, (row, spec));
            }
            Row::Cursor(row) => {
                let life = self.of(&row.name, row.incarnation);
                life.cursor = Some(row);
                life.tiles.extend(row.open.as_ref().map(tile));
            }
            Row::Fate(row) => self.of(&row.name, row.incarnation).tiles.push(tile(&row.span)),
            Row::Edit(row) => self.of(&row.name, row.incarnation).edits.push(row),
            // A re-run decides no fate.
            Row::Backlog(row) if row.backfill.is_none_or(|mark| mark.request == 0) => {
                let owed = Tile {
                    from: row.from.0,
                    to: row.to.0,
                    kind: None,
                    count: None,
                    definition: row.definition,
                };
                let decided = row.open.as_ref().map(tile);
                self.of(&row.name, row.incarnation)
                    .tiles
                    .extend(decided.into_iter().chain([owed]));
            }
            Row::Job(job) => self.take_job(job),
            _ => {}
        }
    }

    fn take_job(&mut self, job: &'a Job) {
        if let Origin::Occurrence {
            schedule,
            incarnation,
            nominal,
            cause,
            ..
        } = &job.origin
            && *cause != FireCause::RunNow
        {
            let life = self.of(schedule, *incarnation);
            life.jobs.entry(nominal.0).or_default().push(job);
        }
    }
}

fn tile(span: &FateSpan) -> Tile {
    Tile {
        from: span.from.0,
        to: span.to.0,
        kind: Some(span.kind),
        count: span.count,
        definition: span.definition,
    }
}

impl<'a> Life<'a> {
    /// What a version was asked to be.
    pub fn spec(&self, version: u64) -> Option<&'a PlainSpec> {
        self.versions.get(&version).and_then(|(_, spec)| *spec)
    }

    /// What was done to it and what became of its time, for the report of a violation.
    pub fn story(&self) -> String {
        let edits = self.edits.iter().map(|edit| {
            let (at, kind) = (edit.at.0, edit.kind);
            let pending = edit
                .pending
                .map(|(at, fate)| format!(" {fate:?} {}", at.0))
                .unwrap_or_default();
            format!("{kind:?}@{at} v{}{pending}", edit.to_version)
        });
        let versions = self.versions.iter().map(|(number, (row, spec))| {
            let body = spec.map(|spec| spec.body.to_string()).unwrap_or_default();
            format!("v{number} from {}: {body}", row.effective_at.0)
        });
        let tiles = self.tiles.iter().map(|tile| {
            let Tile {
                from,
                to,
                kind,
                definition,
                ..
            } = tile;
            format!("({from}, {to}] {kind:?} v{definition}")
        });
        let all: Vec<String> = edits.chain(versions).chain(tiles).collect();
        format!("the life of {}:\n    {}", self.name, all.join("\n    "))
    }

    /// When a version was asked for. A one-shot that was asked for after its instant is due then.
    pub fn asked_at(&self, version: u64) -> i64 {
        let is_it = |edit: &&&EditRow| edit.kind == EditKind::Edited && edit.to_version == version;
        let edited = self.edits.iter().find(is_it).map(|edit| edit.at.0);
        let created = self.versions.values().next().map(|(row, _)| row.created_at.0);
        edited.or(created).unwrap_or(i64::MAX)
    }

    /// When it was deleted.
    pub fn deleted_at(&self) -> Option<i64> {
        let deleted = self.edits.iter().find(|edit| edit.kind == EditKind::Deleted);
        deleted.map(|edit| edit.at.0)
    }

    /// Every instant that some version asks for: those after its own beginning up to that of the next,
    /// and those that an edit kept.
    pub fn asked(&self) -> BTreeMap<i64, Asked> {
        let mut asked = BTreeMap::new();
        let begins: Vec<(u64, i64)> = self
            .versions
            .iter()
            .map(|(no, (row, _))| (*no, row.effective_at.0))
            .collect();
        for (at, (version, from)) in begins.iter().enumerate() {
            let to = begins.get(at + 1).map_or(i64::MAX, |(_, next)| *next);
            let Some(spec) = self.spec(*version) else { continue };
            for instant in spec.instants(*from, to) {
                let new: &mut Asked = asked.entry(instant).or_default();
                new.by.insert(*version, spec.is_excluded(instant));
            }
        }
        let edited = self.edits.iter().filter(|edit| edit.kind == EditKind::Edited);
        for edit in edited.clone() {
            self.add_kept(edit, &begins, &mut asked);
        }
        if edited.count() + 1 < self.versions.len() {
            self.add_unrecorded(&begins, &mut asked);
        }
        asked
    }

    /// Two epochs may record different things at one instant, while the store's clock is held: what the
    /// lost record kept may have any fate, or none.
    fn add_unrecorded(&self, begins: &[(u64, i64)], asked: &mut BTreeMap<i64, Asked>) {
        for (at, (version, _)) in begins.iter().enumerate().skip(1) {
            let Some((_, end)) = begins.get(at) else { continue };
            let Some(spec) = self.spec(version - 1) else { continue };
            if let Some(kept) = spec
                .instants(*end, i64::MAX)
                .into_iter()
                .find(|at| !spec.is_excluded(*at))
            {
                let fresh = || Asked {
                    is_optional: true,
                    ..Asked::default()
                };
                let kept = asked.entry(kept).or_insert_with(fresh);
                kept.by.insert(version - 1, false);
            }
        }
    }

    fn add_kept(&self, edit: &EditRow, begins: &[(u64, i64)], asked: &mut BTreeMap<i64, Asked>) {
        let Some((nominal, PendingFate::Keep)) = edit.pending else {
            return;
        };
        let next = begins.iter().find(|(version, _)| *version == edit.to_version + 1);
        // The newest version up to then that asks for it; of none it could not have been planned.
        let of_version = |version: &u64| {
            let spec = self.spec(*version)?;
            let asks = !spec.instants(nominal.0 - 1, nominal.0).is_empty();
            asks.then_some((*version, spec))
        };
        let known = (1..=edit.from_version).rev().find_map(|version| of_version(&version));
        if let Some((version, spec)) = known {
            let is_optional = next.is_some_and(|(_, next)| nominal.0 > *next);
            let fresh = || Asked {
                is_optional,
                ..Asked::default()
            };
            let kept = asked.entry(nominal.0).or_insert_with(fresh);
            kept.by.insert(version, spec.is_excluded(nominal.0));
        }
    }
}
