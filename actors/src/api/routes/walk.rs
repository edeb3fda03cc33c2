//! A list: pages of the gateway, judged row by row, until there is enough or enough was looked at.
//!
//! Owns: the bound of work and memory of one request. Must never: skip a row, or promise a total (PROTOCOL
//! F35). Next: `gateway.rs`.

use crate::api::fields::invalid;
use crate::gateway::{Answer, Page};
use fencepost_core::limits::LIST_SCAN_ROWS_MAX;
use fencepost_core::refusal::Refusal;
use fencepost_core::row::RowKey;
use fencepost_storage::keys::key_bytes;

/// Items, and the key to go on after; `None` at the end of the list.
pub type Walked<A, K> = (Vec<A>, Option<K>);

/// Shows at most `limit` of what lies after a key: `show` leaves out what a filter does not take.
///
/// # Errors
/// A page cannot be read.
pub async fn walk<T, K, A>(
    limit: usize,
    mut after: Option<K>,
    page: impl Fn(Option<K>) -> Answer<Page<T, K>>,
    show: impl Fn(&T) -> Option<A>,
    key: impl Fn(&T) -> K,
) -> Result<Walked<A, K>, Refusal>
where
    K: Clone + PartialEq,
{
    let mut items = Vec::new();
    let mut read = 0;
    loop {
        let page = page(after).await?;
        read += page.items.len().max(1);
        for (at, item) in page.items.iter().enumerate() {
            items.extend(show(item));
            if items.len() == limit {
                let is_last = at + 1 == page.items.len() && page.next.is_none();
                return Ok((items, (!is_last).then(|| key(item))));
            }
        }
        match page.next {
            None => return Ok((items, None)),
            Some(next) if read >= LIST_SCAN_ROWS_MAX => return Ok((items, Some(next))),
            Some(next) => after = Some(next),
        }
    }
}

/// Where a list goes on after this row: its stored key and a byte.
pub fn after_row(key: &RowKey) -> Vec<u8> {
    let mut from = key_bytes(key);
    from.push(0);
    from
}

/// A stored key as a cursor.
pub fn key_cursor(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The stored key in a cursor.
///
/// # Errors
/// It is none.
pub fn read_key_cursor(text: &str) -> Result<Vec<u8>, Refusal> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0);
    let pairs = digits.ok_or_else(no_cursor)?;
    Ok(pairs
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect())
}

/// What is not a `next` of the list is answered with.
pub fn no_cursor() -> Refusal {
    let detail = "This is no cursor of this list.";
    let hint = "Pass next of the page before, or leave it out.";
    invalid("cursor_invalid", detail, hint).at("cursor")
}
