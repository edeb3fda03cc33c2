//! Durable rows in memory: applies batches with their conditions, serves pages of ranges.
//!
//! Owns: the conditions of `Expect`, and the count of writes per job. Must never: apply half a batch.

use fencepost_core::ids::{JobId, ShardId};
use fencepost_core::job::Job;
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::{KeyRow, LeasedRow, MarkRow, ReadyRow, Row, RowKey, WaitRow};
use fencepost_core::time::StoreTime;
use std::collections::BTreeMap;

/// All rows of one shard.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub rows: BTreeMap<RowKey, Row>,
    /// Row writes that named each job.
    pub writes: BTreeMap<JobId, usize>,
}

/// A page of a range: rows, whether the range ended, the first key after the page.
pub type Page<R, K> = (Vec<R>, bool, Option<K>);

impl Rows {
    /// One atomic batch; panics where a store would answer `conflict`. Each write is checked over
    /// those before it, as the store does it.
    pub fn apply(&mut self, writes: &[Write]) {
        for write in writes {
            self.check_expectation(write);
            let key = match write {
                Write::Put { row, .. } => row.key(),
                Write::Delete(key) => key.clone(),
            };
            if let Some(id) = job_of(&key, write) {
                *self.writes.entry(id).or_default() += 1;
            }
            match write {
                Write::Put { row, .. } => self.rows.insert(key, row.clone()),
                Write::Delete(_) => self.rows.remove(&key),
            };
        }
    }

    fn check_expectation(&self, write: &Write) {
        let Write::Put { row, expect } = write else { return };
        let found = self.rows.get(&row.key());
        match expect {
            Expect::Any => {}
            Expect::Absent => assert!(found.is_none(), "conflict: {:?} exists", row.key()),
            Expect::Version(version) => match found {
                Some(Row::Job(job)) => assert_eq!(job.version, *version, "conflict on {}", job.id),
                other => panic!(
                    "conflict: version {version} of {:?} expected, found {other:?}",
                    row.key()
                ),
            },
        }
    }

    pub fn job(&self, id: JobId) -> Option<Job> {
        match self.rows.get(&RowKey::Job(id)) {
            Some(Row::Job(job)) => Some(Job::clone(job)),
            _ => None,
        }
    }

    pub fn key(&self, key: &RowKey) -> Option<KeyRow> {
        match self.rows.get(key) {
            Some(Row::Key(row)) => Some(KeyRow::clone(row)),
            _ => None,
        }
    }

    pub fn all<T>(&self, pick: impl Fn(&Row) -> Option<T>) -> Vec<T> {
        self.rows.values().filter_map(pick).collect()
    }

    pub fn jobs(&self) -> Vec<Job> {
        self.all(|row| match row {
            Row::Job(row) => Some(Job::clone(row)),
            _ => None,
        })
    }

    pub fn leased(&self) -> Vec<LeasedRow> {
        self.all(|row| match row {
            Row::Leased(row) => Some(LeasedRow::clone(row)),
            _ => None,
        })
    }

    pub fn marks(&self) -> Vec<MarkRow> {
        self.all(|row| match row {
            Row::Mark(row) => Some(row.clone()),
            _ => None,
        })
    }

    pub fn ready(&self) -> Vec<ReadyRow> {
        self.all(|row| match row {
            Row::Ready(row) => Some(row.clone()),
            _ => None,
        })
    }

    pub fn waiting(&self) -> Vec<WaitRow> {
        self.all(|row| match row {
            Row::Wait(row) => Some(row.clone()),
            _ => None,
        })
    }

    /// Place rows of a job, by name.
    pub fn places(&self, id: JobId) -> Vec<&'static str> {
        self.all_places().remove(&id).unwrap_or_default()
    }

    /// Place rows of all jobs, by name.
    pub fn all_places(&self) -> BTreeMap<JobId, Vec<&'static str>> {
        let mut places: BTreeMap<JobId, Vec<&'static str>> = BTreeMap::new();
        for row in self.rows.values() {
            let (id, name) = match row {
                Row::Wait(row) => (row.id, "wait"),
                Row::Ready(row) => (row.id, "ready"),
                Row::Leased(row) => (row.id, "leased"),
                Row::Parked(row) => (row.id, "parked"),
                Row::DeadLetter(row) => (row.id, "dead letter"),
                _ => continue,
            };
            places.entry(id).or_default().push(name);
        }
        places
    }

    /// Non-empty ready classes.
    pub fn classes(&self) -> Vec<(Name, Name)> {
        let mut classes: Vec<_> = self.ready().into_iter().map(|row| (row.queue, row.tenant)).collect();
        classes.dedup();
        classes
    }

    /// A page of a class's ready range; without `from` it begins at the head.
    pub fn ready_page(
        &self,
        shard: ShardId,
        class: &(Name, Name),
        from: Option<ReadyRow>,
        limit: usize,
    ) -> Page<(ReadyRow, Job), ReadyRow> {
        let head = ReadyRow {
            shard,
            queue: class.0.clone(),
            tenant: class.1.clone(),
            priority: 0,
            order: StoreTime(i64::MIN),
            id: JobId::from_bytes([0; 16]).unwrap(),
        };
        let from = RowKey::Ready(from.unwrap_or(head));
        let mut rows = self.rows.range(from..).map_while(|(_, row)| match row {
            Row::Ready(row) if (&row.queue, &row.tenant) == (&class.0, &class.1) => Some(row.clone()),
            _ => None,
        });
        let page: Vec<_> = rows
            .by_ref()
            .take(limit)
            .map(|row| (row.clone(), self.job(row.id).unwrap()))
            .collect();
        let horizon = rows.next();
        (page, horizon.is_none(), horizon)
    }

    /// A page of the wait range; without `from` it begins at the head.
    pub fn wait_page(
        &self,
        shard: ShardId,
        from: Option<(StoreTime, JobId)>,
        limit: usize,
    ) -> Page<(WaitRow, Job), (StoreTime, JobId)> {
        let head = (StoreTime(i64::MIN), JobId::from_bytes([0; 16]).unwrap());
        let (at, id) = from.unwrap_or(head);
        let from = RowKey::Wait(shard, at, id);
        let mut rows = self.rows.range(from..).map_while(|(_, row)| match row {
            Row::Wait(row) => Some(row.clone()),
            _ => None,
        });
        let page: Vec<_> = rows
            .by_ref()
            .take(limit)
            .map(|row| (row.clone(), self.job(row.id).unwrap()))
            .collect();
        let horizon = rows.next().map(|row| (row.at, row.id));
        (page, horizon.is_none(), horizon)
    }
}

fn job_of(key: &RowKey, write: &Write) -> Option<JobId> {
    match key {
        RowKey::Job(id) | RowKey::Leased(id) | RowKey::Parked(id) | RowKey::DeadLetter(id) => Some(*id),
        RowKey::Wait(_, _, id) | RowKey::Attempts(id, _) => Some(*id),
        RowKey::Ready(row) => Some(row.id),
        RowKey::Key(..) => match write {
            Write::Put { row: Row::Key(row), .. } => Some(row.job),
            _ => None,
        },
        _ => None,
    }
}
