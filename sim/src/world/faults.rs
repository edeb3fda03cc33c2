//! What befalls the node while faults last: crashes, power loss, freezes, clock steps, outages.
//!
//! Owns: one injector that draws one fault after another, and the healing. Each fault that was felt
//! is counted (what felt means is said in `scenarios/README.md`). Must never: act after the healing. Next: `server.rs`.

use super::World;
use super::far_worker::FarWorker;
use super::links::Way;
use super::remote::Remote;
use super::second::Second;
use super::server::{STORE_SICK, Server};
use super::weather::UNNUMBERED;
use super::work::is_at_work;
use crate::runtime::{SimNode, Stream};
use fencepost_storage::model::Crash;
use tokio::sync::mpsc::UnboundedReceiver;

/// Nodes beside the server, where the seed has them.
pub struct Beside {
    /// Those that own shards.
    pub owners: Vec<Second>,
    /// Those that only work.
    pub workers: Vec<FarWorker>,
    /// Those that work over HTTP.
    pub remotes: Vec<Remote>,
}

impl Beside {
    /// Those that the seed asks for, not started.
    pub fn new(world: &World, server: &Server) -> Beside {
        Beside {
            owners: Second::all(world, server),
            workers: FarWorker::all(world),
            remotes: Remote::all(world),
        }
    }

    /// None of them runs.
    pub fn down(&self) {
        self.owners.iter().for_each(Second::down);
        self.workers.iter().for_each(FarWorker::down);
        self.remotes.iter().for_each(Remote::down);
    }

    /// All of them run.
    pub fn up(&self) {
        self.owners.iter().for_each(Second::up);
        self.workers.iter().for_each(FarWorker::up);
        self.remotes.iter().for_each(Remote::up);
    }
}

/// Restarts the process when it has ended itself.
pub fn mind_ended(world: &World, server: &Server, mut ended: UnboundedReceiver<u64>) {
    let mut stream = Stream::new(world.options.seed, "ended");
    let (sim, server) = (world.sim.clone(), server.clone());
    world.sim.spawn(async move {
        while let Some(life) = ended.recv().await {
            if life == STORE_SICK {
                server.store_down(power_loss(&mut stream, &server));
                sim.sleep(stream.between(100_000, 3_000_000)).await;
                server.store_up();
                continue;
            }
            if life != server.life() {
                continue;
            }
            server.down(power_loss(&mut stream, &server));
            sim.sleep(stream.between(100_000, 3_000_000)).await;
            if server.life() == life + 1 {
                server.up();
            }
        }
    });
}

pub(super) fn power_loss(stream: &mut Stream, server: &Server) -> Crash {
    let unsynced = server.store.model.unsynced() as u64;
    let kept = usize::try_from(stream.between(0, unsynced)).unwrap_or(0);
    Crash::Power { kept }
}

/// Injects faults until the active time is over.
pub async fn inject(world: &World, server: &Server, beside: &Beside) {
    let mut stream = Stream::new(world.options.seed, "faults");
    let kinds = kinds(world);
    let mut number = 0;
    while world.sim.now() < world.options.active.0 {
        world.sim.sleep(stream.between(100_000, 7_000_000)).await;
        let Some(kind) = stream.pick(&kinds).copied() else {
            continue;
        };
        number += 1;
        let text = format!("{number} {kind}");
        if let Some(lasts) = world.options.without.fault(number) {
            // Time passes as if it had been there: what comes after it stays where it was.
            world.sim.record("world", "fault left out", &text);
            world.sim.sleep(lasts).await;
            continue;
        }
        world.sim.record("world", "fault begins", &text);
        // A stream of its own: leaving one fault out does not shift the draws of the others.
        let mut own = Stream::new(world.options.seed, &format!("fault {number}"));
        if inject_kind(kind, world, (server, beside), &mut own).await {
            world.feel(kind);
        }
        world.sim.record("world", "fault ends", &text);
    }
}

