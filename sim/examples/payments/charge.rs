//! A handler that charges orders: what a worker in production runs, and what the simulation runs.
//!
//! Owns: what a charge asks of the bank. Must never: charge without the job's idempotency key. A worker that froze,
//! died or lost the answer may have charged already, and the next attempt cannot know.

use fencepost::targets::{Handler, HandlerContext, HandlerError};
use std::future::Future;

/// The payload of a job.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Order {
    /// What the buyer knows it by.
    pub order: String,
    /// How much.
    pub cents: u64,
}

/// The bank. In production a client of its API; in the simulation a service.
pub trait Bank: Clone + Send + Sync + 'static {
    /// Charges an order. Under a key that it has seen the bank gives the first receipt again.
    fn charge(&self, key: Option<String>, order: Order) -> impl Future<Output = Result<String, HandlerError>> + Send;
}

/// The handler.
pub fn charging(bank: impl Bank) -> impl Handler {
    move |context| charge(bank.clone(), context)
}

async fn charge(bank: impl Bank, context: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    let order = order(&context)?;
    let receipt = bank.charge(Some(context.idempotency_key), order).await?;
    Ok(receipt.into_bytes())
}

/// Reads the payload.
///
/// # Errors
/// It is no order; nothing happened, and trying again would not help.
pub fn order(context: &HandlerContext) -> Result<Order, HandlerError> {
    let read = serde_json::from_slice(&context.payload.bytes);
    read.map_err(|error| HandlerError::stop(format!("the payload is no order: {error}")).without_effect())
}
