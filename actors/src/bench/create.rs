//! Durable creation, in process: batches of 1,000, and single jobs from 64 clients.
//!
//! Owns: the two loops. Each answer means synced. Next: `beside.rs` for what it is compared
//! to, `create_http.rs` for the same over HTTP.

use crate::bench::BenchOptions;
use crate::bench::beside::beside_floor;
use crate::bench::figure::{Figure, per_second};
use crate::bench::floor::Kind;
use crate::bench::rig::Rig;
use crate::gateway::{Gateway, ShardRequest};
use crate::node::gateway::NodeGateway;
use fencepost_core::ids::ShardId;
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::limits::BATCH_JOBS_MAX;
use futures_util::future::try_join_all;
use std::collections::BTreeMap;

/// Clients that send batches.
pub const BATCH_CLIENTS: usize = 8;
/// Clients that send single jobs.
pub const SINGLE_CLIENTS: usize = 64;

/// Batches of 1,000.
pub async fn batches(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let shares = shares(options.jobs.div_ceil(BATCH_JOBS_MAX), BATCH_CLIENTS);
    let measure = create(options, shares, BATCH_JOBS_MAX);
    beside_floor(options, ("create-batch", Kind::Batches, 0.6), measure).await
}

/// One by one; a quarter of the jobs, as they take longer.
pub async fn singles(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let shares = shares(options.jobs / 4, SINGLE_CLIENTS);
    let measure = create(options, shares, 1);
    beside_floor(options, ("create-single", Kind::Singles, 0.6), measure).await
}

/// How many of `count` requests each client sends; no client without one.
pub fn shares(count: usize, clients: usize) -> Vec<usize> {
    let clients = clients.min(count).max(1);
    (0..clients).map(|client| (count.max(1) + client) / clients).collect()
}

async fn create(options: &BenchOptions, shares: Vec<usize>, at_once: usize) -> Result<f64, String> {
    let rig = Rig::start(options).await?;
    let began = rig.mono();
    let client = async |rounds: usize| {
        for _ in 0..rounds {
            create_batch(&rig, at_once, None).await?;
        }
        Ok::<(), String>(())
    };
    try_join_all(shares.iter().map(|rounds| client(*rounds))).await?;
    let took = rig.mono().since(began).to_std();
    rig.stop().await;
    Ok(per_second(shares.iter().sum::<usize>() * at_once, took))
}

/// Makes `count` jobs as the API does: a request to each shard that owns some of them.
pub async fn create_batch(
    rig: &Rig,
    count: usize,
    due_at: Option<fencepost_core::time::StoreTime>,
) -> Result<(), String> {
    let items = (0..count).map(|_| rig.item(due_at)).collect();
    create_items(&rig.node.gateway, items).await
}

/// The same with these jobs, at this node.
pub async fn create_items(gateway: &NodeGateway, items: Vec<CreateItem>) -> Result<(), String> {
    let map = gateway.shard_map();
    let mut by_shard: BTreeMap<ShardId, Vec<CreateItem>> = BTreeMap::new();
    for item in items {
        by_shard.entry(map.shard_of(item.id.slot())).or_default().push(item);
    }
    let calls = by_shard
        .into_iter()
        .map(|(shard, items)| gateway.call(shard, ShardRequest::CreateJobs(items)));
    try_join_all(calls)
        .await
        .map(|_| ())
        .map_err(|refusal| refusal.to_string())
}