/// Whether it was felt; what single calls feel is counted by them.
async fn inject_kind(kind: &str, world: &World, (server, beside): (&Server, &Beside), stream: &mut Stream) -> bool {
    match (kind, beside.owners.first(), beside.workers.first()) {
        ("second-crash", Some(second), _) => {
            let is_felt = second.is_up() && is_at_work(world, server, &second.node);
            second.down();
            world.sim.sleep(stream.between(10_000, 12_000_000)).await;
            second.up();
            is_felt
        }
        ("second-cut" | "second-pause", Some(second), _) => part(kind, world, second, stream).await,
        ("worker-crash", _, Some(worker)) => {
            let is_felt = worker.is_up() && is_at_work(world, server, &worker.node);
            worker.down();
            world.sim.sleep(stream.between(10_000, 12_000_000)).await;
            worker.up();
            is_felt
        }
        ("worker-cut", _, Some(worker)) => {
            let leases = stream.between(1, 20);
            cut(world, &worker.node, world.options.lease.0 * leases / 10).await
        }
        _ => inject_one(kind, world, server, stream).await,
    }
}

fn kinds(world: &World) -> Vec<&'static str> {
    let faults = world.options.faults;
    let all = [
        ("crash", faults.crash),
        ("power", faults.power),
        ("pause", faults.pause),
        ("clock", faults.clock),
        ("away", faults.away),
        ("full", faults.full),
        ("net", faults.net),
        ("second-crash", world.options.others > 0 && faults.crash),
        ("second-cut", world.options.others > 0 && faults.net),
        ("second-pause", world.options.others > 0 && faults.pause),
        ("worker-crash", world.options.far_workers > 0 && faults.crash),
        ("worker-cut", world.options.far_workers > 0 && faults.net),
        ("store-crash", world.options.apart && (faults.crash || faults.power)),
    ];
    all.into_iter()
        .filter(|(_, is_on)| *is_on)
        .map(|(kind, _)| kind)
        .collect()
}

/// Cuts a machine off; whether something was sent meanwhile.
async fn cut(world: &World, node: &SimNode, lasts: u64) -> bool {
    let way = Way {
        at: node.ip(),
        peers: Vec::new(),
    };
    let number = world.links.cut(way, (true, true));
    node.cut();
    world.sim.sleep(lasts).await;
    node.mend();
    world.links.mend(number) > 0
}

async fn inject_one(kind: &str, world: &World, server: &Server, stream: &mut Stream) -> bool {
    match kind {
        "crash" | "power" => {
            let is_felt = server.is_up() && is_at_work(world, server, &server.node);
            let how = match kind {
                "crash" => Crash::Process,
                _ => power_loss(stream, server),
            };
            server.down(how);
            let long = stream.percent(20);
            let most = if long { 25_000_000 } else { 3_000_000 };
            world.sim.sleep(stream.between(10_000, most)).await;
            server.up();
            if stream.percent(25) {
                // Once more while it starts.
                world.sim.sleep(stream.between(1_000, 60_000)).await;
                server.down(power_loss(stream, server));
                world.sim.sleep(stream.between(10_000, 1_000_000)).await;
                server.up();
            }
            is_felt
        }
        "store-crash" => {
            let apart = server.apart.as_ref().filter(|apart| apart.is_up());
            let is_felt = apart.is_some_and(|apart| is_at_work(world, server, &apart.node));
            server.store_down(power_loss(stream, server));
            let long = stream.percent(20);
            let most = if long { 25_000_000 } else { 3_000_000 };
            world.sim.sleep(stream.between(10_000, most)).await;
            server.store_up();
            is_felt
        }
        "pause" => freeze(world, server, stream).await,
        "clock" => set_clock(world, server, stream).await,
        "full" => {
            world.history.disturb("full", world.sim.now());
            world.sim.record("store", "full", "");
            world.weather.begin_named("store-full", "full");
            server.store.model.set_full(true);
            world.sim.sleep(stream.between(50_000, 6_000_000)).await;
            server.store.model.set_full(false);
            world.weather.end(UNNUMBERED);
            world.sim.record("store", "has room", "");
            world.sim.sleep(3_000_000).await;
            world.history.calm("full", world.sim.now());
            false
        }
        "net" => cut_off(world, server, stream).await,
        _ => {
            world.history.disturb("away", world.sim.now());
            world.sim.record("store", "away", "");
            world.weather.begin_named("store-away", "away");
            server.store.model.set_away(true);
            world.sim.sleep(stream.between(50_000, 8_000_000)).await;
            server.store.model.set_away(false);
            world.weather.end(UNNUMBERED);
            world.sim.record("store", "back", "");
            // Shards open again within their own longest pause.
            world.sim.sleep(3_000_000).await;
            world.history.calm("away", world.sim.now());
            false
        }
    }
}

