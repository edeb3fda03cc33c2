//! What a start makes of the machine's clock (F20): the line of the process before it, in the same boot.

use super::*;
use crate::clock::Clock;
use crate::store::Stated;
use fencepost_core::limits::CLOCK_DOUBT_MAX_MS;
use fencepost_core::time::{BootTime, Monotonic, Span};
use std::sync::Mutex;

const NOON: StoreTime = StoreTime(1_795_000_000_000_000);
const DAY: Span = Span::from_secs(86_400);
const MINUTE: Span = Span::from_secs(60);

/// A machine: its wall clock, how long it is up, which boot. A process begins with a monotonic clock at zero.
struct Machine {
    shown: Arc<Mutex<(StoreTime, Span, u128)>>,
    temp: tempfile::TempDir,
}

struct OfProcess {
    shown: Arc<Mutex<(StoreTime, Span, u128)>>,
    began: Span,
}

impl Clock for OfProcess {
    fn wall(&self) -> StoreTime {
        self.shown.lock().unwrap().0
    }

    fn mono(&self) -> Monotonic {
        Monotonic((self.shown.lock().unwrap().1 - self.began).0)
    }

    fn boot(&self) -> Option<BootTime> {
        let (_, since, id) = *self.shown.lock().unwrap();
        Some(BootTime { id, since })
    }
}

impl Machine {
    fn new() -> Machine {
        Machine {
            shown: Arc::new(Mutex::new((NOON, Span::from_secs(1_000), 1))),
            temp: tempfile::tempdir().unwrap(),
        }
    }

    /// Time passes.
    fn pass(&self, span: Span) {
        let mut shown = self.shown.lock().unwrap();
        (shown.0, shown.1) = (shown.0 + span, Span(shown.1.0 + span.0));
    }

    /// Someone sets the wall clock.
    fn set_ahead(&self, span: Span) {
        let mut shown = self.shown.lock().unwrap();
        shown.0 = shown.0 + span;
    }

    fn reboot(&self) {
        let mut shown = self.shown.lock().unwrap();
        (shown.1, shown.2) = (Span::from_secs(5), shown.2 + 1);
    }

    fn start(&self) -> FjallStore {
        let began = self.shown.lock().unwrap().1;
        let shown = self.shown.clone();
        let options = Options::new(NewStore { store: 1, cell: 2 }, Arc::new(OfProcess { shown, began }));
        FjallStore::start(&self.temp.path().join("store"), options).unwrap()
    }

    /// A process that states the time and ends.
    async fn stated(&self) -> Stated {
        self.start().now(SCOPE).await.unwrap()
    }
}

#[tokio::test]
async fn f20_a_leap_while_the_store_was_down_is_doubt_until_it_is_confirmed() {
    let machine = Machine::new();
    assert!(!machine.stated().await.doubt);
    machine.pass(MINUTE);
    machine.set_ahead(DAY);
    assert!(machine.stated().await.doubt, "a day, of which one minute passed");
    machine.pass(MINUTE);
    let store = machine.start();
    assert!(
        store.now(SCOPE).await.unwrap().doubt,
        "nor does another start believe it"
    );
    assert!(store.confirm_clock().await.unwrap());
    drop(store);
    let stated = machine.stated().await;
    assert_eq!((stated.time, stated.doubt), (NOON + DAY + MINUTE + MINUTE, false));
}

#[tokio::test]
async fn f20_a_leap_before_the_start_is_believed_once_the_clock_ran_steadily() {
    let machine = Machine::new();
    machine.stated().await;
    machine.set_ahead(DAY);
    let store = machine.start();
    assert!(store.now(SCOPE).await.unwrap().doubt);
    machine.pass(Span::from_millis(CLOCK_DOUBT_MAX_MS));
    assert!(!store.now(SCOPE).await.unwrap().doubt);
    drop(store);
    assert!(!machine.stated().await.doubt, "and so by the next");
}

#[tokio::test]
async fn f20_time_that_passed_while_the_store_was_down_is_no_leap() {
    let machine = Machine::new();
    machine.stated().await;
    machine.pass(DAY);
    let stated = machine.stated().await;
    assert_eq!((stated.time, stated.doubt), (NOON + DAY, false));
}

#[tokio::test]
async fn f20_after_a_boot_the_clock_is_believed() {
    let machine = Machine::new();
    machine.stated().await;
    machine.set_ahead(DAY);
    machine.reboot();
    let stated = machine.stated().await;
    assert_eq!(
        (stated.time, stated.doubt),
        (NOON + DAY, false),
        "how long it was off nothing tells"
    );
}

#[tokio::test]
async fn f20_a_line_that_cannot_be_read_refuses_no_start() {
    let machine = Machine::new();
    machine.stated().await;
    let file = machine.temp.path().join("store/CLOCK");
    std::fs::write(&file, b"FPCLOCK").unwrap();
    machine.set_ahead(DAY);
    assert!(!machine.stated().await.doubt, "it is believed");
    machine.set_ahead(DAY);
    assert!(machine.stated().await.doubt, "the file is whole again");
}
