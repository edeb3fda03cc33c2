//! The level of the cell, and raising it at the end of an upgrade.
//!
//! Owns: how both are shown. Must never: judge (the node does). Next: `../../node/level.rs`,
//! docs/guides/upgrade.md.

use crate::api::body::{NoBody, ok};
use crate::api::handle::Shared;
use crate::api::query::Params;
use crate::gateway::LevelFacts;
use crate::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Which versions the nodes of a cell have.
#[derive(Debug, Serialize, ToSchema)]
pub struct UpgradeAnswer {
    /// Nothing beyond this level is written; a version that knows less is refused.
    pub level: u16,
    /// The level that the answering node knows.
    pub level_known: u16,
    /// The level that the store's node knows.
    pub level_of_store: u16,
    /// Every node on the board.
    pub nodes: Vec<NodeLevelAnswer>,
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeLevelAnswer {
    /// Its name.
    pub node: String,
    /// The level that it knows.
    pub level_known: u16,
}

fn shown(facts: LevelFacts) -> Response {
    let nodes = facts.nodes.into_iter().map(|(node, level)| NodeLevelAnswer {
        node: node.to_string(),
        level_known: level.0,
    });
    ok(&UpgradeAnswer {
        level: facts.cell.0,
        level_known: facts.known.0,
        level_of_store: facts.of_store.0,
        nodes: nodes.collect(),
    })
}

/// Which versions the nodes of the cell have, and the level of the cell.
#[utoipa::path(get, path = "/v1/upgrade", tag = "node",
    responses((status = 200, description = "The levels.", body = UpgradeAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn upgrade(State(shared): State<Arc<Shared>>, params: Params) -> Result<Response, Problem> {
    params.end()?;
    Ok(shown(shared.gateway.level().await?))
}

/// Ends an upgrade: raises the cell to the level of the answering node. From then on no older version works with it.
/// Refused while a node of an older version is there; changes nothing where the cell has that level.
#[utoipa::path(post, path = "/v1/upgrade/finish", tag = "node",
    responses((status = 200, description = "The levels.", body = UpgradeAnswer), (status = "default", description = "A problem.", body = Problem)))]
pub async fn finish_upgrade(
    State(shared): State<Arc<Shared>>,
    params: Params,
    NoBody: NoBody,
) -> Result<Response, Problem> {
    params.end()?;
    Ok(shown(shared.gateway.raise_level().await?))
}
