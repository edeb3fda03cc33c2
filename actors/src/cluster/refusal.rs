//! A refusal of another node as bytes.
//!
//! Owns: that a code is a known word again on this side. Must never: grow with what others send.
//! Next: `request.rs`.

use fencepost_core::limits::{REMOTE_CODES_MAX, REMOTE_TEXT_BYTES_MAX};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_storage::wire::{In, Out, WireError};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Codes that came from other nodes; they live as long as the process, and there are few.
static CODES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

pub(super) fn put(out: &mut Out<'_>, refusal: &Refusal) {
    out.put(refusal.kind as u64).text(refusal.code);
    out.option(refusal.field.as_deref(), |out, field| {
        out.text(short(field));
    });
    out.text(short(&refusal.detail)).text(short(&refusal.hint));
}

/// As much of a text as the other side takes.
fn short(text: &str) -> &str {
    let end = text.floor_char_boundary(REMOTE_TEXT_BYTES_MAX);
    text.get(..end).unwrap_or(text)
}

pub(super) fn take(input: &mut In<'_>) -> Result<Refusal, WireError> {
    let kind = usize::try_from(input.take::<u64>()?)
        .ok()
        .and_then(|kind| RefusalKind::ALL.get(kind).copied());
    Ok(Refusal {
        kind: kind.ok_or(WireError::Illegal("kind of refusal"))?,
        code: known(input.str(64, "code")?),
        field: input.option(|input| input.string(REMOTE_TEXT_BYTES_MAX, "field"))?,
        detail: input.string(REMOTE_TEXT_BYTES_MAX, "detail")?,
        hint: input.string(REMOTE_TEXT_BYTES_MAX, "hint")?,
    })
}

fn known(code: &str) -> &'static str {
    let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(code) = codes.get(code) {
        return code;
    }
    if codes.len() >= REMOTE_CODES_MAX {
        return "refused_elsewhere";
    }
    let kept: &'static str = Box::leak(code.to_owned().into_boxed_str());
    codes.insert(kept);
    kept
}
