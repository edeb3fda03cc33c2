//! A node in memory with short leases, its API, and the worker's process.
//!
//! Owns: starting and stopping them, and asking about jobs. Must never: leave the worker's process behind. Next:
//! `cases.rs`.

use super::proxy::Network;
use super::{QUEUE, WORK, ended};
use crate::api::server::{ApiConfig, ApiServer, HttpLimits};
use crate::api::token::{TokenDigest, token_text};
use crate::chance::{SystemChance, draw_u64};
use crate::clock::{SharedClock, SystemClock};
use crate::gateway::{Gateway as _, JobView, ShardReply, ShardRequest};
use crate::net::rt::spawn;
use crate::node::lanes::local_lane;
use crate::node::{Node, NodeConfig, NodeParts, run_node};
use crate::process::serve::StoreTicks;
use crate::targets::{HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::ids::{JobId, Slot};
use fencepost_core::job::{AttemptRecord, Delivery, Job, JobSpec, JobState, RetryPolicy};
use fencepost_core::lease_manager::io::{CancelAnswer, CreateItem};
use fencepost_core::limits::PRIORITY_DEFAULT;
use fencepost_core::name::Name;
use fencepost_core::target::{Payload, PayloadKind, Target};
use fencepost_core::time::Span;
use fencepost_storage::model::ModelStore;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// Length of leases here.
pub(super) const LEASE: Span = Span::from_secs(3);
const HEARTBEAT: Span = Span::from_millis(500);
/// How long a case waits for anything.
const PATIENCE: Span = Span::from_secs(40);

/// Everything around one worker.
pub(super) struct World {
    pub(super) network: Network,
    address: SocketAddr,
    node: Node,
    clock: SharedClock,
    token: String,
    command: Vec<String>,
    worker: Option<Mutex<Child>>,
    stop: watch::Sender<bool>,
}

impl World {
    pub(super) async fn start(command: &[String]) -> Result<World, String> {
        let clock: SharedClock = Arc::new(SystemClock::new());
        let sleeper = clock.clone();
        let store = ModelStore::new(
            Arc::new(StoreTicks(clock.clone())),
            Arc::new(move |span: Span| sleeper.sleep(span)),
        );
        let chance = Arc::new(SystemChance);
        let parts = NodeParts {
            store: Arc::new(store),
            cell: u128::from(draw_u64(&*chance)),
            clock: clock.clone(),
            chance: chance.clone(),
            runner: TargetRunner::new(TargetsConfig::default(), HandlerRegistry::default()),
            lanes: vec![local_lane()],
            notes: Vec::new(),
            fatal: Arc::new(|_| tracing::error!("the kit's store broke")),
        };
        let mut config = NodeConfig::new(Name::new("kit").map_err(|error| error.to_string())?);
        (config.shards, config.lease, config.heartbeat) = (2, LEASE, HEARTBEAT);
        let node = run_node(config, parts).await.map_err(|error| error.to_string())?;
        node.ready().await;
        let token = token_text([0, 1].map(|_| u128::from(draw_u64(&*chance))));
        let config = ApiConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            host_names: Vec::new(),
            token: TokenDigest::of(&token),
            targets: TargetsConfig::default(),
            limits: HttpLimits::default(),
            metrics: None,
        };
        let api = ApiServer::bind(config, node.gateway.clone()).await;
        let api = api.map_err(|refusal| refusal.to_string())?;
        let (stop, stopped) = watch::channel(false);
        let network = Network::default();
        let address = network.open(api.address()).await.map_err(|error| error.to_string())?;
        spawn(api.serve(stopped, Duration::from_secs(1)));
        let mut world = World {
            network,
            address,
            node,
            clock,
            token,
            command: command.to_vec(),
            worker: None,
            stop,
        };
        world.start_worker()?;
        Ok(world)
    }

    pub(super) fn start_worker(&mut self) -> Result<(), String> {
        let (program, words) = self.command.split_first().ok_or("no command")?;
        let child = Command::new(program)
            .args(words)
            .env("FENCEPOST_SERVER", format!("http://{}", self.address))
            .env("FENCEPOST_TOKEN", &self.token)
            .kill_on_drop(true)
            .spawn();
        let child = child.map_err(|error| format!("{program} cannot be started: {}", crate::problem::plain(&error)))?;
        self.worker = Some(Mutex::new(child));
        Ok(())
    }

    /// Sends TERM to the worker and waits for its end.
    pub(super) async fn stop_worker(&mut self) -> Result<ExitStatus, String> {
        let worker = self.worker.take().ok_or("the worker has ended already")?;
        let mut worker = worker.into_inner().unwrap_or_else(PoisonError::into_inner);
        let id = worker
            .id()
            .and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or("the worker has ended already")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM).map_err(|error| error.to_string())?;
        let limit = self.clock.sleep(PATIENCE);
        tokio::select! {
            biased;
            status = worker.wait() => status.map_err(|error| error.to_string()),
            () = limit => Err("it did not end after SIGTERM".to_owned()),
        }
    }

    /// Where the worker sends what a case asks it to send.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) async fn make(&self, wish: &serde_json::Value, attempts: u32) -> Result<JobId, String> {
        let name = |text: &str| Name::new(text).map_err(|error| error.to_string());
        let draw = self.node.gateway.draw().to_be_bytes();
        let mut chance = [0; 14];
        chance.iter_mut().zip(draw).for_each(|(to, from)| *to = from);
        let id = JobId::fresh(Slot::of(&[&chance]), chance);
        let spec = JobSpec {
            tenant: name("default")?,
            queue: name(QUEUE)?,
            target: Target::Remote(name(WORK)?),
            payload: Payload {
                kind: PayloadKind::Json,
                bytes: wish.to_string().into_bytes().into(),
            },
            priority: PRIORITY_DEFAULT,
            tags: Vec::new(),
            timeout: Span::from_secs(60),
            retry: RetryPolicy {
                attempt_count_max: attempts,
                backoff_first: Span::from_millis(1),
                backoff_cap: Span::from_millis(1),
            },
            delivery: Delivery::AtLeastOnce,
            expires_at: None,
        };
        let item = CreateItem {
            id,
            spec: Arc::new(spec),
            due_at: None,
            delay: None,
            grace: None,
            key: None,
            resent: false,
            key_row: None,
            existing: None,
        };
        self.call(id, ShardRequest::CreateJobs(vec![item])).await?;
        Ok(id)
    }

    async fn call(&self, id: JobId, request: ShardRequest) -> Result<ShardReply, String> {
        let gateway = &self.node.gateway;
        let shard = gateway.shard_map().shard_of(id.slot());
        gateway
            .call(shard, request)
            .await
            .map_err(|refusal| refusal.to_string())
    }

    /// Whether an attempt runs and was asked to stop.
    pub(super) async fn cancel(&self, id: JobId) -> Result<bool, String> {
        let reply = self.call(id, ShardRequest::CancelJob(id)).await?;
        Ok(matches!(reply, ShardReply::Cancel(CancelAnswer::Running { .. })))
    }

    async fn view(&self, id: JobId) -> Result<JobView, String> {
        let read = self.node.gateway.job(id).await.map_err(|refusal| refusal.to_string())?;
        read.ok_or_else(|| "the job is gone".to_owned())
    }

    pub(super) async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, String> {
        let read = self.node.gateway.attempts(id, 0, 100).await;
        let page = read.map_err(|refusal| refusal.to_string())?;
        Ok(page.map(|page| page.items).unwrap_or_default())
    }

    /// Waits until it is so.
    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&World) -> bool) -> Result<(), String> {
        let end = self.clock.mono() + PATIENCE;
        while !is_so(self) {
            self.is_alive()?;
            if self.clock.mono() >= end {
                return Err(format!("never came: {what}"));
            }
            self.clock.sleep(Span::from_millis(10)).await;
        }
        Ok(())
    }

    /// Waits until an attempt of the job has ended.
    pub(super) async fn until_ended(&self, id: JobId) -> Result<(), String> {
        let end = self.clock.mono() + PATIENCE;
        while self.attempts(id).await?.is_empty() {
            self.is_alive()?;
            if self.clock.mono() >= end {
                return Err("its attempt did not end".to_owned());
            }
            self.clock.sleep(Span::from_millis(10)).await;
        }
        Ok(())
    }

    /// Waits until an attempt of the job runs.
    pub(super) async fn until_running(&self, id: JobId) -> Result<(), String> {
        let end = self.clock.mono() + PATIENCE;
        while self.view(id).await?.leased.is_none() {
            self.is_alive()?;
            if self.clock.mono() >= end {
                return Err("it did not claim the job".to_owned());
            }
            self.clock.sleep(Span::from_millis(10)).await;
        }
        Ok(())
    }

    /// Waits for the job's end, in this state and after so many attempts.
    pub(super) async fn expect(&self, id: JobId, state: JobState, attempts: usize) -> Result<Arc<Job>, String> {
        let end = self.clock.mono() + PATIENCE;
        let view = loop {
            let view = self.view(id).await?;
            let is_over = view.job.state.is_finished() || view.job.state == JobState::Dead;
            if is_over || self.clock.mono() >= end {
                break view;
            }
            self.is_alive()?;
            self.clock.sleep(Span::from_millis(10)).await;
        };
        let word = |state| crate::api::dto::job_view::state_word(state);
        let records = self.attempts(id).await?.len();
        match (view.job.state == state, records == attempts) {
            (false, _) => Err(format!("the job is {}, not {}", word(view.job.state), word(state))),
            (true, false) => Err(format!("it took {records} attempts, not {attempts}")),
            (true, true) => Ok(view.job),
        }
    }

    /// The faults end; a worker that has ended is started again.
    pub(super) async fn calm_down(&mut self) {
        self.network.calm_down();
        if self.worker.is_none() || self.is_alive().is_err() {
            let _ = self.start_worker();
        }
    }

    /// Whether the worker's process lives. One that was told to end is nobody's any more.
    pub(super) fn is_alive(&self) -> Result<(), String> {
        let worker = self.worker.as_ref();
        let looked = worker.map(|worker| worker.lock().unwrap_or_else(PoisonError::into_inner).try_wait());
        match looked {
            Some(Ok(None)) | None => Ok(()),
            Some(Ok(Some(status))) => Err(ended(status)),
            Some(Err(error)) => Err(error.to_string()),
        }
    }

    pub(super) async fn stop(mut self) {
        if let Some(worker) = self.worker.take() {
            let mut worker = worker.into_inner().unwrap_or_else(PoisonError::into_inner);
            let _ = worker.kill().await;
        }
        let _ = self.stop.send(true);
        self.node.drain().await;
    }
}
