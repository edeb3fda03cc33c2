//! A folder that a backup or a restore is still writing: no store yet.
//!
//! Owns: the file that says so. It is durable before the first byte of a copy and goes after the last, so
//! whatever ends the work half-way leaves a folder that nothing opens, and that the same work may begin
//! anew. Must never: clear a folder that does not say so. Next: `backup.rs`, `restore.rs`.

use super::backup::BackupError;
use super::error::StartError;
use super::folder::{Folder, is_there};
use super::lock::FolderLock;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What is written into a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A copy of a closed store.
    Backup,
    /// A store made of a backup.
    Restore,
}

/// A folder that is being written, held against all others.
pub(super) struct Unfinished {
    pub(super) folder: Folder,
    work: Work,
}

impl Work {
    fn marker(self, folder: &Folder) -> PathBuf {
        match self {
            Work::Backup => folder.copying(),
            Work::Restore => folder.restoring(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Work::Backup => "a backup",
            Work::Restore => "a restore",
        }
    }
}

/// Refuses a folder that holds half a copy, and what is no folder.
pub(super) fn refuse(folder: &Folder) -> Result<(), StartError> {
    if is_there(folder.path())? && !folder.path().is_dir() {
        let error = io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder");
        return Err(StartError::io(folder.path())(error));
    }
    for work in [Work::Backup, Work::Restore] {
        if is_there(&work.marker(folder))? {
            return Err(StartError::Unfinished {
                folder: folder.path().to_path_buf(),
                work: work.words(),
            });
        }
    }
    Ok(())
}

impl Unfinished {
    /// Takes a folder that is not there, is empty, or holds what the same work left half-done; says so in
    /// it, and clears it.
    pub(super) fn begin(path: &Path, work: Work) -> Result<(Unfinished, FolderLock), BackupError> {
        let unfinished = Unfinished {
            folder: Folder::new(path),
            work,
        };
        unfinished.refuse_occupied()?;
        let folder = &unfinished.folder;
        folder.make()?;
        let private = || fs::set_permissions(path, fs::Permissions::from_mode(0o700)).and_then(|()| folder.sync_name());
        private().map_err(StartError::io(path))?;
        let lock = FolderLock::take(folder)?;
        // Looked at again: now nobody else changes it.
        unfinished.refuse_occupied()?;
        let text = format!("{} is being written here; begin it again to finish it\n", work.words());
        folder.replace(&work.marker(folder), text.as_bytes())?;
        unfinished.clear().map_err(StartError::io(path))?;
        Ok((unfinished, lock))
    }

    /// All is durable: from now on it is a store.
    pub(super) fn finish(&self) -> Result<(), StartError> {
        self.folder.remove(&self.work.marker(&self.folder))
    }

    fn refuse_occupied(&self) -> Result<(), BackupError> {
        let path = self.folder.path();
        let is_free = match is_there(path)? {
            false => true,
            true if !path.is_dir() => false,
            true => {
                is_there(&self.work.marker(&self.folder))? || self.others().map_err(StartError::io(path))?.is_empty()
            }
        };
        match is_free {
            true => Ok(()),
            false => Err(BackupError::Occupied(path.display().to_string())),
        }
    }

    /// What lies there besides the files of this module.
    fn others(&self) -> io::Result<Vec<PathBuf>> {
        let marker = self.work.marker(&self.folder);
        let own = [self.folder.lock(), marker.with_extension("new"), marker];
        let entries = fs::read_dir(self.folder.path())?;
        let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        Ok(paths?.into_iter().filter(|path| !own.contains(path)).collect())
    }

    fn clear(&self) -> io::Result<()> {
        for path in self.others()? {
            match path.symlink_metadata()?.is_dir() {
                true => fs::remove_dir_all(&path)?,
                false => fs::remove_file(&path)?,
            }
        }
        self.folder.sync()
    }
}
