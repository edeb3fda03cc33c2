//! What a small group wrote, to be kept with its mark.
//!
//! Owns: the bytes of a group's rows: with them the mark makes the group durable, and a start writes again
//! what the journal lost. Must never: hold a group that is too large for its slot.
//! Next: `mark.rs`, `committer.rs`.

use crate::batch::RawWrite;
use crate::codec::encode_scope;
use crate::keys::scope_key;
use fencepost_core::limits::MARK_ROWS_BYTES_MAX;
use fencepost_core::row::ScopeRow;

/// One row of a group: its key and its value, or none for a delete.
pub(super) type RedoRow = (Vec<u8>, Option<Vec<u8>>);

/// The rows of a group as bytes; `None` if they are too many.
pub(super) fn encode<'a>(
    scopes: impl Iterator<Item = &'a ScopeRow>,
    writes: impl Iterator<Item = &'a RawWrite>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4 << 10);
    for row in scopes {
        put(&mut bytes, &scope_key(row.scope), Some(&encode_scope(row)));
    }
    for write in writes {
        match write {
            RawWrite::Put { key, value, .. } => put(&mut bytes, key, Some(value)),
            RawWrite::Delete { key } => put(&mut bytes, key, None),
        }
        if bytes.len() > MARK_ROWS_BYTES_MAX {
            return None;
        }
    }
    (bytes.len() <= MARK_ROWS_BYTES_MAX).then_some(bytes)
}

/// The rows again; `None` if the bytes are none of ours.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<RedoRow>> {
    let mut rows = Vec::new();
    while !bytes.is_empty() {
        let key = take_part(&mut bytes)?.to_vec();
        let (is_put, rest) = bytes.split_first()?;
        bytes = rest;
        let value = match is_put {
            0 => None,
            1 => Some(take_part(&mut bytes)?.to_vec()),
            _ => return None,
        };
        rows.push((key, value));
    }
    Some(rows)
}

fn put(bytes: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    put_part(bytes, key);
    bytes.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put_part(bytes, value);
    }
}

fn put_part(bytes: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(part);
}

fn take_part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::RawExpect;
    use proptest::prelude::*;

    fn write(key: Vec<u8>, value: Option<Vec<u8>>) -> RawWrite {
        match value {
            Some(value) => RawWrite::Put {
                key: key.into(),
                value: value.into(),
                expect: RawExpect::Any,
            },
            None => RawWrite::Delete { key: key.into() },
        }
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_went(rows in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..40), proptest::option::of(prop::collection::vec(any::<u8>(), 0..300))),
            0..40,
        )) {
            let writes: Vec<RawWrite> = rows.iter().map(|(key, value)| write(key.clone(), value.clone())).collect();
            let bytes = encode(std::iter::empty(), writes.iter()).unwrap();
            prop_assert_eq!(decode(&bytes), Some(rows));
        }

        #[test]
        fn any_bytes_are_rows_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_large_group_is_not_kept() {
        let writes = [write(vec![1], Some(vec![0; MARK_ROWS_BYTES_MAX]))];
        assert_eq!(encode(std::iter::empty(), writes.iter()), None);
    }
}
