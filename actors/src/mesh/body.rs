//! The body of a call: the same bytes for every connection, or a form for each version of the protocol.
//!
//! Owns: which form leaves. A call waits for a connection, and the next one may be of another version: what leaves is
//! chosen when it leaves. Must never: know a message. Next: `queue.rs`, `link.rs`.

use crate::mesh::frame::{PROTOCOL, PROTOCOL_OLDEST};

/// What a call says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Each with the version that it is the form of from then on, the oldest first.
    forms: Vec<(u16, Vec<u8>)>,
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body {
            forms: vec![(PROTOCOL_OLDEST, bytes)],
        }
    }
}

impl Body {
    /// As it is said in each version of the protocol; not at all where there is no form of it.
    pub fn of(encode: impl Fn(u16) -> Option<Vec<u8>>) -> Body {
        let versions = PROTOCOL_OLDEST..=PROTOCOL;
        Body {
            forms: versions
                .filter_map(|version| Some((version, encode(version)?)))
                .collect(),
        }
    }

    /// The form for a connection of this version.
    pub(super) fn form(&self, version: u16) -> Option<&[u8]> {
        let known = self.forms.iter().rev().find(|(from, _)| *from <= version);
        known.map(|(_, bytes)| bytes.as_slice())
    }

    /// Bytes that it holds.
    pub(super) fn len(&self) -> usize {
        self.forms.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_connections_version_leaves_or_none() {
        let same = Body::from(vec![7]);
        assert_eq!((same.form(1), same.form(2)), (Some(&[7][..]), Some(&[7][..])));
        let each = Body::of(|version| Some(vec![0; usize::from(version)]));
        assert_eq!((each.form(1), each.form(2)), (Some(&[0][..]), Some(&[0, 0][..])));
        assert_eq!(each.len(), 3, "both wait");
        let new = Body::of(|version| (version > 1).then(Vec::new));
        assert_eq!((new.form(1), new.form(2)), (None, Some(&[][..])));
    }
}
