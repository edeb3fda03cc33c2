//! One process per folder.
//!
//! Owns: the lock file. The operating system releases the lock when the process dies, however it
//! dies. Must never: wait. Next: `start.rs`.

use super::error::StartError;
use super::folder::{Folder, private};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};

/// Held for as long as it lives.
pub(super) struct FolderLock {
    file: File,
}

/// The lock is the open file's, and a process that another thread starts holds a copy of that until it runs
/// its own program: closing ours would leave the folder taken for as long.
impl Drop for FolderLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl FolderLock {
    /// The file that is held, whatever has become of its name.
    pub(super) fn facts(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Takes the folder, or says who has it.
    pub(super) fn take(folder: &Folder) -> Result<FolderLock, StartError> {
        let path = folder.lock();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = private(&mut options, &path).map_err(StartError::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StartError::Locked {
                    folder: folder.path().to_path_buf(),
                    pid: written_pid(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(StartError::io(&path)(error)),
        }
        let mut note = || -> std::io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        note().map_err(StartError::io(&path))?;
        Ok(FolderLock { file })
    }
}

fn written_pid(file: &mut File) -> String {
    let mut text = String::new();
    let _ = Read::by_ref(file).take(32).read_to_string(&mut text);
    let pid = text.trim();
    if !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()) {
        pid.to_owned()
    } else {
        "?".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_just_being_started_does_not_keep_the_folder() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        let lock = FolderLock::take(&folder).unwrap();
        // What a child has between its start and its own program.
        let inherited = lock.file.try_clone().unwrap();
        let refused = FolderLock::take(&folder).err().expect("it is held");
        assert!(matches!(refused, StartError::Locked { .. }), "{refused}");
        drop(lock);
        assert!(FolderLock::take(&folder).is_ok(), "it was released");
        drop(inherited);
    }
}
