//! `H`: a value that differs from schedule to schedule and never changes for one.
//!
//! Owns: turning `H`, `H(a-b)`, `H/n` and `H(a-b)/n` into plain items, once, from a seed.
//! Must never: depend on anything but seed and field, or the stored plain text would drift.

use super::item::Place;
use super::{CronError, CronErrorKind, CronField};

/// What `H` is drawn from; made from the id of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashSeed(pub u64);

impl HashSeed {
    /// The seed of a schedule: a digest of its tenant and name, so that it outlives its incarnations.
    pub fn of_schedule(tenant: &str, name: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("fencepost cron H 1");
        hasher.update(&(tenant.len() as u64).to_be_bytes());
        hasher.update(tenant.as_bytes());
        hasher.update(name.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// Whether an expression that is one draws a value.
pub fn has_h(expression: &str) -> bool {
    let mut items = expression.split([' ', '\t', ',']);
    items.any(|item| item.starts_with('H'))
}

/// The plain item for one that begins with the sign `H`; `None` for any other item.
pub(super) fn resolve(place: Place, item: &str, seed: HashSeed) -> Result<Option<String>, CronError> {
    let Some(rest) = item.strip_prefix('H') else {
        return Ok(None);
    };
    if !(rest.is_empty() || rest.starts_with(['(', '/'])) {
        return Ok(None);
    }
    let Some(default) = place.field.hash_range() else {
        let hint = "write the year itself";
        return Err(place.refuse(CronErrorKind::Value, ": H has no meaning here", hint));
    };
    let (range, step) = match rest.split_once('/') {
        None => (rest, None),
        Some((range, step)) => (range, Some(place.number(step, 1, 9999, " step")?)),
    };
    let (low, high) = match range.is_empty() {
        true => default,
        false => drawn_range(place, range)?,
    };
    let drawn = draw(seed, place.field);
    let span = u64::from(high - low) + 1;
    let offset = |modulus: u64| u16::try_from(drawn % modulus).unwrap_or(0);
    Ok(Some(match step {
        None => (low + offset(span)).to_string(),
        Some(step) => format!("{}-{high}/{step}", low + offset(span.min(u64::from(step)))),
    }))
}

/// `(a-b)`, in numbers.
fn drawn_range(place: Place, text: &str) -> Result<(u16, u16), CronError> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let Some((left, right)) = inner.and_then(|inner| inner.split_once('-')) else {
        let message = format!(": 'H{text}' is not a value");
        let hint = "write H, H(a-b), H/n or H(a-b)/n";
        return Err(place.refuse(CronErrorKind::Value, message, hint));
    };
    let (low, high) = place.field.range();
    let first = place.number(left, low, high, "")?;
    let last = place.number(right, low, high, "")?;
    if first > last {
        let message = format!(": range {left}-{right} runs backwards");
        return Err(place.refuse(CronErrorKind::Backward, message, "put the smaller value first"));
    }
    Ok((first, last))
}

/// An even spread over 64 bits (the finaliser of splitmix64), another one for each field.
fn draw(seed: HashSeed, field: CronField) -> u64 {
    let step = 0x9e37_79b9_7f4a_7c15_u64;
    let place = CronField::ALL.iter().position(|other| *other == field).unwrap_or(0) as u64;
    let mut z = seed.0.wrapping_add(step.wrapping_mul(place + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
