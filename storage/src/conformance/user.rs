//! A caller of a store under test: opens scopes, numbers its batches, builds rows.
//!
//! Owns: the small vocabulary that the rules are written in. Next: `numbers.rs`.

use super::Verdict;
use crate::codec::encode_batch;
use crate::store::{Commit, Committed, Open, OpenError, Opened, Store};
use fencepost_core::ids::{BatchNo, Epoch, Holder, JobId, Scope, ShardId, Slot};
use fencepost_core::job::{Delivery, Job, JobSpec, Origin, RetryPolicy};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::{AssignmentRow, DeadLetterRow, Row, RowKey};
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

pub(super) const SHARD: Scope = Scope::Shard(ShardId(1));

/// The holder of one scope.
#[derive(Clone)]
pub(super) struct User {
    pub(super) store: Arc<dyn Store>,
    pub(super) scope: Scope,
    pub(super) holder: Holder,
    pub(super) epoch: Epoch,
    /// The number of the last batch sent.
    pub(super) last: BatchNo,
}

pub(super) fn name(text: &str) -> Name {
    Name::new(text).expect("the suite uses legal names")
}

pub(super) fn open_request(scope: Scope, holder: u128, expected: u64, node: &str) -> Open {
    Open {
        scope,
        holder: Holder(holder),
        expected: Epoch(expected),
        node: name(node),
    }
}

/// Assigns shards 1 to 4 to node `a`, under the coordinator's scope.
pub(super) async fn assign(store: &Arc<dyn Store>) -> Result<User, String> {
    let mut coordinator = User::open(store, Scope::Coordinator, 900, 0).await?;
    let rows = (1..=4).map(|shard| Write::Put {
        row: Row::Assignment(AssignmentRow {
            scope: Scope::Shard(ShardId(shard)),
            node: name("a"),
            version: 1,
        }),
        expect: Expect::Any,
    });
    coordinator.must_commit(rows.collect()).await?;
    Ok(coordinator)
}

/// A store with assignments and shard 1 open for holder 1.
pub(super) async fn ready(store: &Arc<dyn Store>) -> Result<User, String> {
    assign(store).await?;
    User::open(store, SHARD, 1, 0).await
}

impl User {
    pub(super) async fn open(
        store: &Arc<dyn Store>,
        scope: Scope,
        holder: u128,
        expected: u64,
    ) -> Result<User, String> {
        let opened = Self::try_open(store, scope, holder, expected).await;
        let opened = opened.map_err(|error| format!("open of {scope:?} by {holder}: {error:?}"))?;
        Ok(User {
            store: store.clone(),
            scope,
            holder: Holder(holder),
            epoch: opened.epoch,
            last: BatchNo(0),
        })
    }

    pub(super) async fn try_open(
        store: &Arc<dyn Store>,
        scope: Scope,
        holder: u128,
        expected: u64,
    ) -> Result<Opened, OpenError> {
        store.open(open_request(scope, holder, expected, "a")).await
    }

    /// Sends a batch under this number.
    pub(super) async fn send(&self, number: u64, writes: Vec<Write>) -> Committed {
        self.store.commit(self.request(number, &writes)).await
    }

    pub(super) fn request(&self, number: u64, writes: &[Write]) -> Commit {
        Commit {
            scope: self.scope,
            holder: self.holder,
            epoch: self.epoch,
            number: BatchNo(number),
            batch: Arc::new(encode_batch(writes, true).expect("the suite's rows are small")),
        }
    }

    /// Sends a batch under the next number.
    pub(super) async fn commit(&mut self, writes: Vec<Write>) -> Committed {
        let answer = self.send(self.last.0 + 1, writes).await;
        if matches!(answer, Committed::Committed(_)) {
            self.last = BatchNo(self.last.0 + 1);
        }
        answer
    }

    pub(super) async fn must_commit(&mut self, writes: Vec<Write>) -> Result<StoreTime, String> {
        match self.commit(writes).await {
            Committed::Committed(stated) => Ok(stated.time),
            other => Err(format!("batch {} was to be committed: {other:?}", self.last.0 + 1)),
        }
    }

    pub(super) async fn read(&self, key: &RowKey) -> Result<Option<Row>, String> {
        read(&self.store, key).await
    }

    /// The value of a dead letter, by its instant.
    pub(super) async fn letter(&self, id: u8) -> Result<Option<i64>, String> {
        match self.read(&RowKey::DeadLetter(job_id(id))).await? {
            Some(Row::DeadLetter(row)) => Ok(Some(row.at.0)),
            None => Ok(None),
            Some(other) => Err(format!("a dead letter came back as {other:?}")),
        }
    }
}

pub(super) async fn read(store: &Arc<dyn Store>, key: &RowKey) -> Result<Option<Row>, String> {
    let key = crate::keys::key_bytes(key);
    let values = store.get(vec![key.clone()]).await.map_err(|error| error.to_string())?;
    match values.into_iter().next().flatten() {
        None => Ok(None),
        Some(value) => crate::codec::decode_row(&key, &value)
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}

pub(super) fn job_id(number: u8) -> JobId {
    JobId::fresh(Slot::new(7).expect("slot 7 exists"), [number; 14])
}

/// A small row without a version.
pub(super) fn letter(id: u8, at: i64, expect: Expect) -> Write {
    Write::Put {
        row: Row::DeadLetter(DeadLetterRow {
            id: job_id(id),
            at: StoreTime(at),
        }),
        expect,
    }
}

pub(super) fn delete_letter(id: u8) -> Write {
    Write::Delete(RowKey::DeadLetter(job_id(id)))
}

/// A job row of this version.
pub(super) fn job(id: u8, version: u64, expect: Expect) -> Write {
    let spec = Arc::new(JobSpec {
        tenant: name("default"),
        queue: name("default"),
        target: Target::Handler(name("noop")),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(300),
        retry: RetryPolicy {
            attempt_count_max: 5,
            backoff_first: Span::from_secs(1),
            backoff_cap: Span::from_secs(60),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    });
    let job = Job {
        version,
        ..Job::due_at_once(job_id(id), spec, Origin::Request { key: None }, StoreTime(1))
    };
    Write::Put {
        row: Row::Job(Box::new(job)),
        expect,
    }
}

/// `Already`, whatever its time.
pub(super) fn is_already(answer: &Committed) -> bool {
    matches!(answer, Committed::Already(_))
}

pub(super) fn must_be(what: &str, answer: &Committed, holds: impl Fn(&Committed) -> bool) -> Verdict {
    if holds(answer) {
        Ok(())
    } else {
        Err(format!("{what}: answered {answer:?}"))
    }
}
