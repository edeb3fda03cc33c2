//! A server process: store, node and API from start to drain.
//!
//! Owns: the order of starting and stopping, and the exit codes on the way. Must never: hold logic of
//! a part. Next: `../node/`, `../api/server.rs`, `samples.rs`.

use crate::api::server::{ApiConfig, ApiServer, HttpLimits, Listening};
use crate::api::token::{Kept, TokenDigest, read_or_make, read_or_make_token, token_text};
use crate::chance::{Chance, SharedChance, SystemChance, draw_holder, draw_u64};
use crate::clock::{SharedClock, SystemClock};
use crate::desk::GrantKey;
use crate::gateway::Gateway;
use crate::mesh::tls::{MeshTls, TlsFiles};
use crate::mesh::{MeshSecret, Roles};
use crate::node::notes::Notes;
use crate::node::{Neighbours, Node, NodeConfig, NodeParts, join_node, run_node};
use crate::problem::{Problem, plain, signals_unheard};
use crate::process::notify::{Manager, waits_for};
use crate::process::roles::{self, Connections};
use crate::process::say::{say, say_failure, say_in_json};
use crate::process::signals::Signals;
use crate::process::{certificate, exit, panics, samples, threads};
use crate::shell::fetch::SharedStore;
use crate::shell::shard_actor::Ending;
use crate::targets::{HandlerRegistry, TargetRunner, TargetsConfig};
use crate::telemetry::console::ConsoleNotes;
use crate::telemetry::logging::{self, LogFormat, LogNotes};
use crate::telemetry::metrics::{self, MetricNotes};
use fencepost_core::limits::{HTTP_STOP_MS, SERVICE_READY_MS, STOP_START_MS};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::{BootTime, Monotonic, Span, StoreTime};
use fencepost_storage::fjall_store::{FjallStore, NewStore, Options, glance};
use fencepost_storage::model::ModelStore;
use futures_util::future::{Either, select};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How a server is started.
pub struct ServeOptions {
    /// Where the store lies, and the token; `None` keeps everything in memory.
    pub folder: Option<PathBuf>,
    /// What this process does, and where the rest is.
    pub part: Part,
    /// This node's certificate for connections between nodes; with one they are under TLS.
    pub mesh_tls: Option<TlsFiles>,
    /// What the nodes of the cell share, where the environment names it; else it is in a file.
    pub mesh_secret: Option<MeshSecret>,
    /// Where the API listens; loopback only.
    pub listen: SocketAddr,
    /// What clients show, where the environment names it; else it is in a file.
    pub token: Option<TokenDigest>,
    /// Settings of the node.
    pub node: NodeConfig,
    /// What targets may do.
    pub targets: TargetsConfig,
    /// Rust handlers.
    pub handlers: HandlerRegistry,
    /// Makes sample schedules in an empty store and prints a line for each attempt.
    pub dev: bool,
    /// Threads for shards; `None` is one per processor.
    pub lanes: Option<usize>,
    /// Log lines.
    pub log: LogFormat,
    /// Default log level.
    pub level: String,
}

/// How long a start that was told to stop may go on; by then its store is away, and so is all it began.
const STOP_START_MAX: Span = Span::from_millis(STOP_START_MS);

/// A node that serves is called ready by then, whatever its shards are at.
const READY_MAX: Span = Span::from_millis(SERVICE_READY_MS);

/// Which roles a process has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    Whole,
    /// The store alone, for nodes that connect here; their sessions last so long.
    Store(SocketAddr, Span),
    /// All but the store, which is reached at this `host:port` with the secret in this file; others of its kind
    /// reach it at this place.
    WithoutStore(String, PathBuf, MeshPlace),
    /// A worker alone, for a cell whose store is reached at this `host:port` with the secret in this file.
    Worker(String, PathBuf),
}

/// Where a node is reached by others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshPlace {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where they are told to come, as `host:port`; where it listens, if nothing is said.
    pub advertise: Option<String>,
}

/// What went wrong before the server served, with its exit code.
pub(super) struct Refused {
    code: u8,
    problem: Box<Problem>,
}

