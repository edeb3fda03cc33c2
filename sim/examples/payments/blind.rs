//! The classic bug: the handler charges, then answers, and never says for which job. The simulation must find it.
//!
//! Owns: this one mistake. Must never: be repaired; `charge.rs` is how it is done. Next: `noted.rs`, its mirror image.

use crate::charge::{Bank, order};
use fencepost::targets::{Handler, HandlerContext, HandlerError};

/// The handler.
pub fn charging_blindly(bank: impl Bank) -> impl Handler {
    move |context| charge(bank.clone(), context)
}

/// Right as long as every attempt is the only one.
async fn charge(bank: impl Bank, context: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    let receipt = bank.charge(None, order(&context)?).await?;
    Ok(receipt.into_bytes())
}
