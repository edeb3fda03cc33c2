//! Health, metrics and facts of the node.
//!
//! Owns: what probes and `doctor` see. Must never: do more than ask. Next: `gateway.rs`.

use super::walk::{after_row, key_cursor, read_key_cursor, walk};
use crate::api::body::{NoBody, answer, ok, with_header};
use crate::api::handle::Shared;
use crate::api::query::Params;
use crate::api::text;
use crate::gateway::Health;
use crate::problem::Problem;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use fencepost_core::level;
use fencepost_core::limits::LIST_PAGE_ROWS;
use fencepost_core::row::{QuarantineRow, RowKey};
use fencepost_core::scheduler_shard::marks::schedule_in;
use fencepost_storage::remote::REMOTE_ENGINE;
use hyper::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Whether the node is well.
#[derive(Debug, Serialize, ToSchema)]
pub struct HealthAnswer {
    /// `ok` or `failed`.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// It is shutting down.
    pub draining: bool,
    /// Why it is not ready.
    pub reasons: Vec<String>,
}

/// Facts of the node, for `doctor`.
#[derive(Debug, Serialize, ToSchema)]
pub struct FactsAnswer {
    /// Version of the program.
    #[schema(value_type = String)]
    pub version: &'static str,
    /// The cell's identity, 32 hexadecimal digits.
    pub cell: String,
    /// Raised by restore and promotion.
    pub generation: u32,
    /// Nothing beyond this level is written in the cell; lower than `level_known` until an upgrade is finished.
    pub level: u16,
    /// The level that this version knows.
    pub level_known: u16,
    /// Shards of the cell.
    pub shards: u16,
    /// The store's engine.
    pub engine: String,
    /// Newest sequence that is durable; missing where the store is on another node, which alone knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_water: Option<u64>,
    /// Chain hash at that sequence; missing likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Store time as last stated.
    pub store_time: String,
    /// The store's clock is in doubt: nothing fires until that is settled.
    pub clock_doubt: bool,
    /// How far this node's clock is from the store's; missing before it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<OffsetAnswer>,
    /// Beyond this the node takes and gives no work, where its store is on another node.
    pub clock_offset_max_ms: u64,
    /// It does so now.
    pub clock_holds_back: bool,
    /// Version of the zone data.
    pub zone_version: String,
    /// Schedules that are alive.
    pub schedules: u64,
    /// Rows in quarantine.
    pub quarantined: u64,
    /// The node takes requests.
    pub ready: bool,
    /// Why it is not ready, for people.
    pub reasons: Vec<String>,
    /// It is shutting down.
    pub draining: bool,
    /// Command targets are allowed.
    pub commands: bool,
}

/// Where the offset of a node's clock lies: its wall clock less the store's time.
#[derive(Debug, Serialize, ToSchema)]
pub struct OffsetAnswer {
    /// At least, in milliseconds, rounded down.
    pub low_ms: i64,
    /// At most, in milliseconds, rounded up.
    pub high_ms: i64,
}

/// The store's clock, once it was confirmed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClockAnswer {
    /// It was in doubt before.
    pub was_in_doubt: bool,
    /// It is in doubt now: it leapt again.
    pub clock_doubt: bool,
    /// Store time.
    pub store_time: String,
}

/// A row that could not be read or evaluated.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuarantineAnswer {
    /// Shard.
    pub shard: u16,
    /// Raw key of the row, hexadecimal.
    pub key: String,
    /// The schedule that is in quarantine, if it is a whole one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Why.
    pub reason: String,
    /// When.
    pub at: String,
    /// Owners that ended while they tried it.
    pub deaths: u32,
}

/// Rows in quarantine.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuarantineList {
    /// By shard and key.
    pub items: Vec<QuarantineAnswer>,
    /// Pass it as `cursor` to go on; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

fn health(health: Health, good: bool) -> Response {
    let (status, word) = match good {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
    };
    let body = HealthAnswer {
        status: word,
        draining: health.draining,
        reasons: health.reasons,
    };
    answer(status, &body)
}

/// Whether the node lives; needs no token.
#[utoipa::path(get, path = "/livez", tag = "node", security(()),
    responses((status = 200, description = "It lives.", body = HealthAnswer), (status = 503, description = "It does not.", body = HealthAnswer)))]
pub async fn livez(State(shared): State<Arc<Shared>>) -> Response {
    let state = shared.gateway.health();
    let good = state.live;
    health(state, good)
}

