//! What an opening reads: pages of ranges, and the same as one look per schedule or class would find.
//!
//! Owns: how many reads that costs. Must never: time anything. Next: `load.rs`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use fencepost_core::ids::Slot;
use fencepost_core::machine::Expect;
use fencepost_core::row::ReadyRow;
use fencepost_core::schedule::{EditKind, EditRow};
use fencepost_core::time::{Monotonic, Span};
use fencepost_storage::model::{CallFate, FaultPlan, ModelStore};
use fencepost_storage::store::Store;
use futures_util::FutureExt;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Still;

impl fencepost_storage::clock::Clock for Still {
    fn wall(&self) -> StoreTime {
        StoreTime(1_795_000_000_000_000)
    }

    fn mono(&self) -> Monotonic {
        Monotonic(1)
    }
}

/// Counts the reads that a store is asked for.
struct Reads(Arc<AtomicUsize>);

impl FaultPlan for Reads {
    fn on_commit(&mut self, _: &Commit) -> CallFate {
        CallFate::default()
    }

    fn on_open(&mut self, _: &Open) -> CallFate {
        CallFate::default()
    }

    fn on_read(&mut self) -> CallFate {
        self.0.fetch_add(1, Ordering::SeqCst);
        CallFate::default()
    }
}

/// A store with these rows, and how often it was read.
async fn store_with(rows: Vec<Row>) -> (SharedStore, Arc<AtomicUsize>) {
    let store = ModelStore::new(
        Arc::new(Still),
        Arc::new(|_: Span| futures_util::future::ready(()).boxed()),
    );
    let put = |row: &Row| Write::Put {
        row: row.clone(),
        expect: Expect::Any,
    };
    let batches: Vec<Vec<Write>> = rows.chunks(1_000).map(|part| part.iter().map(put).collect()).collect();
    commit_rows(&store, &batches).await;
    let reads = Arc::new(AtomicUsize::new(0));
    store.set_plan(Box::new(Reads(reads.clone())));
    (Arc::new(store), reads)
}

