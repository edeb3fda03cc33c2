//! Clients that make jobs, each under a key, at whichever node takes them.
//!
//! Owns: what was acknowledged, and how long that took. Next: `verdict.rs`.

use super::{Cell, create_told};
use crate::api::Api;
use crate::pace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CLIENTS: usize = 3;

/// One acknowledged creation: when it was first asked for, how long it took, and which node made it wait longest: its
/// place, what it answered, and how long that took.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub at: Instant,
    pub took: Duration,
    pub longest: (usize, u16, Duration),
}

/// Running clients.
pub struct Load {
    stopping: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
    made: Arc<Mutex<Vec<String>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Load {
    /// Each client makes a job, waits until it is acknowledged, and pauses for this long.
    pub fn start(cell: &Cell, pause: Duration, apis: impl Fn() -> Vec<Api>) -> Load {
        let stopping = Arc::new(AtomicBool::new(false));
        let (made, asked) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let client = |number: usize| {
            let (stopping, made, asked) = (stopping.clone(), made.clone(), asked.clone());
            let (body, effects, mut apis) = (cell.job("/effect"), cell.effects.clone(), apis());
            std::thread::spawn(move || {
                let mut turn = 0;
                while !stopping.load(Ordering::SeqCst) {
                    turn += 1;
                    let at = pace::from_now(Duration::ZERO);
                    let (key, mut longest) = (format!("{number}-{turn}"), (0, 0, Duration::ZERO));
                    let mut tell = |node, status, took| {
                        if took > longest.2 {
                            longest = (node, status, took);
                        }
                    };
                    let (id, took) = pace::took(|| create_told(&effects, &mut apis, &key, &body, &mut tell));
                    asked.lock().unwrap().push(Asked { at, took, longest });
                    made.lock().unwrap().push(id);
                    pace::reach(pace::from_now(pause));
                }
            })
        };
        Load {
            clients: (0..CLIENTS).map(client).collect(),
            stopping,
            made,
            asked,
        }
    }

    /// Jobs that are acknowledged by now.
    pub fn made(&self) -> Vec<String> {
        self.made.lock().unwrap().clone()
    }

    /// The acknowledged jobs, and how long each took.
    pub fn stop(self) -> (Vec<String>, Vec<Asked>) {
        self.stopping.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.join().unwrap();
        }
        let asked = self.asked.lock().unwrap().clone();
        (self.made.lock().unwrap().clone(), asked)
    }
}
