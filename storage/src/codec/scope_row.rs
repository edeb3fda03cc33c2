//! The store's own record of a scope, fixed width but for its key.
//!
//! Owns: its first format. Written with each commit by the store alone. Must never: be decoded as a
//! row of a machine. Next: `rules.rs`.

use super::{ROW_VERSION, RowError};
use crate::keys::parse_scope_key;
use crate::wire::{In, Out};
use fencepost_core::ids::{BatchNo, Epoch, Holder};
use fencepost_core::limits::ROW_BYTES_MAX;
use fencepost_core::row::ScopeRow;

/// The value of a scope row.
pub fn encode_scope(row: &ScopeRow) -> Vec<u8> {
    let mut value = Vec::with_capacity(72);
    value.push(ROW_VERSION);
    let mut out = Out::new(&mut value);
    out.put(row.epoch.0).put(row.holder.0).put(row.batch.0);
    out.put(row.digest).time(row.at);
    value
}

/// The scope row under `key`.
pub fn decode_scope(key: &[u8], value: &[u8]) -> Result<ScopeRow, RowError> {
    let scope = parse_scope_key(key).ok_or(RowError::Illegal("scope key"))?;
    let mut input = In::new(value, ROW_BYTES_MAX)?;
    match input.fixed::<1>()?[0] {
        ROW_VERSION => {}
        newer => return Err(RowError::Newer(newer)),
    }
    let row = ScopeRow {
        scope,
        epoch: Epoch(input.take()?),
        holder: Holder(input.take()?),
        batch: BatchNo(input.take()?),
        digest: input.fixed()?,
        at: input.time()?,
    };
    input.end()?;
    Ok(row)
}
