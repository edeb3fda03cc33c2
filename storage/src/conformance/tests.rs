//! The suite on the stores of this package, and on model stores with planted bugs.

use super::{CLOCK_RULES, CRASH_RULES, Mortal, RULES, Timed, Verdict};
use crate::clock::Clock;
use crate::model::{Crash, ModelStore, PLANTED, Planted, Sleep};
use crate::store::Store;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use futures_util::FutureExt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// A clock that moves with each reading.
#[derive(Default)]
pub(crate) struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn wall(&self) -> StoreTime {
        let ticks = self.0.fetch_add(7, Ordering::Relaxed);
        StoreTime(1_795_000_000_000_000 + i64::try_from(ticks).unwrap())
    }

    fn mono(&self) -> Monotonic {
        Monotonic(self.0.load(Ordering::Relaxed))
    }
}

/// A clock that shows what it is set to.
#[derive(Default)]
struct Shown(Mutex<(StoreTime, Monotonic)>);

impl Clock for Shown {
    fn wall(&self) -> StoreTime {
        self.0.lock().unwrap().0
    }

    fn mono(&self) -> Monotonic {
        self.0.lock().unwrap().1
    }
}

/// The model and the clocks that it reads.
pub(crate) struct TimedModel(ModelStore, Arc<Shown>);

impl TimedModel {
    pub(crate) fn new() -> TimedModel {
        let shown = Arc::new(Shown::default());
        let sleep: Sleep = Arc::new(|_| futures_util::future::ready(()).boxed());
        TimedModel(ModelStore::new(shown.clone(), sleep), shown)
    }
}

impl Timed for TimedModel {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn set(&self, wall: StoreTime, mono: Monotonic) {
        *self.1.0.lock().unwrap() = (wall, mono);
    }

    fn restart(&self) {
        self.0.crash(Crash::Process);
    }
}

#[cfg(not(madsim))]
struct TimedFolder {
    temp: tempfile::TempDir,
    store: Mutex<Option<crate::fjall_store::FjallStore>>,
    shown: Arc<Shown>,
}

#[cfg(not(madsim))]
impl TimedFolder {
    fn new() -> TimedFolder {
        let subject = TimedFolder {
            temp: tempfile::tempdir().unwrap(),
            store: Mutex::new(None),
            shown: Arc::default(),
        };
        subject.restart();
        subject
    }
}

#[cfg(not(madsim))]
impl Timed for TimedFolder {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.lock().unwrap().clone().unwrap())
    }

    fn set(&self, wall: StoreTime, mono: Monotonic) {
        *self.shown.0.lock().unwrap() = (wall, mono);
    }

    fn restart(&self) {
        use crate::fjall_store::{FjallStore, NewStore, Options};
        let mut store = self.store.lock().unwrap();
        drop(store.take());
        let options = Options::new(NewStore { store: 1, cell: 2 }, self.shown.clone());
        *store = Some(FjallStore::start(&self.temp.path().join("store"), options).unwrap());
    }
}

async fn clock_rules(subject: fn() -> Arc<dyn Timed>) {
    for rule in CLOCK_RULES {
        let verdict = (rule.run)(subject()).await;
        assert!(verdict.is_ok(), "{}: {verdict:?}", rule.name);
    }
}

#[tokio::test]
async fn the_model_store_keeps_every_rule_about_clocks() {
    clock_rules(|| Arc::new(TimedModel::new())).await;
}

#[cfg(not(madsim))]
#[tokio::test]
async fn the_embedded_store_keeps_every_rule_about_clocks() {
    clock_rules(|| Arc::new(TimedFolder::new())).await;
}

struct ModelSubject {
    store: ModelStore,
    held: watch::Sender<bool>,
}

impl ModelSubject {
    fn new(bug: Option<Planted>) -> ModelSubject {
        let (held, seen) = watch::channel(false);
        let sleep: Sleep = Arc::new(move |_| {
            let mut seen = seen.clone();
            async move {
                let _ = seen.wait_for(|is_held| !is_held).await;
            }
            .boxed()
        });
        let store = ModelStore::new(Arc::new(Ticking::default()), sleep);
        if let Some(bug) = bug {
            store.plant(bug);
        }
        store.set_plan(Box::new(SlowSyncs));
        ModelSubject { store, held }
    }
}

/// Every commit waits at its sync for as long as syncs are held.
struct SlowSyncs;

impl crate::model::FaultPlan for SlowSyncs {
    fn on_commit(&mut self, _request: &crate::store::Commit) -> crate::model::CallFate {
        crate::model::CallFate {
            sync_delay: Span(1),
            ..crate::model::CallFate::default()
        }
    }

    fn on_open(&mut self, _request: &crate::store::Open) -> crate::model::CallFate {
        crate::model::CallFate::default()
    }

    fn on_read(&mut self) -> crate::model::CallFate {
        crate::model::CallFate::default()
    }
}

