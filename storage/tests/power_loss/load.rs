//! The load: batches of several scopes at once, and what was acknowledged of them.
//!
//! Owns: rows that can be told apart and checked whole, the ledger of acknowledgements, and the
//! seeded draws. Must never: count an answer other than `Committed`. Next: `main.rs`.

use crate::interposer;
use fencepost_core::ids::{BatchNo, Epoch, Holder, JobId, Scope, ShardId, Slot};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::{AssignmentRow, QuarantineRow, Row, RowKey};
use fencepost_core::time::{Monotonic, StoreTime};
use fencepost_storage::clock::Clock;
use fencepost_storage::codec::{decode_row, encode_batch};
use fencepost_storage::fjall_store::{FjallStore, NewStore, Options};
use fencepost_storage::keys::{KeyRange, Kind};
use fencepost_storage::store::{Commit, Committed, Open, Store};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesOrdered;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SHARDS: u16 = 4;
/// Batches of one owner on their way at once.
const FLIGHTS: usize = 2;

/// Splitmix64.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A clock that moves with each reading.
#[derive(Clone)]
pub struct Clocks(Arc<AtomicU64>);

impl Clocks {
    pub fn new() -> Clocks {
        Clocks(Arc::new(AtomicU64::new(1)))
    }
}

impl Clock for Clocks {
    fn wall(&self) -> StoreTime {
        let ticks = self.0.fetch_add(3, Ordering::Relaxed);
        StoreTime(1_795_000_000_000_000 + i64::try_from(ticks).unwrap())
    }

    fn mono(&self) -> Monotonic {
        Monotonic(self.0.load(Ordering::Relaxed))
    }
}

/// One batch: its shard and a number that grows over all cycles; the count of its rows.
type BatchId = (u16, u64);

/// Every batch that was ever acknowledged.
#[derive(Debug, Default)]
pub struct Acknowledged {
    batches: BTreeMap<BatchId, u64>,
    next: BTreeMap<u16, u64>,
}

/// Rows found: batch to the rows of it.
pub type Found = BTreeMap<BatchId, BTreeSet<u64>>;

impl Acknowledged {
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Acknowledged batches that are not there, or not whole.
    pub fn missing(&self, found: &Found) -> Vec<String> {
        let none = BTreeSet::new();
        let missing = self.batches.iter().filter_map(|(batch, rows)| {
            let there = found.get(batch).unwrap_or(&none).len() as u64;
            (there != *rows).then(|| format!("batch {batch:?} has {there} of {rows} rows"))
        });
        missing.collect()
    }
}

fn options(clocks: &Clocks) -> Options {
    let mut options = Options::new(NewStore { store: 1, cell: 2 }, Arc::new(clocks.clone()));
    options.planted.memtable_bytes = Some(128 << 10);
    options
}

/// The text of a row: filled out so that some rows are large.
fn reason(batch: BatchId, row: u64, rows: u64) -> Arc<str> {
    let size = usize::try_from((batch.1 * 37 + row * 11) % 1_900).unwrap();
    Arc::from(format!("{}/{}/{row}/{rows}/{}", batch.0, batch.1, "x".repeat(size)))
}

