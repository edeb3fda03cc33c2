//! The names of files in a store's folder, and the few durable file operations.
//!
//! Owns: where things lie. Must never: leave a rename or a new file unsynced. Next: `identity.rs`.

use super::error::StartError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A store's folder.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Folder {
        Folder(path.to_path_buf())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Store id, format version, keyspaces.
    pub(super) fn identity(&self) -> PathBuf {
        self.0.join("IDENTITY")
    }

    /// Highest acknowledged sequence, outside the journal.
    pub(super) fn mark(&self) -> PathBuf {
        self.0.join("HIGHWATER")
    }

    /// What the clock is expected to show.
    pub(super) fn clock(&self) -> PathBuf {
        self.0.join("CLOCK")
    }

    /// Held by the process that has it open.
    pub(super) fn lock(&self) -> PathBuf {
        self.0.join("LOCK")
    }

    /// There while a new store is being made.
    pub(super) fn creating(&self) -> PathBuf {
        self.0.join("CREATING")
    }

    /// There while a backup is written into the folder.
    pub(super) fn copying(&self) -> PathBuf {
        self.0.join("COPYING")
    }

    /// There while a backup is restored into the folder.
    pub(super) fn restoring(&self) -> PathBuf {
        self.0.join("RESTORING")
    }

    /// There in a whole backup: what it holds may have gone on elsewhere.
    pub(super) fn backup(&self) -> PathBuf {
        self.0.join("BACKUP")
    }

    /// There after damage was found that opening the engine may have covered up.
    pub(super) fn damaged(&self) -> PathBuf {
        self.0.join("DAMAGED")
    }

    /// Bytes kept back for a full disk.
    pub(super) fn reserve(&self) -> PathBuf {
        self.0.join("RESERVE")
    }

    /// The engine's.
    pub(super) fn database(&self) -> PathBuf {
        self.0.join("db")
    }

    /// Makes it, for its owner alone.
    pub(super) fn make(&self) -> Result<(), StartError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.0).map_err(StartError::io(&self.0))
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    /// Makes its own name durable.
    pub(super) fn sync_name(&self) -> io::Result<()> {
        let parent = self.0.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Writes a whole file so that after a crash it is the old one or the new one.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), StartError> {
        let fresh = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut file = private(OpenOptions::new().write(true).create(true).truncate(true), &fresh)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&fresh, path)?;
            self.sync()
        };
        write().map_err(StartError::io(path))
    }

    /// Removes a file, if it is there, durably.
    pub(super) fn remove(&self, path: &Path) -> Result<(), StartError> {
        let remove = || -> io::Result<()> {
            match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
                Ok(()) => self.sync(),
            }
        };
        remove().map_err(StartError::io(path))
    }
}

/// Opens a file that its owner alone may read.
pub(super) fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

/// Whether something is there.
pub(super) fn is_there(path: &Path) -> Result<bool, StartError> {
    path.try_exists().map_err(StartError::io(path))
}
