//! The remote store keeps every rule of the suite, also over a link that doubles and loses.

use super::message::{Answered, StoreAnswer, StoreCall};
use super::serve::Serving;
use super::*;
use crate::codec::{encode_batch, samples};
use crate::conformance::tests::{Ticking, TimedModel};
use crate::conformance::{CLOCK_RULES, RULES, Timed};
use crate::model::{CallFate, FaultPlan, ModelStore};
use crate::wire::WireError;
use fencepost_core::ids::{BatchNo, ShardId};
use fencepost_core::limits::KEY_BYTES_MAX;
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::{AssignmentRow, Row, RowKey};
use fencepost_core::time::{Monotonic, Span, StoreTime};
use futures_util::future::ready;
use proptest::prelude::*;
use std::sync::atomic::AtomicUsize;

const GOLDEN: &str = include_str!("../../golden/store-calls-v1.hex");

/// What befalls a call on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    /// It arrives twice; the first answer is lost.
    Twice,
    RequestLost,
    AnswerLost,
    NotSent,
}

/// A link to a store in this process.
struct Direct {
    store: Serving,
    ways: Mutex<Vec<Way>>,
    calls: AtomicUsize,
}

impl Direct {
    fn new(store: Arc<dyn Store>, ways: &[Way]) -> Arc<Direct> {
        Arc::new(Direct {
            store: Serving::new(store, 7),
            ways: Mutex::new(ways.to_vec()),
            calls: AtomicUsize::new(0),
        })
    }
}

impl StoreLink for Direct {
    fn call(&self, call: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, LinkError>> {
        let ways = self.ways.lock().unwrap();
        let turn = self.calls.fetch_add(1, Ordering::Relaxed);
        let way = ways.get(turn % ways.len().max(1)).copied().unwrap_or(Way::Plain);
        let no_answer = || LinkError::NoAnswer("the link broke".to_owned());
        match way {
            Way::NotSent => ready(Err(LinkError::NotSent("no link".to_owned()))).boxed(),
            Way::RequestLost => ready(Err(no_answer())).boxed(),
            Way::Plain => self.store.answer(&call).map(Ok).boxed(),
            Way::AnswerLost => {
                let answering = self.store.answer(&call);
                async move {
                    answering.await;
                    Err(no_answer())
                }
                .boxed()
            }
            Way::Twice => {
                let first = self.store.answer(&call);
                let second = self.store.answer(&call);
                async move {
                    first.await;
                    Ok(second.await)
                }
                .boxed()
            }
        }
    }
}

fn model() -> Arc<dyn Store> {
    let sleep: crate::model::Sleep = Arc::new(|_: Span| ready(()).boxed());
    Arc::new(ModelStore::new(Arc::new(Ticking::default()), sleep))
}

fn remote(ways: &[Way]) -> Arc<dyn Store> {
    Arc::new(RemoteStore::new(Direct::new(model(), ways)))
}

#[tokio::test]
async fn the_remote_store_keeps_every_rule() {
    for rule in RULES {
        let verdict = (rule.run)(remote(&[Way::Plain])).await;
        assert!(verdict.is_ok(), "{}: {verdict:?}", rule.name);
    }
}

/// A store whose clocks the test sets, from afar.
struct TimedAfar(TimedModel);

impl Timed for TimedAfar {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(RemoteStore::new(Direct::new(self.0.store(), &[])))
    }

    fn set(&self, wall: StoreTime, mono: Monotonic) {
        self.0.set(wall, mono);
    }

    fn restart(&self) {
        self.0.restart();
    }
}

#[tokio::test]
async fn the_remote_store_keeps_every_rule_about_clocks() {
    for rule in CLOCK_RULES {
        let verdict = (rule.run)(Arc::new(TimedAfar(TimedModel::new()))).await;
        assert!(verdict.is_ok(), "{}: {verdict:?}", rule.name);
    }
}