impl Refused {
    pub(super) fn of(code: u8, refusal: &Refusal) -> Refused {
        Refused {
            code,
            problem: Box::new(Problem::of(refusal)),
        }
    }

    /// As other problems are told, and the exit code behind it.
    fn text(&self) -> String {
        format!(
            "{}fencepost: not started (exit code {})",
            self.problem.text(),
            self.code
        )
    }
}

/// Runs a server until it is told to stop; returns its exit code.
pub fn serve(options: ServeOptions) -> ExitCode {
    logging::start(options.log, &options.level);
    if options.log == LogFormat::Json {
        say_in_json();
    }
    panics::end_on_panic();
    #[cfg(feature = "test-switches")]
    {
        crate::process::switches::plant_in_schedules();
        crate::process::switches::play_older();
    }
    match threads::main_system().block_on(run(options)) {
        Ok(()) => exit::code(exit::STOPPED),
        Err(refused) => {
            say_failure(&refused.text());
            exit::code(refused.code)
        }
    }
}

/// What a process has before it is a node.
struct Opened {
    listening: Listening,
    store: SharedStore,
    cell: u128,
    neighbours: Option<Neighbours>,
    /// Other nodes are listened to until this is dropped.
    listening_to_nodes: Option<watch::Sender<bool>>,
}

/// Listeners, then the store: a start that cannot listen has made nothing. `None` once the part of a process
/// that is no node has ended.
async fn open_part(
    options: &ServeOptions,
    clock: &SharedClock,
    chance: &SharedChance,
    signals: &mut Signals,
) -> Result<Option<Opened>, Refused> {
    let tls = load_certificate(options, clock)?;
    let connections = |secret| Connections {
        node: options.node.name.clone(),
        secret,
        tls: tls.clone(),
        clock: clock.clone(),
        chance: chance.clone(),
    };
    let told = |refused| better_word(refused, options, clock, &**chance);
    match options.part.clone() {
        Part::Whole => {
            let listening = bind_api(options).await.map_err(told)?;
            let (store, cell) = open_store(options, clock, &**chance, None)?;
            Ok(Some(Opened {
                listening,
                store,
                cell,
                neighbours: None,
                listening_to_nodes: None,
            }))
        }
        Part::Store(listen, lease) => {
            let listener = roles::bind_mesh(tls.as_ref(), listen).await.map_err(told)?;
            let opened = open_store(options, clock, &**chance, tls.as_ref())?;
            let connections = connections(shared_secret(options, &**chance)?);
            roles::serve_store(&connections, opened, (listener, lease), signals).await?;
            Ok(None)
        }
        Part::WithoutStore(address, _, place) => {
            let connections = connections(shared_secret(options, &**chance)?);
            // Only tried: nobody is kept waiting while the store is looked for.
            drop(bind_api(options).await?);
            let listener = roles::bind_mesh(tls.as_ref(), place.listen).await?;
            let at = (address.as_str(), (listener, place.advertise), options.node.slots > 0);
            let Some(reached) = roles::reach_store(&connections, at, signals).await? else {
                return Ok(None);
            };
            Ok(Some(Opened {
                listening: bind_api(options).await?,
                store: reached.store,
                cell: reached.cell,
                neighbours: Some(reached.neighbours),
                listening_to_nodes: Some(reached.listening),
            }))
        }
        Part::Worker(address, _) => {
            let connections = connections(shared_secret(options, &**chance)?);
            let runner = TargetRunner::new(options.targets.clone(), options.handlers.clone());
            let work = (options.node.clone(), runner);
            roles::serve_worker(&connections, &address, work, signals).await?;
            Ok(None)
        }
    }
}

