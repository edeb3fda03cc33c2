//! Lists, page after page, up to a limit.
//!
//! Owns: following `next`. Must never: change an item. Next: `output.rs`.

use super::client::{Call, Client, with_query};
use super::failure::Failure;
use fencepost_core::limits::PAGE_ITEMS_MAX;
use serde::Deserialize;
use serde_json::value::RawValue;

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
