//! Why a store does not start, for people: a stable code, what was found, what to do next.
//!
//! Owns: the words. Must never: hide a path or a number that helps. Next: `start.rs`.

use std::io;
use std::path::{Path, PathBuf};

/// Why a store did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process holds the folder.
    #[error("the folder {} is in use by process {pid}", .folder.display())]
    Locked {
        /// Which folder.
        folder: PathBuf,
        /// Of the other process, as it wrote it down; `?` if it did not.
        pid: String,
    },
    /// Another process has the database open, but not the lock of the folder.
    #[error("another process has the database {} open, and its `LOCK` was removed or replaced", .path.display())]
    DatabaseLocked {
        /// Which database.
        path: PathBuf,
    },
    /// A later version wrote it.
    #[error("the store in {} has format {found}; this version knows up to {known}", .folder.display())]
    Newer {
        /// Which folder.
        folder: PathBuf,
        /// Its format.
        found: u32,
        /// The newest that this version knows.
        known: u32,
    },
    /// Something is missing or damaged; opening it would lose acknowledged work.
    #[error("the store is damaged: {what}{}", reach(*.acknowledged, *.found))]
    Damaged {
        /// The file or keyspace, and what is wrong with it.
        what: String,
        /// From the high-water mark; 0 if that is what is damaged.
        acknowledged: u64,
        /// Last good sequence.
        found: u64,
    },
    /// A backup or a restore into it did not end: it is no store.
    #[error("the folder {} holds half of {work}", .folder.display())]
    Unfinished {
        /// Which folder.
        folder: PathBuf,
        /// What did not end, in words.
        work: &'static str,
    },
    /// It holds a backup: started as it is, it would do again what was done since.
    #[error("the folder {} holds a backup", .folder.display())]
    Backup {
        /// Which folder.
        folder: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot use {}: {}", .path.display(), without_number(.error))]
    Io {
        /// Which path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The engine refused.
    #[error("the engine cannot open {}: {reason}", .path.display())]
    Engine {
        /// Which path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl StartError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            StartError::Locked { .. } | StartError::DatabaseLocked { .. } => "store_locked",
            StartError::Newer { .. } => "store_newer",
            StartError::Damaged { .. } => "store_damaged",
            StartError::Unfinished { .. } => "store_unfinished",
            StartError::Backup { .. } => "store_is_backup",
            StartError::Io { .. } => "store_io",
            StartError::Engine { .. } => "store_engine",
        }
    }

    /// What to do next.
    pub fn next_step(&self) -> &'static str {
        match self {
            StartError::Locked { .. } => "stop the other process, or name another folder",
            StartError::DatabaseLocked { .. } => "find the process that has its files open, and stop it",
            StartError::Newer { .. } => "start the version that wrote it, or a later one",
            StartError::Damaged { .. } => {
                "nothing was opened: keep a copy of the folder, put the missing file back, or restore a backup"
            }
            StartError::Unfinished { .. } => {
                "run the same backup or restore again, into this folder: it begins anew; or delete the folder"
            }
            StartError::Backup { .. } => "restore it into a folder of its own: fencepost store restore BACKUP FOLDER",
            StartError::Io { .. } => "check the path, its owner, its mode and the disk",
            StartError::Engine { .. } => "keep a copy of the folder, then restore a backup",
        }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> StartError {
        let path = path.to_path_buf();
        move |error| StartError::Io { path, error }
    }

    pub(super) fn engine(path: &Path) -> impl FnOnce(fjall::Error) -> StartError {
        let path = path.to_path_buf();
        move |error| match error {
            fjall::Error::Locked => StartError::DatabaseLocked { path },
            error => StartError::Engine {
                path,
                reason: plain(&error),
            },
        }
    }
}

/// How far the store went and how far it goes, where that is known.
fn reach(acknowledged: u64, found: u64) -> String {
    match (acknowledged, found) {
        (0, 0) => String::new(),
        _ => format!(" (acknowledged up to sequence {acknowledged}, found up to {found})"),
    }
}

/// What the system says, without the number that only programmers know.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" (os error ").unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_owned()
}

/// An engine's error in one line.
pub(super) fn plain(error: &fjall::Error) -> String {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => without_number(error),
        fjall::Error::Storage(error) => storage(error).to_owned(),
        fjall::Error::Poisoned => "an earlier write or sync failed".to_owned(),
        fjall::Error::Locked => "another process holds the database".to_owned(),
        fjall::Error::JournalRecovery(_) => "a batch in the journal is damaged".to_owned(),
        fjall::Error::InvalidVersion(_) => "the engine's file `version` is damaged or of another version".to_owned(),
        fjall::Error::Decompress(_) => "a compressed value is damaged".to_owned(),
        fjall::Error::InvalidTrailer | fjall::Error::InvalidTag(_) => "the journal is damaged".to_owned(),
        _ => "its files do not fit together".to_owned(),
    }
}

fn storage(error: &fjall::LsmError) -> &'static str {
    match error {
        fjall::LsmError::ChecksumMismatch { .. } => "the checksum of a table does not fit",
        fjall::LsmError::Decompress(_) => "a compressed block of a table is damaged",
        fjall::LsmError::InvalidVersion(_) => "a table is damaged or of another version",
        _ => "a table or its manifest is damaged",
    }
}