/// Whether the node takes requests; needs no token.
#[utoipa::path(get, path = "/readyz", tag = "node", security(()),
    responses((status = 200, description = "It does.", body = HealthAnswer), (status = 503, description = "It does not.", body = HealthAnswer)))]
pub async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let state = shared.gateway.health();
    let good = state.ready && !state.draining;
    health(state, good)
}

/// Metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "node",
    responses((status = 200, description = "The page.", body = String, content_type = "text/plain")))]
pub async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let page = shared.metrics.as_ref().map(|render| render()).unwrap_or_default();
    with_header(
        page.into_response(),
        "content-type",
        "text/plain; version=0.0.4; charset=utf-8",
    )
}

/// Facts about the node and its store.
#[utoipa::path(get, path = "/v1/facts", tag = "node",
    responses((status = 200, description = "The facts.", body = FactsAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn facts(State(shared): State<Arc<Shared>>, params: Params) -> Result<Response, Problem> {
    params.end()?;
    let facts = shared.gateway.facts().await?;
    let health = shared.gateway.health();
    let is_here = !facts.engine.starts_with(REMOTE_ENGINE);
    Ok(ok(&FactsAnswer {
        version: env!("CARGO_PKG_VERSION"),
        cell: format!("{:032x}", facts.cell),
        generation: facts.generation.0,
        level: facts.level.0,
        level_known: level::known().0,
        shards: facts.shards,
        engine: facts.engine,
        high_water: is_here.then_some(facts.high_water),
        chain: is_here.then_some(facts.chain),
        store_time: text::instant(facts.store_time),
        clock_doubt: facts.doubt,
        clock_offset: facts.clock.offset.map(|offset| OffsetAnswer {
            low_ms: offset.low.div_euclid(1_000),
            high_ms: offset.high.saturating_add(999).div_euclid(1_000),
        }),
        clock_offset_max_ms: facts.clock.bound.as_millis(),
        clock_holds_back: facts.clock.holds_back,
        zone_version: facts.zone_version,
        schedules: facts.schedules,
        quarantined: facts.quarantined,
        ready: health.ready,
        reasons: health.reasons,
        draining: health.draining,
        commands: shared.targets.commands,
    }))
}

/// Says that the machine's clock is right although it leapt: what is due fires again. Changes nothing where
/// the clock is not in doubt.
#[utoipa::path(post, path = "/v1/clock/confirm", tag = "node",
    responses((status = 200, description = "The clock as it is now.", body = ClockAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn confirm_clock(
    State(shared): State<Arc<Shared>>,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    let was_in_doubt = shared.gateway.confirm_clock().await?;
    let facts = shared.gateway.facts().await?;
    if was_in_doubt {
        tracing::warn!(
            store_time = facts.store_time.0,
            "the clock was confirmed by an operator"
        );
    }
    Ok(ok(&ClockAnswer {
        was_in_doubt,
        clock_doubt: facts.doubt,
        store_time: text::instant(facts.store_time),
    }))
}

/// Rows that could not be read or evaluated.
#[utoipa::path(get, path = "/v1/quarantine", tag = "node", params(("cursor" = Option<String>, Query, description = "`next` of the page before."),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; 100.")),
    responses((status = 200, description = "The rows.", body = QuarantineList), (status = "default", description = "A problem.", body = Problem)))]
pub async fn quarantine(State(shared): State<Arc<Shared>>, mut params: Params) -> Result<Response, Problem> {
    let from = params
        .text("cursor")?
        .map(|cursor| read_key_cursor(&cursor))
        .transpose()?;
    let limit = params.limit()?;
    params.end()?;
    let page = |from| shared.gateway.quarantines(from, LIST_PAGE_ROWS);
    let show = |row: &QuarantineRow| {
        Some(QuarantineAnswer {
            shard: row.shard.0,
            key: key_cursor(&row.key),
            schedule: schedule_in(row).map(|(_, name)| name.to_string()),
            reason: row.reason.to_string(),
            at: text::instant(row.at),
            deaths: row.deaths,
        })
    };
    let key = |row: &QuarantineRow| after_row(&RowKey::Quarantine(row.shard, row.key.clone()));
    let (items, next) = walk(limit, from, page, show, key).await?;
    Ok(ok(&QuarantineList {
        items,
        next: next.map(|key| key_cursor(&key)),
    }))
}
