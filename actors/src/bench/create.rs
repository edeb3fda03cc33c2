//! Durable creation, in process: batches of 1,000, and single jobs from 64 clients.
//!
//! Owns: the two loops. Each answer means synced. Next: `floor.rs` for what it is compared to.

use crate::bench::rig::Rig;
use crate::bench::{BenchOptions, Figure, rate};
use crate::gateway::{Gateway, ShardRequest};
use fencepost_core::ids::ShardId;
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::limits::BATCH_JOBS_MAX;
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeMap;

const BATCH_CLIENTS: usize = 8;
const SINGLE_CLIENTS: usize = 64;

pub async fn batches(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let rig = Rig::start(options).await?;
    let rounds = options.jobs.div_ceil(BATCH_CLIENTS * BATCH_JOBS_MAX);
    let began = rig.mono();
    let client = || async {
        for _ in 0..rounds {
            create_batch(&rig, BATCH_JOBS_MAX, None).await?;
        }
        Ok::<(), String>(())
    };
    try_join_all((0..BATCH_CLIENTS).map(|_| client())).await?;
    let took = rig.mono().since(began).to_std();
    rig.stop().await;
    Ok(vec![rate(
        "create-batch",
        rounds * BATCH_CLIENTS * BATCH_JOBS_MAX,
        took,
    )])
}

pub async fn singles(options: &BenchOptions) -> Result<Vec<Figure>, String> {
    let rig = Rig::start(options).await?;
    let rounds = (options.jobs / 4).div_ceil(SINGLE_CLIENTS);
    let began = rig.mono();
    let client = || async {
        for _ in 0..rounds {
            create_batch(&rig, 1, None).await?;
        }
        Ok::<(), String>(())
    };
    let done: Vec<Result<(), String>> = join_all((0..SINGLE_CLIENTS).map(|_| client())).await;
    done.into_iter().collect::<Result<(), String>>()?;
    let took = rig.mono().since(began).to_std();
    rig.stop().await;
    Ok(vec![rate("create-single", rounds * SINGLE_CLIENTS, took)])
}

/// Makes `count` jobs as the API does: a request to each shard that owns some of them.
pub async fn create_batch(
    rig: &Rig,
    count: usize,
    due_at: Option<fencepost_core::time::StoreTime>,
) -> Result<(), String> {
    let map = rig.node.gateway.shard_map();
    let mut by_shard: BTreeMap<ShardId, Vec<CreateItem>> = BTreeMap::new();
    for _ in 0..count {
        let item = rig.item(due_at);
        by_shard.entry(map.shard_of(item.id.slot())).or_default().push(item);
    }
    let calls = by_shard
        .into_iter()
        .map(|(shard, items)| rig.node.gateway.call(shard, ShardRequest::CreateJobs(items)));
    try_join_all(calls)
        .await
        .map(|_| ())
        .map_err(|refusal| refusal.to_string())
}
