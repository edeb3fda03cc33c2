//! A list: pages of the gateway, judged row by row, until there is enough or enough was looked at.
//!
//! Owns: the bound of work and memory of one request. Must never: skip a row, or promise a total (PROTOCOL
//! F35). Next: `gateway.rs`.

use crate::api::fields::invalid;
use crate::gateway::{Answer, Page};
use fencepost_core::limits::LIST_SCAN_ROWS_MAX;
use fencepost_core::refusal::Refusal;

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

/// What is not a `next` of the list is answered with.
pub fn no_cursor() -> Refusal {
    let detail = "This is no cursor of this list.";
    let hint = "Pass next of the page before, or leave it out.";
    invalid("cursor_invalid", detail, hint).at("cursor")
}
