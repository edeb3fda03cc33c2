//! The mirror image of the classic bug: the handler notes that a job is done before it charges. The simulation must
//! find that an order is never charged.
//!
//! Owns: this one mistake. Must never: be repaired; key and effect belong into one step of one system.

use crate::charge::{Bank, order};
use fencepost::targets::{Handler, HandlerContext, HandlerError};
use std::future::Future;

/// Where done jobs are noted.
pub trait Notes: Clone + Send + Sync + 'static {
    /// Notes a key; whether it was not there before.
    fn note(&self, key: String) -> impl Future<Output = Result<bool, HandlerError>> + Send;
}

/// The handler.
pub fn charging_once_noted(bank: impl Bank, notes: impl Notes) -> impl Handler {
    move |context| charge(bank.clone(), notes.clone(), context)
}

/// Right as long as nothing happens between the two calls.
async fn charge(bank: impl Bank, notes: impl Notes, context: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    let order = order(&context)?;
    if !notes.note(context.idempotency_key).await? {
        return Ok(b"charged before".to_vec());
    }
    let receipt = bank.charge(None, order).await?;
    Ok(receipt.into_bytes())
}
