//! The floor under benches: a bare group-commit loop that writes comparable rows to the same fjall.
//!
//! Owns: what the disk and the engine allow, without scopes, machines or messages, synced as the commit
//! thread syncs. The high-water mark is written only when it is asked for, to measure what it costs. Must
//! never: be used for anything but comparison. Next: `docs/performance.md`.

use super::folder::Folder;
use super::mark::{Mark, MarkFile};
use super::space::{SPACES, Space, Spaces, open_database};
use crate::keys::chain_key;
use fjall::PersistMode;
use std::path::Path;

/// A key and a value to write, or a key to delete.
pub type FloorWrite = (Vec<u8>, Option<Vec<u8>>);

/// A bare database.
pub struct Floor {
    spaces: Spaces,
    mark: Mark,
    mark_file: MarkFile,
}

impl Floor {
    /// Opens a bare database in an empty folder.
    pub fn open(folder: &Path) -> Result<Floor, String> {
        let folder = Folder::new(folder);
        folder.make().map_err(|error| error.to_string())?;
        let open = || Spaces::open(open_database(&folder.database())?, None);
        let spaces = open().map_err(|error| error.to_string())?;
        let mark = Mark::default();
        let mark_file = MarkFile::create(&folder, 1, &[mark.alone()]).map_err(|error| error.to_string())?;
        Ok(Floor {
            spaces,
            mark,
            mark_file,
        })
    }

    /// One journal write, one sync.
    pub fn commit(&self, writes: &[FloorWrite]) -> Result<(), String> {
        self.write(writes, None)
    }

    /// The same with a large group's mark: the group's digest, a chain row in every keyspace, and after the
    /// journal's sync that of the mark. Here they follow each other; the store's marker runs beside the
    /// next group's journal write, and a small group has one sync only.
    pub fn commit_marked(&mut self, writes: &[FloorWrite]) -> Result<(), String> {
        let mut digest = blake3::Hasher::new();
        for (key, value) in writes {
            digest.update(key).update(value.as_deref().unwrap_or_default());
        }
        let mark = self.mark.next(digest.finalize().as_bytes());
        self.write(writes, Some(mark))?;
        self.mark = mark;
        self.mark_file.write(&mark.alone()).map_err(|error| error.to_string())
    }

    fn write(&self, writes: &[FloorWrite], mark: Option<Mark>) -> Result<(), String> {
        let mut batch = self.spaces.database().batch().durability(Some(PersistMode::SyncData));
        if let Some(mark) = mark {
            for space in SPACES {
                batch.insert(self.spaces.get(space), chain_key(space.number()), mark.to_value());
            }
        }
        for (key, value) in writes {
            let space = self.spaces.of_key(key).unwrap_or_else(|| self.spaces.get(Space::Meta));
            match value {
                Some(value) => batch.insert(space, key.as_slice(), value.as_slice()),
                None => batch.remove(space, key.as_slice()),
            }
        }
        batch.commit().map_err(|error| error.to_string())
    }
}
