//! How entries and fences are written.
//!
//! Owns: the bytes of a guard's rows; their first byte is the version. Must never: guess at bytes it does
//! not know. Next: `decide` for what the values mean.

use fencepost_core::ids::{Epoch, Generation, Token};
use fencepost_core::time::StoreTime;

use super::GuardError;
use super::decide::{Entry, EntryState, Fence};

const VERSION: u8 = 1;
const OPEN: u8 = 0;
const IN_PROGRESS: u8 = 1;
const APPLIED: u8 = 2;

/// An entry and when it was last written, by the caller's clock.
#[must_use]
pub fn entry_bytes(entry: &Entry, at: StoreTime) -> Vec<u8> {
    let (tag, result) = match &entry.state {
        EntryState::Open => (OPEN, &[][..]),
        EntryState::InProgress => (IN_PROGRESS, &[][..]),
        EntryState::Applied(result) => (APPLIED, result.as_slice()),
    };
    let mut bytes = vec![VERSION, tag];
    bytes.extend_from_slice(&entry.fence.to_bytes());
    bytes.extend_from_slice(&at.0.to_be_bytes());
    bytes.extend_from_slice(result);
    bytes
}

/// Reads an entry back.
///
/// # Errors
/// Bytes of no known form.
pub fn entry_of(bytes: &[u8]) -> Result<(Entry, StoreTime), GuardError> {
    let (tag, rest) = split_head(bytes)?;
    let (token, rest) = rest.split_first_chunk::<20>().ok_or_else(unreadable)?;
    let (at, result) = rest.split_first_chunk::<8>().ok_or_else(unreadable)?;
    let state = match tag {
        OPEN if result.is_empty() => EntryState::Open,
        IN_PROGRESS if result.is_empty() => EntryState::InProgress,
        APPLIED => EntryState::Applied(result.to_vec()),
        _ => return Err(unreadable()),
    };
    Ok((
        Entry {
            fence: token_of(token),
            state,
        },
        StoreTime(i64::from_be_bytes(*at)),
    ))
}

/// A fence.
#[must_use]
pub fn fence_bytes(fence: Fence) -> Vec<u8> {
    let mut bytes = vec![VERSION, u8::from(fence.used)];
    bytes.extend_from_slice(&fence.token.to_bytes());
    bytes
}

/// Reads a fence back.
///
/// # Errors
/// Bytes of no known form.
pub fn fence_of(bytes: &[u8]) -> Result<Fence, GuardError> {
    let (used, rest) = split_head(bytes)?;
    let token: &[u8; 20] = rest.try_into().map_err(|_| unreadable())?;
    match used {
        0 | 1 => Ok(Fence {
            token: token_of(token),
            used: used == 1,
        }),
        _ => Err(unreadable()),
    }
}

fn split_head(bytes: &[u8]) -> Result<(u8, &[u8]), GuardError> {
    match bytes {
        [VERSION, tag, rest @ ..] => Ok((*tag, rest)),
        _ => Err(unreadable()),
    }
}

fn token_of(bytes: &[u8; 20]) -> Token {
    let part = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .unwrap_or_default()
            .iter()
            .fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte))
    };
    let generation = Generation(u32::try_from(part(0..4)).unwrap_or(u32::MAX));
    Token {
        generation,
        epoch: Epoch(part(4..12)),
        sequence: part(12..20),
    }
}

fn unreadable() -> GuardError {
    GuardError::Ledger("a row of the guard has an unknown form; it was written by a newer version or is damaged".into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn token() -> impl Strategy<Value = Token> {
        (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(generation, epoch, sequence)| Token {
            generation: Generation(generation),
            epoch: Epoch(epoch),
            sequence,
        })
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were(token in token(), at in any::<i64>(), tag in 0_u8..3, result in prop::collection::vec(any::<u8>(), 0..40), used in any::<bool>()) {
            let state = match tag {
                0 => EntryState::Open,
                1 => EntryState::InProgress,
                _ => EntryState::Applied(result),
            };
            let entry = Entry { fence: token, state };
            prop_assert_eq!(entry_of(&entry_bytes(&entry, StoreTime(at))).unwrap(), (entry, StoreTime(at)));
            let fence = Fence { token, used };
            prop_assert_eq!(fence_of(&fence_bytes(fence)).unwrap(), fence);
        }

        #[test]
        fn other_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((entry, at)) = entry_of(&bytes) {
                prop_assert_eq!(entry_bytes(&entry, at), bytes.clone());
            }
            if let Ok(fence) = fence_of(&bytes) {
                prop_assert_eq!(fence_bytes(fence), bytes);
            }
        }
    }

    #[test]
    fn golden_bytes_of_version_1_stay_readable() {
        let token = Token {
            generation: Generation(1),
            epoch: Epoch(2),
            sequence: 3,
        };
        let mut golden = vec![1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3];
        golden.extend([0, 0, 0, 0, 0, 0, 0, 9, b'o', b'k']);
        let entry = Entry {
            fence: token,
            state: EntryState::Applied(b"ok".to_vec()),
        };
        assert_eq!(entry_bytes(&entry, StoreTime(9)), golden);
        golden.truncate(22);
        *golden.get_mut(1).unwrap() = 1;
        assert_eq!(fence_bytes(Fence { token, used: true }), golden);
    }
}
