//! Whether the folder that a running store writes to is still where the next start will look.
//!
//! Owns: the look at the names of lock, high-water mark, identity and database before a group is answered. A folder
//! that was deleted, moved or put in another's place takes writes as ever, and none of them is found again. Must
//! never: write. Next: `committer.rs`, `lock.rs`.

use super::error::StartError;
use super::folder::Folder;
use super::lock::FolderLock;
use super::mark::MarkFile;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and number of a file, whatever it is called.
type Which = (u64, u64);

/// The files that a store opened, and what they are called.
pub(super) struct Presence {
    folder: PathBuf,
    known: [(PathBuf, Which); 3],
    /// Written anew when the format is raised.
    identity: PathBuf,
}

impl Presence {
    pub(super) fn of(folder: &Folder, lock: &FolderLock, mark: &MarkFile) -> Result<Presence, StartError> {
        let known = |path: PathBuf, facts: io::Result<Metadata>| {
            let facts = facts.map_err(StartError::io(&path))?;
            Ok::<_, StartError>((absolute(path), which(&facts)))
        };
        let database = folder.database();
        let facts = fs::metadata(&database);
        Ok(Presence {
            folder: folder.path().to_path_buf(),
            known: [
                known(folder.lock(), lock.facts())?,
                known(folder.mark(), mark.facts())?,
                known(database, facts)?,
            ],
            identity: absolute(folder.identity()),
        })
    }

    /// # Errors
    /// The next start would not find what is written now.
    pub(super) fn look(&self) -> Result<(), String> {
        for (path, opened) in &self.known {
            match fs::metadata(path) {
                Ok(facts) if which(&facts) == *opened => {}
                Ok(_) => return Err(self.lost(path, "is another one now")),
                Err(error) => return Err(self.unseen(path, &error)),
            }
        }
        fs::metadata(&self.identity)
            .map(|_| ())
            .map_err(|error| self.unseen(&self.identity, &error))
    }

    fn unseen(&self, path: &Path, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::NotFound => self.lost(path, "is gone"),
            _ => self.lost(path, &format!("cannot be looked at: {error}")),
        }
    }

    fn lost(&self, path: &Path, what: &str) -> String {
        let (name, folder) = (path.file_name().unwrap_or_default().display(), self.folder.display());
        format!("{name} in the folder {folder} {what}: the folder was deleted, moved or exchanged while it was in use")
    }
}

/// What a start from the same place would find, also when that place is moved away; as given where the folders above
/// may not be searched.
fn absolute(path: PathBuf) -> PathBuf {
    let found = |path: &Path| fs::metadata(path).map(|facts| which(&facts)).ok();
    match std::path::absolute(&path) {
        Ok(whole) if found(&whole).is_some_and(|file| Some(file) == found(&path)) => whole,
        Ok(_) | Err(_) => path,
    }
}

fn which(facts: &Metadata) -> Which {
    (facts.dev(), facts.ino())
}
