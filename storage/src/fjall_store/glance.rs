//! What a store's folder says without being opened, for `doctor`.
//!
//! Owns: the look at the small files beside the database. Must never: take the lock, open the engine or
//! change anything; a sound answer here does not prove the journal. Next: `start.rs` (the real look).

use super::error::StartError;
use super::folder::{Folder, is_there};
use super::identity::Identity;
use super::mark::MarkFile;
use super::verify;
use std::path::Path;

/// What a look at a store's folder shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The cell that the store was made for.
    pub cell: u128,
    /// The highest acknowledged sequence.
    pub acknowledged: u64,
}

/// What is there, or `None` if no store was made there yet.
///
/// # Errors
/// What a start would refuse as well: a missing or damaged file, a newer format, damage found earlier.
pub fn glance(folder: &Path) -> Result<Option<Glance>, StartError> {
    let folder = Folder::new(folder);
    let missing = |what: &str, acknowledged| StartError::Damaged {
        what: format!("{what} is missing"),
        acknowledged,
        found: 0,
    };
    let Some(identity) = Identity::read(&folder)? else {
        let is_begun = is_there(&folder.creating())?;
        let has_rest = is_there(&folder.mark())? || is_there(&folder.database())?;
        return match has_rest && !is_begun {
            true => Err(missing("file IDENTITY", 0)),
            false => Ok(None),
        };
    };
    verify::noted(&folder)?;
    let (_, ring) = MarkFile::open(&folder, identity.store)?;
    let acknowledged = ring.top.sequence;
    match is_there(&folder.database())? {
        true => Ok(Some(Glance {
            cell: identity.cell,
            acknowledged,
        })),
        false => Err(missing("folder db", acknowledged)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fjall_store::tests::started;
    use std::fs;

    #[test]
    fn a_glance_names_what_is_missing_also_while_the_store_is_open() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("store");
        assert_eq!(glance(&folder).unwrap(), None);
        let store = started(&folder);
        let seen = glance(&folder).unwrap().unwrap();
        assert_eq!(seen.cell, store.identity().cell);
        drop(store);
        assert!(glance(&folder).unwrap().is_some());
        for name in ["IDENTITY", "HIGHWATER", "db"] {
            let (path, aside) = (folder.join(name), folder.join("aside"));
            fs::rename(&path, &aside).unwrap();
            let error = glance(&folder).unwrap_err();
            assert_eq!(error.code(), "store_damaged");
            assert!(error.to_string().contains(name), "{error}");
            fs::rename(&aside, &path).unwrap();
        }
        assert!(glance(&folder).unwrap().is_some());
        fs::write(folder.join("DAMAGED"), "something\n").unwrap();
        assert!(glance(&folder).unwrap_err().to_string().contains("DAMAGED"));
    }
}
