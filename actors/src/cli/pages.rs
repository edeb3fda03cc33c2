//! Lists, page after page, up to a limit.
//!
//! Owns: following `next`. Must never: change an item, or hold more than twice the limit. Next: `output.rs`.

use super::client::{Call, Client, with_query};
use super::failure::Failure;
use crate::api::text::parse_instant;
use fencepost_core::limits::PAGE_ITEMS_MAX;
use fencepost_core::time::StoreTime;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::cmp::Reverse;

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

/// Collects at most `limit` items.
///
/// # Errors
/// A page cannot be had.
pub async fn collect(
    client: &Client,
    path: &str,
    params: &[(&str, Option<String>)],
    limit: usize,
) -> Result<Vec<Box<RawValue>>, Failure> {
    let mut items = Vec::new();
    let mut cursor = None;
    loop {
        let mut all = params.to_vec();
        let want = (limit - items.len()).min(PAGE_ITEMS_MAX);
        all.extend([("limit", Some(want.to_string())), ("cursor", cursor.take())]);
        let reply = client.call(Call::get(&with_query(path, &all))).await?;
        let page: Page = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() || items.len() >= limit {
            items.truncate(limit);
            return Ok(items);
        }
    }
}

#[derive(Deserialize)]
struct Created {
    created_at: String,
}

/// Collects the newest `limit` items of a list that is in another order: it is read to its end.
///
/// # Errors
/// A page cannot be had, or an item does not say when it was made.
pub async fn collect_newest(
    client: &Client,
    path: &str,
    params: &[(&str, Option<String>)],
    limit: usize,
) -> Result<Vec<Box<RawValue>>, Failure> {
    let mut kept = Vec::new();
    let mut cursor = None;
    loop {
        let mut all = params.to_vec();
        all.extend([("limit", Some(PAGE_ITEMS_MAX.to_string())), ("cursor", cursor.take())]);
        let reply = client.call(Call::get(&with_query(path, &all))).await?;
        let page: Page = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
        for item in page.items {
            kept.push((created_at(&item)?, item));
        }
        cursor = page.next;
        if cursor.is_none() || kept.len() >= 2 * limit.max(PAGE_ITEMS_MAX) {
            kept.sort_by_key(|(at, _)| Reverse(*at));
            kept.truncate(limit);
        }
        if cursor.is_none() {
            return Ok(kept.into_iter().map(|(_, item)| item).collect());
        }
    }
}

fn created_at(item: &RawValue) -> Result<StoreTime, Failure> {
    let created: Created = serde_json::from_str(item.get()).map_err(|error| Failure::unreadable(&error))?;
    parse_instant(&created.created_at).map_err(Failure::of)
}
