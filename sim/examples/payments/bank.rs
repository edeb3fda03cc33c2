//! The bank as the simulation knows it: receipts by key, in memory, across a network that fails.
//!
//! Owns: how a bank that honours idempotency keys behaves, and what counts as an effect. Must never: be kinder than the
//! real one.

use crate::charge::{Bank, Order};
use fencepost::targets::HandlerError;
use fencepost_sim::Service;
use std::collections::BTreeMap;

/// What the bank remembers.
#[derive(Default)]
pub struct Books {
    receipts: BTreeMap<String, String>,
    charges: u64,
}

/// The bank.
#[derive(Clone)]
pub struct SimulatedBank(Service<Books>);

impl SimulatedBank {
    /// A bank without charges.
    pub fn new() -> SimulatedBank {
        SimulatedBank(Service::new(Books::default()))
    }
}

impl Bank for SimulatedBank {
    async fn charge(&self, key: Option<String>, order: Order) -> Result<String, HandlerError> {
        let receipt = self.0.call(move |books, effects| {
            if let Some(receipt) = key.as_ref().and_then(|key| books.receipts.get(key)) {
                return receipt.clone();
            }
            effects.applied("charge");
            books.charges += 1;
            let receipt = format!("receipt {}: {} cents for {}", books.charges, order.cents, order.order);
            books.receipts.extend(key.map(|key| (key, receipt.clone())));
            receipt
        });
        Ok(receipt.await?)
    }
}