async fn commit_rows(store: &ModelStore, batches: &[Vec<Write>]) {
    let (scope, holder) = (Scope::Coordinator, Holder(1));
    let (expected, node) = (Epoch(0), name("a"));
    let opening = Open {
        scope,
        holder,
        expected,
        node,
    };
    let epoch = store.open(opening).await.unwrap().epoch;
    for (at, writes) in batches.iter().enumerate() {
        let commit = Commit {
            scope,
            holder,
            epoch,
            number: BatchNo(at as u64 + 1),
            batch: Arc::new(encode_batch(writes, false).unwrap()),
        };
        assert!(matches!(store.commit(commit).await, Committed::Committed(_)));
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn life(number: u64) -> Incarnation {
    Incarnation {
        generation: Generation(1),
        epoch: Epoch(1),
        batch: number,
        place: 0,
    }
}

fn edit(schedule: &str, incarnation: Incarnation, at: i64) -> Row {
    Row::Edit(Box::new(EditRow {
        tenant: name("default"),
        name: name(schedule),
        incarnation,
        at: StoreTime(at),
        kind: EditKind::Paused,
        from_version: 1,
        to_version: 1,
        pending: None,
    }))
}

/// Schedules with this many edits each, those of earlier and later lives of their names around them.
fn edits(counts: &[usize]) -> (Vec<(Name, Name, Incarnation)>, Vec<Row>) {
    let (mut lives, mut rows) = (Vec::new(), Vec::new());
    for (number, count) in counts.iter().enumerate() {
        let schedule = format!("s{number}");
        lives.push((name("default"), name(&schedule), life(2)));
        let of_life = |number, count: usize, from: i64| {
            let schedule = schedule.clone();
            (0..count as i64).map(move |at| edit(&schedule, life(number), from + at))
        };
        rows.extend(of_life(1, number % 3, 9_000_000));
        rows.extend(of_life(2, *count, number as i64 * 7));
        rows.extend(of_life(3, number % 2, 9_500_000));
    }
    (lives, rows)
}

fn each(lives: &[(Name, Name, Incarnation)]) -> Vec<Life<'_>> {
    lives.iter().map(|(tenant, name, life)| (tenant, name, life)).collect()
}

#[tokio::test]
async fn an_opening_does_not_read_once_for_each_schedule() {
    let counts: Vec<usize> = (0..1_500).map(|number| number % 3).collect();
    let (lives, rows) = edits(&counts);
    let pages = rows.len() / SCAN_ROWS_MAX + 1;
    let (store, reads) = store_with(rows).await;
    let newest = newest_edits(&store, each(&lives)).await.unwrap();
    assert_eq!(newest.len(), counts.iter().filter(|count| **count > 0).count());
    assert!(reads.load(Ordering::SeqCst) <= 2 * pages, "{reads:?} for {pages} pages");
}

#[tokio::test]
async fn f25_the_newest_edits_are_those_that_a_look_at_each_schedule_finds() {
    for counts in [
        vec![],
        vec![0, 0, 0],
        vec![5],
        vec![3_000],
        vec![1_023, 1, 1_024, 1, 1_025, 2],
        vec![2, 2_500, 0, 0, 1, 1_100, 7],
    ] {
        let (lives, rows) = edits(&counts);
        let (store, _) = store_with(rows).await;
        let newest = newest_edits(&store, each(&lives)).await.unwrap();
        let mut looked = BTreeMap::new();
        for life in each(&lives) {
            looked.extend(last_recorded(&store, life).await.unwrap());
        }
        assert_eq!(newest, looked, "{counts:?}");
    }
}

fn ready(class: usize, number: usize) -> Row {
    let mut chance = [0; 14];
    chance[..8].copy_from_slice(&(number as u64).to_be_bytes());
    Row::Ready(ReadyRow {
        shard: ShardId(3),
        queue: name(&format!("q{class}")),
        tenant: name("default"),
        priority: 5,
        order: StoreTime(number as i64),
        id: JobId::fresh(Slot::new(7).unwrap(), chance),
    })
}

/// The classes with so many ready jobs each, and how many reads and at most how many rows it took.
async fn classes(counts: &[usize]) -> (Vec<(Name, Name)>, usize) {
    let rows = counts.iter().enumerate();
    let rows = rows.flat_map(|(class, count)| (0..*count).map(move |number| ready(class, number)));
    let (store, reads) = store_with(rows.collect()).await;
    let found = load_classes(&store, ShardId(3)).await.unwrap();
    assert!(load_classes(&store, ShardId(2)).await.unwrap().is_empty());
    (found, reads.load(Ordering::SeqCst))
}

#[tokio::test]
async fn f30_many_small_classes_are_found_in_pages_and_few_large_ones_by_skipping() {
    for (counts, reads_max) in [
        (vec![], 2),
        (vec![1], 2),
        (vec![1; 3_000], 24),
        ([2, 1, 1, 2, 1].repeat(200), 24),
        (vec![5_000, 1, 5_000], 8),
        ([vec![1; 2_000], vec![2_000; 4], vec![1; 50]].concat(), 48),
    ] {
        let (found, reads) = classes(&counts).await;
        let mut wanted: Vec<(Name, Name)> = (0..counts.len())
            .map(|class| (name(&format!("q{class}")), name("default")))
            .collect();
        let mut seen = found.clone();
        wanted.sort();
        seen.sort();
        assert_eq!(seen, wanted);
        assert!(reads <= reads_max, "{reads} reads for {} classes", counts.len());
    }
}

/// Holds the first open up until the gate is opened.
struct SlowOpen(bool);

impl FaultPlan for SlowOpen {
    fn on_commit(&mut self, _: &Commit) -> CallFate {
        CallFate::default()
    }

    fn on_open(&mut self, _: &Open) -> CallFate {
        let delay = match std::mem::replace(&mut self.0, false) {
            true => Span::from_secs(1),
            false => Span::ZERO,
        };
        CallFate {
            delay,
            ..CallFate::default()
        }
    }

    fn on_read(&mut self) -> CallFate {
        CallFate::default()
    }
}

#[tokio::test]
async fn f9_an_owners_mark_is_taken_back_although_an_opening_comes_in_between() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opens = gate.clone();
    let store = ModelStore::new(
        Arc::new(Still),
        Arc::new(move |_: Span| {
            let opens = opens.clone();
            async move { opens.acquire().await.unwrap().forget() }.boxed()
        }),
    );
    let (shard, node) = (ShardId(0), name("a"));
    let plan = OpenPlan {
        shard,
        map: ShardMap::new(1).unwrap(),
        generation: Generation(1),
        node: node.clone(),
        local: Some(WorkerId {
            node: node.clone(),
            boot: 5,
        }),
    };
    let assignment = Row::Assignment(fencepost_core::row::AssignmentRow {
        scope: Scope::Shard(shard),
        node,
        version: 1,
    });
    let mut writes = read_marks(shard, &[], &boot_of(&plan), StoreTime(1)).writes;
    writes.push(Write::Put {
        row: assignment,
        expect: Expect::Any,
    });
    commit_rows(&store, &[writes]).await;
    let shared: SharedStore = Arc::new(store.clone());
    assert_eq!(read_quarantine(&shared, shard).await.unwrap().len(), 1);
    store.set_plan(Box::new(SlowOpen(true)));
    let mut leaving = std::pin::pin!(leave(shared.clone(), plan.clone(), Holder(2)));
    assert!(leaving.as_mut().now_or_never().is_none(), "it has read the epoch");
    let opening = Open {
        scope: Scope::Shard(shard),
        holder: Holder(3),
        expected: Epoch(0),
        node: plan.node.clone(),
    };
    store.open(opening).await.unwrap();
    gate.add_permits(1);
    leaving.await.unwrap();
    assert!(read_quarantine(&shared, shard).await.unwrap().is_empty());
}