#[cfg(not(madsim))]
#[tokio::test]
async fn so_it_does_over_the_embedded_store() {
    use crate::fjall_store::{FjallStore, NewStore, Options};
    for rule in RULES {
        let temp = tempfile::tempdir().unwrap();
        let options = Options::new(NewStore { store: 1, cell: 2 }, Arc::new(Ticking::default()));
        let store: Arc<dyn Store> = Arc::new(FjallStore::start(&temp.path().join("store"), options).unwrap());
        let verdict = (rule.run)(Arc::new(RemoteStore::new(Direct::new(store, &[])))).await;
        assert!(verdict.is_ok(), "{}: {verdict:?}", rule.name);
    }
}

fn assignment(version: u64) -> Write {
    Write::Put {
        row: Row::Assignment(AssignmentRow {
            scope: Scope::Shard(ShardId(1)),
            node: Name::new("a").unwrap(),
            version,
        }),
        expect: Expect::Any,
    }
}

fn open_request(holder: u128, expected: u64) -> Open {
    Open {
        scope: Scope::Coordinator,
        holder: Holder(holder),
        expected: Epoch(expected),
        node: Name::new("a").unwrap(),
    }
}

fn commit_request(number: u64, write: Write) -> Commit {
    Commit {
        scope: Scope::Coordinator,
        holder: Holder(1),
        epoch: Epoch(1),
        number: BatchNo(number),
        batch: Arc::new(encode_batch(&[write], false).unwrap()),
    }
}

async fn read_back(store: &Arc<dyn Store>) -> Option<Bytes> {
    let key = crate::keys::key_bytes(&RowKey::Assignment(Scope::Shard(ShardId(1))));
    store.get(vec![key]).await.unwrap().pop().flatten()
}

#[tokio::test]
async fn f02_a_lost_answer_is_unknown_and_settled_under_the_same_number() {
    let base = model();
    base.open(open_request(1, 0)).await.unwrap();
    let link = Direct::new(base.clone(), &[Way::AnswerLost, Way::Plain]);
    let store = RemoteStore::new(link);
    let commit = commit_request(1, assignment(1));
    assert!(matches!(store.commit(commit.clone()).await, Committed::Unknown(_)));
    assert!(read_back(&base).await.is_some(), "it did land");
    assert!(matches!(store.commit(commit).await, Committed::Already(_)));
}

#[tokio::test]
async fn f02_a_first_sending_that_arrives_late_changes_nothing() {
    let base = model();
    base.open(open_request(1, 0)).await.unwrap();
    let late = StoreCall::Commit(commit_request(1, assignment(1))).encode();
    let store: Arc<dyn Store> = Arc::new(RemoteStore::new(Direct::new(base.clone(), &[])));
    for number in 1..=2 {
        let answer = store.commit(commit_request(number, assignment(number))).await;
        assert!(matches!(answer, Committed::Committed(_)), "{answer:?}");
    }
    let before = read_back(&base).await;
    let answered = Answered::decode(&Serving::new(base.clone(), 7).answer(&late).await).unwrap();
    assert!(
        matches!(answered.answer, StoreAnswer::Committed(Committed::Already(_))),
        "told as what it is: {answered:?}"
    );
    assert_eq!(
        read_back(&base).await,
        before,
        "the delayed first sending is not applied again"
    );
}

#[tokio::test]
async fn f02_a_call_that_arrives_twice_is_done_once() {
    let store = remote(&[Way::Twice]);
    assert_eq!(store.open(open_request(1, 0)).await.unwrap().epoch, Epoch(1));
    for number in 1..=3 {
        let answer = store.commit(commit_request(number, assignment(number))).await;
        assert!(
            matches!(answer, Committed::Committed(_) | Committed::Already(_)),
            "{answer:?}"
        );
    }
}

/// Each commit is counted, and its sync takes until the gate opens.
struct SlowSync(Arc<AtomicUsize>);

impl FaultPlan for SlowSync {
    fn on_commit(&mut self, _: &Commit) -> CallFate {
        self.0.fetch_add(1, Ordering::SeqCst);
        CallFate {
            sync_delay: Span::from_secs(60),
            ..CallFate::default()
        }
    }

    fn on_open(&mut self, _: &Open) -> CallFate {
        CallFate::default()
    }

    fn on_read(&mut self) -> CallFate {
        CallFate::default()
    }
}

