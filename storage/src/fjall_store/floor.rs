//! The floor under benches: a bare group-commit loop that writes comparable rows to the same fjall.
//!
//! Owns: what the disk and the engine allow, without scopes, machines, messages or the high-water
//! mark. Must never: be used for anything but comparison. Next: `docs/guides/benchmarks.md`.

use super::space::{Space, Spaces, open_database};
use fjall::PersistMode;
use std::path::Path;

/// A key and a value to write, or a key to delete.
pub type FloorWrite = (Vec<u8>, Option<Vec<u8>>);

/// A bare database.
pub struct Floor {
    spaces: Spaces,
}

impl Floor {
    /// Opens a bare database in an empty folder.
    pub fn open(folder: &Path) -> Result<Floor, String> {
        let open = || Spaces::open(open_database(folder)?, None);
        open().map(|spaces| Floor { spaces }).map_err(|error| error.to_string())
    }

    /// One journal write, one sync.
    pub fn commit(&self, writes: &[FloorWrite]) -> Result<(), String> {
        let mut batch = self.spaces.database().batch().durability(Some(PersistMode::SyncAll));
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
