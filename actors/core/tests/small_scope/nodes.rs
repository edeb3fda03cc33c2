//! Two nodes with the real Worker machine, and the runs that they start.
//!
//! Owns: what a worker's orders do. Must never: decide. Next: `resource.rs`.

use crate::resource::{Call, Run};
use crate::scope::{Fault, HEARTBEAT};
use crate::wire::{FromWorker, Life, Packet};
use crate::world::World;
use fencepost_core::ids::{ShardMap, Token};
use fencepost_core::job::{Delivery, EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::lease_manager::io::Grant;
use fencepost_core::time::Span;
use fencepost_core::worker::io::{WorkerEffect, WorkerInput};
use fencepost_core::worker::{WorkerConfig, WorkerMachine};
use std::sync::Arc;

/// A node.
#[derive(Clone, Hash)]
pub struct Node {
    pub boot: u64,
    pub machine: WorkerMachine,
    pub draining: bool,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The effect is there.
    Success,
    /// Something went wrong; whether there is an effect is not known, and its call may still arrive.
    Failure,
    /// It went wrong before the call was made.
    NoEffect,
}

impl Node {
    pub fn new(boot: u64, slots: u32) -> Node {
        let mut config = WorkerConfig::new(slots, ShardMap::new(1).unwrap());
        config.heartbeat = HEARTBEAT;
        // Hints are events here, so that nothing is asked for between them.
        config.sweep = Span::from_secs(86_400);
        Node {
            boot,
            machine: WorkerMachine::new(config),
            draining: false,
        }
    }
}

impl World {
    /// One step of a worker.
    pub fn step_node(&mut self, node: usize, input: WorkerInput) -> Result<(), String> {
        let now = self.now;
        let mut effects = Vec::new();
        let begins = matches!(input, WorkerInput::Granted { .. }) && self.scope.has(Fault::StartsBeforeBegin);
        let grants = match &input {
            WorkerInput::Granted { grants, .. } if begins => grants.clone(),
            _ => Vec::new(),
        };
        self.nodes[node].machine.step(now, input, &mut effects);
        self.nodes[node].machine.check();
        for effect in effects {
            self.obey(node, effect, &grants)?;
        }
        Ok(())
    }

    fn obey(&mut self, node: usize, effect: WorkerEffect, grants: &[Grant]) -> Result<(), String> {
        let life: Life = (node, self.nodes[node].boot);
        match effect {
            WorkerEffect::SendOffer {
                offer,
                slots,
                waits,
                apart,
                ..
            } => self.say(life, FromWorker::Offer(offer, slots, waits, apart)),
            WorkerEffect::SendHeartbeat { beat, held, .. } => {
                self.watch.beat_last = beat;
                self.say(life, FromWorker::Heartbeat(beat, held));
            }
            WorkerEffect::SendBegin { id, token, .. } => {
                self.say(life, FromWorker::Begin(id, token));
                if let Some(grant) = grants.iter().find(|grant| grant.token == token) {
                    self.on_start(node, grant)?;
                }
            }
            WorkerEffect::SendOutcomes { items, .. } => self.say(life, FromWorker::Outcomes(items)),
            WorkerEffect::SendHandBack { items, .. } => self.say(life, FromWorker::HandBack(items)),
            WorkerEffect::StartAttempt { grant, .. } => self.on_start(node, &grant)?,
            WorkerEffect::StopAttempt { token, .. } => self.on_stop(token),
            WorkerEffect::ExtendAttempt { .. } | WorkerEffect::TellRecorded { .. } | WorkerEffect::Drained => {}
        }
        Ok(())
    }

    fn say(&mut self, life: Life, said: FromWorker) {
        self.wire.send(Packet::ToOwner(life, said));
    }

    fn on_start(&mut self, node: usize, grant: &Grant) -> Result<(), String> {
        if self.watch.answered_cancelled {
            return Err("started after the answer \"cancelled\"".to_owned());
        }
        if self.scope.fault == Some(Fault::StartsBeforeBegin) && self.watch.started.contains(&grant.token) {
            return Ok(());
        }
        if !self.watch.started.insert(grant.token) {
            return Err("started twice under one token".to_owned());
        }
        if self.scope.delivery == Delivery::AtMostOnce && !self.is_begun(grant.token) {
            return Err("an at-most-once attempt started before its begin was durable".to_owned());
        }
        let run = Run {
            node: Some(node),
            attempt: grant.attempt,
            call: Call::Away,
            told: false,
        };
        self.runs.insert(grant.token, run);
        Ok(())
    }

    /// Begun in its leased row, or ended since (then its record is there).
    fn is_begun(&self, token: Token) -> bool {
        let leased = self.store.leased().is_some_and(|row| row.token == token && row.begun);
        let recorded = |token| {
            self.store
                .job()
                .is_some_and(|job| job.attempts.iter().any(|a| a.token == token))
        };
        leased || recorded(token)
    }

    fn on_stop(&mut self, token: Token) {
        if let Some(run) = self.runs.get_mut(&token) {
            run.told = true;
        }
    }

    /// A node drains.
    pub fn drain(&mut self, node: usize) -> Result<(), String> {
        self.nodes[node].draining = true;
        self.step_node(node, WorkerInput::Drain)?;
        if self.scope.has(Fault::HandsBackStarted) {
            let running = self.runs.iter().filter(|(_, run)| run.node == Some(node));
            let items: Vec<_> = running.map(|(token, _)| (crate::scope::job_id(), *token)).collect();
            self.say((node, self.nodes[node].boot), FromWorker::HandBack(items));
        }
        Ok(())
    }

    /// A run ends. If its call is still under way it may arrive later all the same.
    pub fn finish(&mut self, token: Token, ending: Ending) -> Result<(), String> {
        let Some(run) = self.runs.get_mut(&token) else {
            return Ok(());
        };
        let Some(node) = run.node.take() else { return Ok(()) };
        let told = run.told;
        if !run.is_open() || ending == Ending::NoEffect {
            self.runs.remove(&token);
        }
        let effect = match ending {
            Ending::NoEffect => EffectProof::NoEffect,
            Ending::Success | Ending::Failure => EffectProof::Unproven,
        };
        let retry = RetryAdvice::ByPolicy;
        let verdict = match ending {
            Ending::Success => Verdict::Succeeded,
            Ending::Failure | Ending::NoEffect if told => Verdict::Cancelled { effect },
            Ending::Failure | Ending::NoEffect => Verdict::Failed { retry, effect },
        };
        let outcome = Outcome {
            verdict,
            error: None,
            output: Arc::from([].as_slice()),
        };
        let id = crate::scope::job_id();
        let items = vec![(id, token, outcome)];
        self.step_node(node, WorkerInput::AttemptsFinished { items })
    }

    /// A node dies with everything on it, but what it has sent is under way, and it starts anew.
    pub fn die(&mut self, node: usize) -> Result<(), String> {
        let life = (node, self.nodes[node].boot);
        self.wire.drop_to(life);
        for run in self.runs.values_mut().filter(|run| run.node == Some(node)) {
            run.node = None;
        }
        self.runs.retain(|_, run| run.node.is_some() || run.is_open());
        self.nodes[node] = Node::new(life.1 + 1, self.scope.slots);
        self.step_node(node, WorkerInput::Tick)
    }
}