fn row(batch: BatchId, number: u64, rows: u64) -> Write {
    let mut key = vec![Kind::Job.byte()];
    key.extend_from_slice(&batch.1.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    Write::Put {
        row: Row::Quarantine(Box::new(QuarantineRow {
            shard: ShardId(batch.0),
            key: Arc::from(key),
            reason: reason(batch, number, rows),
            at: StoreTime(1),
            deaths: 0,
        })),
        expect: Expect::Absent,
    }
}

/// Besides its rows each batch moves one wait row, as places do.
fn place(batch: BatchId) -> Vec<Write> {
    let id = JobId::fresh(Slot::new(batch.0).unwrap(), [1; 14]);
    let key = |number: u64| RowKey::Wait(ShardId(batch.0), StoreTime(i64::try_from(number).unwrap()), id);
    vec![
        Write::Delete(key(batch.1.saturating_sub(1))),
        Write::Put {
            row: Row::Wait(fencepost_core::row::WaitRow {
                shard: ShardId(batch.0),
                at: StoreTime(i64::try_from(batch.1).unwrap()),
                id,
                length: None,
            }),
            expect: Expect::Any,
        },
    ]
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Writes until the power is out; the number of commits that got no clear answer.
pub fn run(
    folder: &Path,
    seed: u64,
    acknowledged: &mut Acknowledged,
    clocks: &Clocks,
    answers_max: u64,
    answer_before_sync: bool,
) -> usize {
    let mut options = options(clocks);
    options.planted.answer_before_sync = answer_before_sync;
    let Ok(store) = FjallStore::start(folder, options) else {
        assert!(interposer::is_cut(), "the store did not start with the power on");
        return 0;
    };
    let store: Arc<dyn Store> = Arc::new(store);
    let answers = Arc::new(AtomicU64::new(0));
    let ends = runtime().block_on(async {
        assign(&store, seed).await;
        let shards = (0..SHARDS).map(|shard| {
            let begin = acknowledged.next.get(&shard).copied().unwrap_or(1);
            write(store.clone(), shard, seed, begin, answers.clone(), answers_max)
        });
        join_all(shards).await
    });
    let mut in_flight = 0;
    for (shard, end) in (0..SHARDS).zip(ends) {
        acknowledged.batches.extend(
            end.acknowledged
                .into_iter()
                .map(|(number, rows)| ((shard, number), rows)),
        );
        acknowledged.next.insert(shard, end.next);
        in_flight += usize::from(end.in_flight);
    }
    in_flight
}

struct End {
    acknowledged: Vec<(u64, u64)>,
    next: u64,
    in_flight: bool,
}

async fn open(store: &Arc<dyn Store>, scope: Scope, holder: u128) -> Option<Epoch> {
    let request = Open {
        scope,
        holder: Holder(holder),
        expected: store.epoch(scope).await.ok()?,
        node: Name::new("a").unwrap(),
    };
    store.open(request).await.ok().map(|opened| opened.epoch)
}

async fn assign(store: &Arc<dyn Store>, seed: u64) {
    let holder = u128::from(seed) | 1;
    let Some(epoch) = open(store, Scope::Coordinator, holder).await else {
        return;
    };
    let rows: Vec<Write> = (0..SHARDS)
        .map(|shard| Write::Put {
            row: Row::Assignment(AssignmentRow {
                scope: Scope::Shard(ShardId(shard)),
                node: Name::new("a").unwrap(),
                version: 1,
            }),
            expect: Expect::Any,
        })
        .collect();
    let request = Commit {
        scope: Scope::Coordinator,
        holder: Holder(holder),
        epoch,
        number: BatchNo(1),
        batch: Arc::new(encode_batch(&rows, true).unwrap()),
    };
    let _ = store.commit(request).await;
}

/// One shard's owner: a few batches on their way at once, as a shell has them, until there is no clear answer.
async fn write(
    store: Arc<dyn Store>,
    shard: u16,
    seed: u64,
    begin: u64,
    answers: Arc<AtomicU64>,
    answers_max: u64,
) -> End {
    let mut draw = Draw::new(seed ^ u64::from(shard));
    let holder = u128::from(draw.next()) | 1;
    let mut end = End {
        acknowledged: Vec::new(),
        next: begin,
        in_flight: false,
    };
    let Some(epoch) = open(&store, Scope::Shard(ShardId(shard)), holder).await else {
        end.in_flight = true;
        return end;
    };
    let mut number = 0;
    let mut flights = FuturesOrdered::new();
    loop {
        while flights.len() < FLIGHTS && !interposer::is_cut() {
            number += 1;
            let batch = (shard, end.next);
            end.next += 1;
            let rows = 1 + draw.below(9);
            let mut writes: Vec<Write> = (0..rows).map(|number| row(batch, number, rows)).collect();
            writes.extend(place(batch));
            let request = Commit {
                scope: Scope::Shard(ShardId(shard)),
                holder: Holder(holder),
                epoch,
                number: BatchNo(number),
                batch: Arc::new(encode_batch(&writes, true).unwrap()),
            };
            let answer = store.commit(request);
            flights.push_back(async move { (batch.1, rows, answer.await) });
        }
        match flights.next().await {
            Some((batch, rows, Committed::Committed(_))) => end.acknowledged.push((batch, rows)),
            Some((_, _, Committed::Unknown(_) | Committed::Unavailable(_))) => {
                end.in_flight = true;
                return end;
            }
            Some((_, _, other)) => panic!("a good batch was answered {other:?}"),
            None => return end,
        }
        if answers.fetch_add(1, Ordering::Relaxed) + 1 >= answers_max {
            interposer::cut();
        }
    }
}

/// Starts the store with the power on and reads every row; a row that is not what was written, or a
/// refusal to start, is an error.
pub fn read_all(folder: &Path, clocks: &Clocks) -> Result<Found, String> {
    let store = FjallStore::start(folder, options(clocks)).map_err(|error| format!("refused to start: {error}"))?;
    let rows = runtime()
        .block_on(store.scan(KeyRange::kind(Kind::Quarantine).scan(usize::MAX)))
        .map_err(|error| error.to_string())?;
    let mut found = Found::new();
    for (key, value) in rows {
        let Ok(Row::Quarantine(row)) = decode_row(&key, &value) else {
            return Err("a row came back damaged".to_owned());
        };
        let number = |at: usize| u64::from_be_bytes(row.key[at..at + 8].try_into().unwrap());
        let (batch, place) = ((row.shard.0, number(1)), number(9));
        let rows: u64 = row
            .reason
            .split('/')
            .nth(3)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        if row.reason != reason(batch, place, rows) {
            return Err(format!("row {place} of batch {batch:?} came back with other bytes"));
        }
        found.entry(batch).or_default().insert(place);
    }
    Ok(found)
}