/// Sets the wall clock ahead or behind; corrects it after a while, or leaves the lie.
async fn set_clock(world: &World, server: &Server, stream: &mut Stream) -> bool {
    let (lie, before) = (world.options.lie, lies(server));
    let offset = stream.between(0, 2 * lie).cast_signed() - lie.cast_signed();
    world.history.disturb("clock", world.sim.now());
    set_clocks(server, offset);
    world.sim.sleep(stream.between(500_000, 15_000_000)).await;
    let is_felt = lies(server) > before;
    if stream.percent(60) {
        world.feel("seen:clock-corrected");
        set_clocks(server, 0);
    }
    if offset > 60_000_000 {
        world.feel("seen:clock-in-doubt");
    }
    is_felt
}

/// How often the clocks that are set have told a wrong time.
fn lies(server: &Server) -> u64 {
    let apart = server.apart.as_ref().map_or(0, |apart| apart.node.clock().lies());
    apart + server.node.clock().lies()
}

/// The clock that counts is the store's; that of a node without a store lies the other way.
fn set_clocks(server: &Server, ahead: i64) {
    match &server.apart {
        None => server.node.set_clock(ahead),
        Some(apart) => {
            apart.node.set_clock(ahead);
            server.node.set_clock(-ahead);
        }
    }
}

/// Nothing of the node's own work needs the network but calls at the target, and the store where that is
/// on a machine of its own.
async fn cut_off(world: &World, server: &Server, stream: &mut Stream) -> bool {
    let target = world.sim.node("target").filter(|_| stream.percent(50));
    let node = target.unwrap_or_else(|| server.node.clone());
    let apart = server.apart.is_some();
    let disturbed = apart.then(|| world.history.disturb("away", world.sim.now()));
    let is_felt = cut(world, &node, stream.between(20_000, 7_000_000)).await;
    if let Some(disturbed) = disturbed {
        calm_soon(world, disturbed);
    }
    is_felt
}

/// Links are made anew, shards ask again.
pub(super) fn calm_soon(world: &World, disturbed: usize) {
    let world = world.clone();
    world.clone().sim.spawn(async move {
        world.sim.sleep(9_000_000).await;
        world.history.calm_one(disturbed, world.sim.now());
    });
}

/// An owner beside the server is cut off or frozen, for less and for more than what its leases last.
async fn part(kind: &str, world: &World, second: &Second, stream: &mut Stream) -> bool {
    let disturbed = world.history.disturb("second-away", world.sim.now());
    let (life, since) = (second.life(), world.sim.wall());
    let lasts = stream.between(500_000, 30_000_000);
    let is_felt = match kind {
        "second-cut" => cut(world, &second.node, lasts).await,
        _ => {
            second.node.pause();
            world.sim.sleep(lasts).await;
            let is_felt = second.node.clock().is_overdue(since);
            if second.life() == life {
                second.node.resume();
            }
            is_felt
        }
    };
    calm_soon(world, disturbed);
    is_felt
}

async fn freeze(world: &World, server: &Server, stream: &mut Stream) -> bool {
    let (life, since) = (server.life(), world.sim.wall());
    world.history.disturb("pause", world.sim.now());
    server.node.pause();
    let leases = stream.between(1, 30);
    world.sim.sleep(world.options.lease.0 * leases / 10).await;
    let is_felt = server.node.clock().is_overdue(since);
    if server.life() == life {
        server.node.resume();
    }
    world.sim.sleep(500_000).await;
    world.history.calm("pause", world.sim.now());
    is_felt
}

/// Ends every fault; the node runs.
pub fn heal(world: &World, server: &Server, beside: &Beside) {
    world.healed.store(true, std::sync::atomic::Ordering::SeqCst);
    world.weather.clear();
    world.links.clear();
    server.store.model.set_away(false);
    server.store.model.set_full(false);
    if let Some(back) = world.options.set_back {
        world.history.disturb("clock", world.sim.now());
        set_clocks(server, -back.cast_signed());
    } else if world.options.ends_true() {
        set_clocks(server, 0);
    }
    server.store_up();
    server.up();
    beside.up();
    world.sim.record("world", "healed", "");
}