async fn run(mut options: ServeOptions) -> Result<(), Refused> {
    let mut signals = Signals::listen().map_err(|error| Refused::of(exit::LISTEN_REFUSED, &signals_unheard(&error)))?;
    let chance: SharedChance = Arc::new(SystemChance);
    let clock: SharedClock = Arc::new(SystemClock::with_fine_timer());
    // Before the first connection, so that what is refused is counted.
    let render = metrics::install();
    let Some(opened) = open_part(&options, &clock, &chance, &mut signals).await? else {
        return Ok(());
    };
    let listening = opened.listening;
    // Targets must know the port.
    let address = listening.address();
    options.targets = options.targets.with_own_ports([address.port()]);
    make_token_folder(&options)?;
    // It waits for as long as the store is away; a signal is heard meanwhile.
    let reached = (opened.store, opened.cell, opened.neighbours);
    let waiting = waits_for(&clock, || "waiting for the store".to_owned());
    let starting = Box::pin(start_node(&options, reached, clock.clone(), chance.clone()));
    let node = match select(starting, Box::pin(signals.next())).await {
        Either::Left((node, _)) => node?,
        Either::Right(((), starting)) => return stop_starting(starting, &clock).await,
    };
    drop(waiting);
    let (tell_stop, stop) = watch::channel(false);
    let api = make_api(&options, listening, &node, render, &*chance)?;
    let (tell_served, served) = tokio::sync::oneshot::channel();
    crate::net::rt::spawn_local(async move {
        api.serve(stop, Duration::from_millis(HTTP_STOP_MS)).await;
        let _ = tell_served.send(());
    });
    // A signal that comes while shards still open is heard too.
    let manager = Manager::of_environment();
    if let Some(manager) = &manager {
        let gateway = node.gateway.clone();
        manager.feed(clock.clone(), move || gateway.shards_answer());
        let gateway = node.gateway.clone();
        manager.follow(clock.clone(), move || gateway.state_in_words());
    }
    let becoming = Box::pin(become_ready(&options, &node, address, manager.as_ref()));
    let is_early = matches!(select(becoming, Box::pin(signals.next())).await, Either::Right(_));
    if !is_early {
        signals.next().await;
    }
    crate::net::rt::spawn_local(signals.end_on_next());
    // Before the line of the log: whoever reads that finds `/readyz` at 503.
    node.gateway.set_draining();
    tracing::info!("draining");
    if let Some(manager) = &manager {
        manager.stopping();
    }
    say_draining(options.node.drain);
    node.drain().await;
    let _ = tell_stop.send(true);
    let _ = served.await;
    drop(opened.listening_to_nodes);
    tracing::info!("stopped");
    Ok(())
}

/// Where the store that is there cannot be opened either, that is told: a second process on a folder wants the
/// port of the first one, too.
fn better_word(refused: Refused, options: &ServeOptions, clock: &SharedClock, chance: &dyn Chance) -> Refused {
    let has_store = options
        .folder
        .as_deref()
        .is_some_and(|folder| !matches!(glance(folder), Ok(None)));
    match has_store.then(|| open_store(options, clock, chance, None)) {
        Some(Err(of_store)) => of_store,
        Some(Ok(_)) | None => refused,
    }
}

async fn bind_api(options: &ServeOptions) -> Result<Listening, Refused> {
    let bound = Listening::bind(options.listen).await;
    bound.map_err(|refusal| Refused::of(exit::LISTEN_REFUSED, &refusal))
}

/// The certificate of this process, where it talks to others and has one.
fn load_certificate(options: &ServeOptions, clock: &SharedClock) -> Result<Option<Arc<MeshTls>>, Refused> {
    let roles = match options.part {
        Part::Whole => return Ok(None),
        Part::Store(..) => Roles::STORE,
        Part::WithoutStore(..) if options.node.slots == 0 => roles::WITHOUT_WORK,
        Part::WithoutStore(..) => roles::WITHOUT_STORE,
        Part::Worker(..) => Roles::WORKER,
    };
    certificate::load(options.mesh_tls.as_ref(), (&options.node.name, roles), clock)
}

/// What the nodes share: as it was given, or in its file; nothing where certificates tell them apart.
fn shared_secret(options: &ServeOptions, chance: &dyn Chance) -> Result<MeshSecret, Refused> {
    match (&options.mesh_tls, &options.mesh_secret, &options.part) {
        (Some(_), ..) | (None, None, Part::Whole) => Ok(roles::no_secret(chance)),
        (None, Some(given), _) => Ok(given.clone()),
        (None, None, Part::WithoutStore(_, file, _) | Part::Worker(_, file)) => roles::read_secret(file),
        (None, None, Part::Store(..)) => {
            let folder = options.folder.as_deref().unwrap_or(Path::new("."));
            roles::make_secret(folder, chance)
        }
    }
}

