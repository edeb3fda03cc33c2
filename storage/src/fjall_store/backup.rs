//! Offline backup.
//!
//! Owns: the copy of a closed store under its lock. Must never: write over what is there, or leave half a
//! copy that opens (`unfinished.rs`). Next: `restore.rs`.

use super::error::StartError;
use super::folder::{Folder, is_there};
use super::identity::Identity;
use super::lock::FolderLock;
use super::unfinished::{self, Unfinished, Work};
use super::verify;
use crate::store::StoreError;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is something at the destination.
    #[error("the folder {0} is there already")]
    Occupied(String),
    /// One of the two folders is, or lies in, the other: a copy would change what it is made of.
    #[error("of the folders {from} and {to} one is the other, or lies in it")]
    Nested {
        /// The source.
        from: String,
        /// The destination.
        to: String,
    },
    /// The source holds no store.
    #[error("the folder {0} holds no store")]
    NoStore(String),
    /// The store failed on the way.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row that the restore must change cannot be read.
    #[error("the backup cannot be restored: {0}")]
    Unreadable(String),
    /// The caller wanted it to end.
    #[error("stopped half-way; what is in the new folder is no store")]
    Stopped,
}

/// Asked before each file and each page of rows: true once somebody wants the work to end.
pub type IsStopped<'a> = &'a dyn Fn() -> bool;

/// Goes on unless somebody wants the work to end; the folder then still says that it is half-done.
pub(super) fn go_on(is_stopped: IsStopped<'_>) -> Result<(), BackupError> {
    match is_stopped() {
        true => Err(BackupError::Stopped),
        false => Ok(()),
    }
}

/// Refuses a backup as a store. What was done since it was taken would be done again, under the same tokens: only a
/// restore raises those, and holds what may happen once only (F11).
pub(super) fn refuse(folder: &Folder) -> Result<(), StartError> {
    match is_there(&folder.backup())? {
        true => Err(StartError::Backup {
            folder: folder.path().to_path_buf(),
        }),
        false => Ok(()),
    }
}

/// Refuses folders of which one is, or lies in, the other.
pub(super) fn refuse_nested(from: &Path, to: &Path) -> Result<(), BackupError> {
    let real = |path| real_path(path).map_err(StartError::io(path));
    let (source, target) = (real(from)?, real(to)?);
    match source.starts_with(&target) || target.starts_with(&source) {
        true => Err(BackupError::Nested {
            from: from.display().to_string(),
            to: to.display().to_string(),
        }),
        false => Ok(()),
    }
}

/// Where a path leads by way of all links, also if its last parts are not there yet.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut real = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => {
                real.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::Normal(_) => real.push(part),
        }
        match real.canonicalize() {
            Ok(there) => real = there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(real)
}

/// Copies the store in `folder`, which no process may have open, to `to`, which must not exist, or hold
/// nothing but half of such a copy.
pub fn backup(folder: &Path, to: &Path, is_stopped: IsStopped<'_>) -> Result<(), BackupError> {
    let source = Source::take(folder)?;
    refuse_nested(folder, to)?;
    let (unfinished, _lock) = Unfinished::begin(to, Work::Backup)?;
    let copy = &unfinished.folder;
    source.copy(copy, is_stopped)?;
    copy.replace(
        &copy.backup(),
        b"a backup: fencepost store restore makes a store of it\n",
    )?;
    Ok(unfinished.finish()?)
}

/// A closed store, held.
pub(super) struct Source {
    folder: Folder,
    _lock: FolderLock,
}

impl Source {
    /// Takes a whole store that no process has open.
    pub(super) fn take(path: &Path) -> Result<Source, BackupError> {
        let folder = Folder::new(path);
        unfinished::refuse(&folder)?;
        if Identity::read(&folder)?.is_none() {
            return Err(BackupError::NoStore(path.display().to_string()));
        }
        let lock = FolderLock::take(&folder)?;
        // A copy would leave the note of the damage behind, and open.
        verify::noted(&folder)?;
        unfinished::refuse(&folder)?;
        Ok(Source { folder, _lock: lock })
    }

    /// Copies what makes it a store; durable when it returns, but for the folder's own name.
    pub(super) fn copy(&self, target: &Folder, is_stopped: IsStopped<'_>) -> Result<(), BackupError> {
        for (from, to) in [
            (self.folder.identity(), target.identity()),
            (self.folder.mark(), target.mark()),
        ] {
            copy_file(&from, &to).map_err(StartError::io(&from))?;
        }
        copy_folder(&self.folder.database(), &target.database(), is_stopped)?;
        Ok(target.sync().map_err(StartError::io(target.path()))?)
    }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()
}

fn copy_folder(from: &Path, to: &Path, is_stopped: IsStopped<'_>) -> Result<(), BackupError> {
    let failed = |error| BackupError::from(StartError::io(to)(error));
    fs::create_dir(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        go_on(is_stopped)?;
        let entry = entry.map_err(failed)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(failed)?.is_dir() {
            copy_folder(&entry.path(), &target, is_stopped)?;
        } else {
            copy_file(&entry.path(), &target).map_err(failed)?;
        }
    }
    fs::File::open(to).and_then(|folder| folder.sync_all()).map_err(failed)
}