impl Mortal for ModelSubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    fn cut_power(&self) {
        self.store.crash(Crash::Power { kept: 0 });
    }

    fn kill(&self) {
        self.store.crash(Crash::Process);
    }

    fn hold_syncs(&self) {
        self.held.send_replace(true);
    }

    fn release_syncs(&self) {
        self.held.send_replace(false);
    }
}

async fn run_all(bug: Option<Planted>) -> Vec<(&'static str, Verdict)> {
    let mut verdicts = Vec::new();
    for rule in RULES {
        let subject = ModelSubject::new(bug);
        verdicts.push((rule.name, (rule.run)(subject.store()).await));
    }
    for rule in CRASH_RULES {
        let subject = Arc::new(ModelSubject::new(bug));
        verdicts.push((rule.name, (rule.run)(subject).await));
    }
    verdicts
}

fn failed(verdicts: &[(&'static str, Verdict)]) -> Vec<&'static str> {
    let failed = verdicts.iter().filter(|(_, verdict)| verdict.is_err());
    failed.map(|(name, _)| *name).collect()
}

/// What a rule, named by its sentence, says of a model store with this bug.
async fn verdict(name: &str, bug: Option<Planted>) -> Verdict {
    if let Some(rule) = RULES.iter().find(|rule| rule.name == name) {
        return (rule.run)(ModelSubject::new(bug).store()).await;
    }
    let rule = CRASH_RULES.iter().find(|rule| rule.name == name);
    (rule.expect("a rule of that name").run)(Arc::new(ModelSubject::new(bug))).await
}

#[tokio::test]
async fn f5_what_a_read_showed_survives_power_loss() {
    let rule = "f05_what_was_read_survives_power_loss";
    assert_eq!(verdict(rule, None).await, Ok(()));
    assert!(verdict(rule, Some(Planted::ReadUnsynced)).await.is_err());
}

#[tokio::test]
async fn f5_an_open_is_durable_and_nothing_of_an_older_epoch_follows_it() {
    let rule = super::opens::NOTHING_OLD_FOLLOWS_AN_OPEN.name;
    assert_eq!(verdict(rule, None).await, Ok(()));
    assert_eq!(
        verdict("f05_an_open_survives_power_loss_with_its_epoch", None).await,
        Ok(())
    );
}

#[tokio::test]
async fn the_model_store_keeps_every_rule() {
    let verdicts = run_all(None).await;
    let wrong: Vec<_> = verdicts.iter().filter(|(_, verdict)| verdict.is_err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(verdicts.len(), RULES.len() + CRASH_RULES.len());
}

#[tokio::test]
async fn every_planted_bug_breaks_a_rule() {
    for bug in PLANTED {
        let verdicts = run_all(Some(bug)).await;
        assert!(!failed(&verdicts).is_empty(), "no rule notices {bug:?}");
    }
}

#[tokio::test]
async fn every_planted_bug_breaks_the_rule_that_was_made_for_it() {
    let made_for = [
        (Planted::ReadUnsynced, "f05_what_was_read_survives_power_loss"),
        (Planted::AckBeforeSync, "p1_what_was_acknowledged_survives_power_loss"),
        (Planted::EpochIgnored, "f02_an_old_epoch_writes_nothing"),
        (
            Planted::HolderIgnored,
            "f06_equal_epochs_of_two_holders_are_not_both_taken",
        ),
        (Planted::OwnerIgnored, "f02_an_old_epoch_writes_nothing"),
        (Planted::GapAccepted, "f02_only_the_number_after_the_last_is_taken"),
        (
            Planted::DuplicateApplied,
            "f02_a_batch_sent_again_is_answered_and_not_applied_again",
        ),
        (
            Planted::DigestIgnored,
            "f02_other_bytes_under_the_last_number_are_a_conflict",
        ),
        (
            Planted::ExpectationsIgnored,
            "f04_a_put_over_another_version_is_a_conflict",
        ),
        (
            Planted::RefusedBatchLeavesTrace,
            "a_refused_batch_leaves_no_row_and_uses_no_number",
        ),
        (Planted::OpenWithoutCompare, "f06_an_open_of_another_epoch_is_refused"),
        (
            Planted::OpenWithoutAssignment,
            "f06_only_the_node_that_the_assignment_names_may_open",
        ),
        (
            Planted::OpenForgetsNonce,
            "f06_a_delayed_open_does_not_raise_the_epoch_above_its_own_holder",
        ),
        (Planted::EpochNotRaised, "f02_an_old_epoch_writes_nothing"),
    ];
    assert_eq!(made_for.len(), PLANTED.len());
    for (bug, rule) in made_for {
        let failed = failed(&run_all(Some(bug)).await);
        assert!(failed.contains(&rule), "{bug:?} broke only {failed:?}");
    }
}

#[cfg(not(madsim))]
#[tokio::test]
async fn the_embedded_store_keeps_every_rule() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let temp = tempfile::tempdir().unwrap();
        let store = crate::fjall_store::tests::started(&temp.path().join("store"));
        if let Err(why) = (rule.run)(Arc::new(store)).await {
            wrong.push((rule.name, why));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