/// Stops a node that was told to while it started: what it began is put in order where the store lets it.
async fn stop_starting(
    starting: impl Future<Output = Result<Node, Refused>> + Unpin,
    clock: &SharedClock,
) -> Result<(), Refused> {
    if let Either::Left((node, _)) = select(starting, clock.sleep(STOP_START_MAX)).await {
        node?.drain().await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// For the person at the terminal; the log may be off.
fn say_draining(most: Span) {
    let most = fencepost_core::duration::format(most);
    say(&format!(
        "fencepost: stopping: attempts that run may end within {most}, nothing new begins; a second Ctrl-C (or TERM) \
         stops at once"
    ));
}

async fn become_ready(options: &ServeOptions, node: &Node, address: SocketAddr, manager: Option<&Manager>) {
    node.started(READY_MAX).await;
    if let Some(manager) = manager {
        manager.ready();
    }
    announce(options, address);
    if options.dev {
        samples::make(&*node.gateway).await;
    }
    tracing::info!(%address, "ready");
}

fn open_store(
    options: &ServeOptions,
    clock: &SharedClock,
    chance: &dyn Chance,
    tls: Option<&Arc<MeshTls>>,
) -> Result<(SharedStore, u128), Refused> {
    let draw = || (u128::from(draw_u64(chance)) << 64) | u128::from(draw_u64(chance));
    let ticking = Arc::new(StoreTicks(clock.clone()));
    if clock.boot().is_none() {
        tracing::info!(
            "this system does not tell the time since its boot: a leap of its clock while no server runs goes unseen"
        );
    }
    let Some(folder) = &options.folder else {
        let sleeper = clock.clone();
        let store = ModelStore::new(ticking, Arc::new(move |span: Span| sleeper.sleep(span)));
        return Ok((Arc::new(store), draw()));
    };
    let fresh = NewStore {
        store: draw(),
        // The CA was made for a cell: a new store becomes that one.
        cell: tls.map_or_else(draw, |tls| tls.kit().identity().cell),
    };
    let settings = Options::new(fresh, ticking).on_broken(store_broke);
    #[cfg(feature = "test-switches")]
    let settings = Options {
        free_space: crate::process::switches::free_space(),
        ..settings
    };
    let store = FjallStore::start(folder, settings).map_err(|error| {
        let refusal = Refusal::new(
            RefusalKind::Conflict,
            error.code(),
            error.to_string(),
            error.next_step(),
        );
        Refused::of(exit::STORE_REFUSED, &refusal)
    })?;
    let cell = store.identity().cell;
    certificate::check_cell(tls, cell)?;
    Ok((Arc::new(store), cell))
}

/// A node without a store keeps its token in the folder all the same.
fn make_token_folder(options: &ServeOptions) -> Result<(), Refused> {
    use std::os::unix::fs::DirBuilderExt as _;
    let Some(folder) = &options.folder else { return Ok(()) };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        let why = format!("the folder {} cannot be made: {}", folder.display(), plain(&error));
        let hint = "check the path, its owner and its mode, or name another folder";
        Refused::of(
            exit::STORE_REFUSED,
            &Refusal::new(RefusalKind::Forbidden, "folder_unusable", why, hint),
        )
    })
}

fn store_broke(why: &str) {
    exit::end_now(
        exit::STORE_BROKEN,
        &format!("the store is broken: {why}; nothing more is acknowledged"),
    )
}

/// What a node cannot go on after.
pub(super) fn node_ends(why: &Ending) {
    match why {
        Ending::StoreBroke(why) => store_broke(why),
        Ending::NameTaken => exit::end_now(
            exit::STORE_BROKEN,
            "another process took this node's name while it was silent, and its place in the cell; nothing more is \
             acknowledged: give each process a --node name of its own",
        ),
    }
}