/// The read with this number takes until the gate opens.
struct SlowRead(usize);

impl FaultPlan for SlowRead {
    fn on_commit(&mut self, _: &Commit) -> CallFate {
        CallFate::default()
    }

    fn on_open(&mut self, _: &Open) -> CallFate {
        CallFate::default()
    }

    fn on_read(&mut self) -> CallFate {
        self.0 = self.0.wrapping_sub(1);
        CallFate {
            delay: if self.0 == 0 { Span::from_secs(1) } else { Span::ZERO },
            ..CallFate::default()
        }
    }
}

/// A store of one shard that is assigned to node `a`, and how that node opens it. Each slow call waits for a
/// permit.
async fn one_shard() -> (ModelStore, OpenPlan, Arc<tokio::sync::Semaphore>) {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opens = gate.clone();
    let sleep = move |_: Span| {
        let opens = opens.clone();
        async move { opens.acquire().await.unwrap().forget() }.boxed()
    };
    let store = ModelStore::new(Arc::new(Still), Arc::new(sleep));
    let (shard, generation, node) = (ShardId(0), Generation(1), name("a"));
    let cell = Row::Cell(fencepost_core::row::CellRow {
        cell: 1,
        generation,
        shards: 1,
        created_at: StoreTime(1),
        level: fencepost_core::level::FIRST,
    });
    let assignment = Row::Assignment(fencepost_core::row::AssignmentRow {
        scope: Scope::Shard(shard),
        node: node.clone(),
        version: 1,
    });
    let expect = Expect::Any;
    commit_rows(
        &store,
        &[vec![
            Write::Put { row: cell, expect },
            Write::Put {
                row: assignment,
                expect,
            },
        ]],
    )
    .await;
    let plan = OpenPlan {
        shard,
        map: ShardMap::new(1).unwrap(),
        generation,
        node,
        local: None,
    };
    (store, plan, gate)
}

#[tokio::test]
async fn f5_rows_that_were_read_while_another_owner_opened_are_not_begun_with() {
    let (store, plan, gate) = one_shard().await;
    let shared: SharedStore = Arc::new(store.clone());
    let undisturbed = open_and_load(shared.clone(), plan.clone(), Holder(2)).await.unwrap();
    store.set_plan(Box::new(SlowRead(4)));
    let mut loading = std::pin::pin!(open_and_load(shared, plan.clone(), Holder(3)));
    assert!(loading.as_mut().now_or_never().is_none(), "it reads");
    let opening = Open {
        scope: Scope::Shard(plan.shard),
        holder: Holder(4),
        expected: Epoch(undisturbed.epoch.0 + 1),
        node: plan.node,
    };
    store.open(opening).await.unwrap();
    gate.add_permits(1);
    let loaded = loading.await.map(|loaded| loaded.epoch);
    assert!(matches!(loaded, Err(OpenError::Moved { .. })), "{loaded:?}");
}

#[tokio::test]
async fn f11_the_assignments_of_a_restored_store_are_not_followed_by_who_outlived_it() {
    let (store, plan, _) = one_shard().await;
    let decider = |generation: u32| crate::cluster::decider::Decider {
        store: Arc::new(store.clone()),
        clock: Arc::new(crate::clock::SystemClock::new()),
        node: plan.node.clone(),
        map: plan.map,
        generation: Generation(generation),
    };
    assert_eq!(decider(1).rows().await.unwrap().rows.len(), 1);
    let outlived = decider(0).rows().await;
    assert!(matches!(outlived, Err(StoreError::Broken(_))), "{outlived:?}");
}