#[tokio::test]
async fn f02_repeats_of_a_commit_in_work_join_it_and_cost_nothing() {
    let (commits, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let opens = gate.clone();
    let sleep: crate::model::Sleep = Arc::new(move |_| {
        let opens = opens.clone();
        async move { opens.acquire().await.unwrap().forget() }.boxed()
    });
    let base = ModelStore::new(Arc::new(Ticking::default()), sleep);
    base.open(open_request(1, 0)).await.unwrap();
    base.set_plan(Box::new(SlowSync(commits.clone())));
    let serving = Serving::new(Arc::new(base), 7);
    let call = StoreCall::Commit(commit_request(1, assignment(1))).encode();
    let next = StoreCall::Commit(commit_request(2, assignment(2))).encode();
    let sent = [&call, &next].into_iter().cycle().take(50);
    let mut sendings: Vec<_> = sent.map(|call| serving.answer(call)).collect();
    for sending in &mut sendings {
        assert!(sending.now_or_never().is_none(), "the sync is slow");
    }
    // The connection that brought the first is gone.
    drop(sendings.remove(0));
    gate.add_permits(2);
    for sending in sendings {
        let answer = Answered::decode(&sending.await).unwrap().answer;
        assert!(
            matches!(answer, StoreAnswer::Committed(Committed::Committed(_))),
            "{answer:?}"
        );
    }
    assert_eq!(commits.load(Ordering::SeqCst), 2);
    let mut other = commit_request(3, assignment(3));
    other.holder = Holder(2);
    gate.add_permits(2);
    for (call, is_new) in [(call, false), (StoreCall::Commit(other).encode(), true)] {
        let answer = Answered::decode(&serving.answer(&call).await).unwrap().answer;
        let is_already = matches!(answer, StoreAnswer::Committed(Committed::Already(_)));
        assert_eq!(is_already, !is_new, "what has ended is judged anew: {answer:?}");
    }
}

/// The first commit is refused as not now; those after it are carried out.
struct FirstNotNow(AtomicUsize);

impl FaultPlan for FirstNotNow {
    fn on_commit(&mut self, _: &Commit) -> CallFate {
        let is_first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        CallFate {
            fault: is_first.then_some(crate::model::Fault::Unavailable),
            ..CallFate::default()
        }
    }

    fn on_open(&mut self, _: &Open) -> CallFate {
        CallFate::default()
    }

    fn on_read(&mut self) -> CallFate {
        CallFate::default()
    }
}

/// (1) A commit is handed in; its connection breaks before anybody looks at its end. (2) It has ended: not now.
/// (3) The same is sent again: it must not be told the end of the first for ever.
#[tokio::test]
async fn f02_a_repeat_joins_no_commit_that_has_ended_without_being_looked_at() {
    let sleep: crate::model::Sleep = Arc::new(|_: Span| ready(()).boxed());
    let base = ModelStore::new(Arc::new(Ticking::default()), sleep);
    base.open(open_request(1, 0)).await.unwrap();
    base.set_plan(Box::new(FirstNotNow(AtomicUsize::new(0))));
    let serving = Serving::new(Arc::new(base), 7);
    let call = StoreCall::Commit(commit_request(1, assignment(1))).encode();
    drop(serving.answer(&call));
    let answer = Answered::decode(&serving.answer(&call).await).unwrap().answer;
    assert!(
        matches!(answer, StoreAnswer::Committed(Committed::Committed(_))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn what_never_left_is_unavailable_and_what_may_have_left_is_unknown() {
    let commit = commit_request(1, assignment(1));
    let answer = remote(&[Way::NotSent]).commit(commit.clone()).await;
    assert!(matches!(answer, Committed::Unavailable(_)), "{answer:?}");
    for way in [Way::RequestLost, Way::AnswerLost] {
        let answer = remote(&[way]).commit(commit.clone()).await;
        assert!(matches!(answer, Committed::Unknown(_)), "{answer:?}");
    }
    let read = remote(&[Way::RequestLost]).epoch(Scope::Coordinator).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
}

#[tokio::test]
async fn a_full_store_is_seen_from_afar() {
    let sleep: crate::model::Sleep = Arc::new(|_: Span| ready(()).boxed());
    let base = ModelStore::new(Arc::new(Ticking::default()), sleep);
    base.set_full(true);
    let store = RemoteStore::new(Direct::new(Arc::new(base.clone()), &[]));
    assert!(!store.is_full(), "nothing is known yet");
    store.epoch(Scope::Coordinator).await.unwrap();
    assert!(store.is_full());
    base.set_full(false);
    store.epoch(Scope::Coordinator).await.unwrap();
    assert!(!store.is_full());
}

#[tokio::test]
async fn facts_are_shown_once_they_were_asked_for() {
    let store = RemoteStore::new(Direct::new(model(), &[]));
    assert_eq!(store.describe().engine, "remote");
    assert_eq!(store.ask_facts().await, Ok(7));
    assert_eq!(store.describe().engine, "remote model");
}

/// One of every kind of call and answer.
fn messages() -> (Vec<StoreCall>, Vec<Answered>) {
    let answered = sample_answers().into_iter().enumerate().map(|(at, answer)| Answered {
        is_full: at % 2 == 1,
        answer,
    });
    (sample_calls(), answered.collect())
}

fn sample_calls() -> Vec<StoreCall> {
    let scope = Scope::Shard(ShardId(258));
    let writes: Vec<Write> = samples::rows()
        .into_iter()
        .take(3)
        .map(|row| Write::Put {
            row,
            expect: Expect::Absent,
        })
        .chain([Write::Delete(RowKey::Cell), assignment(3)])
        .collect();
    vec![
        StoreCall::Open(open_request(9, 3)),
        StoreCall::Epoch(scope),
        StoreCall::Commit(Commit {
            scope,
            holder: Holder(9),
            epoch: Epoch(4),
            number: BatchNo(77),
            batch: Arc::new(encode_batch(&writes, true).unwrap()),
        }),
        StoreCall::Check(scope, Holder(9), Epoch(4)),
        StoreCall::Get(vec![vec![1], vec![2, 3]], 4_096),
        StoreCall::Scan(Scan {
            from: vec![1],
            to: vec![9, 9],
            limit: 10,
            bytes: usize::MAX,
            backwards: true,
        }),
        StoreCall::Now(Scope::Coordinator),
        StoreCall::Facts,
        StoreCall::ConfirmClock,
    ]
}

fn sample_answers() -> Vec<StoreAnswer> {
    let stated = Stated {
        time: StoreTime(1_795_000_000_000_000),
        doubt: true,
    };
    let facts = StoreFacts {
        engine: "fjall".to_owned(),
        folder: Some("/data".to_owned()),
        high_water: 12,
        chain: "00ff".to_owned(),
    };
    let opened = Opened {
        epoch: Epoch(5),
        at: stated.time,
    };
    let word = || "why".to_owned();
    let committed = [
        Committed::Committed(stated),
        Committed::Already(stated),
        Committed::Conflict(word()),
        Committed::Stale,
        Committed::Full,
        Committed::Unavailable(word()),
        Committed::Unknown(word()),
    ];
    let mut answers: Vec<StoreAnswer> = committed.map(StoreAnswer::Committed).into();
    answers.extend([
        StoreAnswer::Opened(Ok(opened)),
        StoreAnswer::Opened(Err(OpenError::Moved { current: Epoch(6) })),
        StoreAnswer::Opened(Err(OpenError::NotAssigned)),
        StoreAnswer::Opened(Err(StoreError::Unavailable(word()).into())),
        StoreAnswer::Epoch(Epoch(6)),
        StoreAnswer::Checked(true),
        StoreAnswer::Values(vec![None, Some(Arc::from([1, 2].as_slice()))]),
        StoreAnswer::Rows(vec![(Arc::from([3].as_slice()), Arc::from([].as_slice()))], true),
        StoreAnswer::Stated(stated),
        StoreAnswer::Facts(facts, 1 << 100),
        StoreAnswer::Unavailable(word()),
        StoreAnswer::NotUnderstood(word()),
        StoreAnswer::ClockConfirmed(true),
    ]);
    answers
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn messages_are_written_as_they_always_were() {
    let (calls, answers) = messages();
    let written: Vec<String> = calls
        .iter()
        .map(|call| format!("call {}", hex(&call.encode())))
        .chain(answers.iter().map(|answer| format!("answer {}", hex(&answer.encode()))))
        .collect();
    assert_eq!(
        GOLDEN.lines().collect::<Vec<_>>(),
        written,
        "as they would be now:\n{}",
        written.join("\n")
    );
}

#[test]
fn messages_are_read_as_they_were_meant() {
    let (calls, answers) = messages();
    for call in calls {
        let bytes = call.encode();
        let read = StoreCall::decode(&bytes).unwrap();
        assert_eq!(format!("{read:?}"), format!("{call:?}"));
    }
    for answer in answers {
        assert_eq!(Answered::decode(&answer.encode()), Ok(answer));
    }
}

#[test]
fn every_cut_and_every_surplus_byte_is_refused() {
    let (calls, answers) = messages();
    for bytes in calls.iter().map(StoreCall::encode) {
        for cut in 0..bytes.len() {
            assert!(StoreCall::decode(&bytes[..cut]).is_err());
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(StoreCall::decode(&longer).is_err());
    }
    for bytes in answers.iter().map(Answered::encode) {
        for cut in 0..bytes.len() {
            assert!(Answered::decode(&bytes[..cut]).is_err());
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(Answered::decode(&longer).is_err());
    }
}

#[test]
fn a_batch_with_another_digest_is_refused() {
    let mut bytes = StoreCall::Commit(commit_request(1, assignment(1))).encode();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(
        StoreCall::decode(&bytes).unwrap_err(),
        WireError::Illegal("digest of the batch")
    );
}

#[tokio::test]
async fn a_call_of_a_later_build_is_refused_and_harms_nothing() {
    let base = model();
    for bytes in [
        &[1, 99][..],
        &[2, 1],
        &[],
        &[1, 5, 255, 255, 255, 255, 255, 255, 255, 255, 255],
    ] {
        let answered = Answered::decode(&Serving::new(base.clone(), 7).answer(bytes).await).unwrap();
        assert!(matches!(answered.answer, StoreAnswer::NotUnderstood(_)), "{answered:?}");
    }
    let long = StoreCall::Get(vec![vec![0; 2 * KEY_BYTES_MAX + 1]], 1).encode();
    assert!(StoreCall::decode(&long).is_err());
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256), which in 0..40_usize, at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let _ = StoreCall::decode(&bytes);
        let _ = Answered::decode(&bytes);
        let (calls, answers) = messages();
        let mut valid: Vec<Vec<u8>> = calls.iter().map(StoreCall::encode).collect();
        valid.extend(answers.iter().map(Answered::encode));
        let mut bytes = valid[which % valid.len()].clone();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let _ = StoreCall::decode(&bytes);
        let _ = Answered::decode(&bytes);
    }

    #[test]
    fn a_scan_in_pages_finds_what_one_scan_finds(limit in 1..40_usize, bytes in 1..4_000_usize, backwards in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let base = model();
            base.open(open_request(1, 0)).await.unwrap();
            for number in 1..=30_u16 {
                let row = Row::Assignment(AssignmentRow { scope: Scope::Shard(ShardId(number)), node: Name::new("a").unwrap(), version: 1 });
                let answer = base.commit(commit_request(u64::from(number), Write::Put { row, expect: Expect::Any })).await;
                prop_assert!(matches!(answer, Committed::Committed(_)));
            }
            let scan = Scan { from: vec![0], to: vec![0xff], limit, bytes: usize::MAX, backwards };
            let whole = base.scan(scan.clone()).await.unwrap();
            let remote = RemoteStore::new(Direct::new(base.clone(), &[]));
            prop_assert_eq!(&remote.scan(scan.clone()).await.unwrap(), &whole);
            let bounded = remote.scan(Scan { bytes, ..scan.clone() }).await.unwrap();
            prop_assert!(whole.starts_with(&bounded) && (bounded.len() >= 2.min(limit)));
            Ok(())
        })?;
    }
}