async fn start_node(
    options: &ServeOptions,
    (store, cell, neighbours): (SharedStore, u128, Option<Neighbours>),
    clock: SharedClock,
    chance: SharedChance,
) -> Result<Node, Refused> {
    let mut notes: Vec<Arc<dyn Notes>> = vec![Arc::new(LogNotes), Arc::new(MetricNotes)];
    if options.dev {
        notes.push(Arc::new(ConsoleNotes));
    }
    let parts = NodeParts {
        store,
        cell,
        clock,
        chance,
        runner: TargetRunner::new(options.targets.clone(), options.handlers.clone()),
        lanes: threads::node_lanes(options.lanes.unwrap_or_else(threads::processors)),
        notes,
        fatal: Arc::new(|why: Ending| node_ends(&why)),
    };
    let mut config = options.node.clone();
    if let Some(folder) = &options.folder {
        config.grant_key = Some(kept_grant_key(folder, &*parts.chance)?);
    }
    let started = match neighbours {
        None => run_node(config, parts).await,
        Some(neighbours) => join_node(config, parts, neighbours).await,
    };
    started.map_err(|error| Refused::of(exit::STORE_REFUSED, &error.refusal()))
}

/// The file in the folder with what grants are sealed with: a start goes on with that of the one before.
const GRANT_KEY_FILE: &str = "grant-key";

fn kept_grant_key(folder: &Path, chance: &dyn Chance) -> Result<GrantKey, Refused> {
    let drawn = [draw_holder(chance).0, draw_holder(chance).0];
    let kept = read_or_make(&Kept::GRANT_KEY, &folder.join(GRANT_KEY_FILE), drawn);
    let text = kept.map_err(|refusal| Refused::of(exit::STORE_REFUSED, &refusal))?;
    Ok(GrantKey::of(&text))
}

fn make_api(
    options: &ServeOptions,
    listening: Listening,
    node: &Node,
    render: crate::api::server::RenderMetrics,
    chance: &dyn Chance,
) -> Result<ApiServer, Refused> {
    let draw = || (u128::from(draw_u64(chance)) << 64) | u128::from(draw_u64(chance));
    let token = match (&options.token, &options.folder) {
        (Some(given), _) => given.clone(),
        (None, Some(folder)) => read_or_make_token(folder, [draw(), draw()])
            .map(|token| TokenDigest::of(&token))
            .map_err(|refusal| Refused::of(exit::STORE_REFUSED, &refusal))?,
        (None, None) => {
            let token = token_text([draw(), draw()]);
            say(&format!(
                "token, in memory; in the other terminal: export FENCEPOST_TOKEN={token}"
            ));
            TokenDigest::of(&token)
        }
    };
    let config = ApiConfig {
        listen: options.listen,
        host_names: Vec::new(),
        token,
        targets: options.targets.clone(),
        limits: HttpLimits::default(),
        metrics: Some(render),
    };
    let gateway: Arc<dyn Gateway> = node.gateway.clone();
    Ok(listening.into_server(config, gateway))
}

fn announce(options: &ServeOptions, address: SocketAddr) {
    say(&format!("fencepost {} on http://{address}", env!("CARGO_PKG_VERSION")));
    if let Some(folder) = &options.folder {
        let token = match &options.token {
            Some(_) => "from the environment".to_owned(),
            None => folder.join("token").display().to_string(),
        };
        match &options.part {
            Part::WithoutStore(address, ..) => say(&format!("store: at {address} · token: {token}")),
            Part::Whole | Part::Store(..) | Part::Worker(..) => {
                say(&format!("store: {} · token: {token}", folder.display()));
            }
        }
    }
}

/// The node's clocks as a store wants them.
pub struct StoreTicks(pub SharedClock);

impl fencepost_storage::clock::Clock for StoreTicks {
    fn wall(&self) -> StoreTime {
        StoreTime(self.0.wall())
    }

    fn mono(&self) -> Monotonic {
        self.0.mono()
    }

    fn boot(&self) -> Option<BootTime> {
        self.0.boot()
    }
}
