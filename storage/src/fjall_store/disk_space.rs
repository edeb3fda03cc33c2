//! Room on the disk: when creation is refused, and the reserve that lets work be freed.
//!
//! Owns: the reserve file. Below `DISK_FREE_MIN_BYTES` batches that create work are refused; when
//! even freeing batches are in danger the reserve is given up; with room again it is taken back.
//! Must never: refuse a batch that frees work. Next: `committer.rs`.

use super::folder::{Folder, private};
use fencepost_core::limits::{DISK_FREE_MIN_BYTES, DISK_RESERVE_BYTES};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Asks how much room there is; tests answer what they like.
pub trait FreeSpace: Send {
    /// Bytes that this user may still write.
    fn free_bytes(&mut self) -> io::Result<u64>;
}

/// Asks the file system of a folder.
pub struct StatvfsProbe(PathBuf);

impl StatvfsProbe {
    /// Of the file system that holds `folder`.
    pub fn new(folder: &Path) -> StatvfsProbe {
        StatvfsProbe(folder.to_path_buf())
    }
}

impl FreeSpace for StatvfsProbe {
    fn free_bytes(&mut self) -> io::Result<u64> {
        let facts = rustix::fs::statvfs(&self.0)?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }
}

pub(super) struct DiskSpace {
    probe: Box<dyn FreeSpace>,
    folder: Folder,
    is_held: bool,
    was_full: bool,
}

impl DiskSpace {
    pub(super) fn new(folder: &Folder, probe: Box<dyn FreeSpace>) -> DiskSpace {
        let is_held = fs::metadata(folder.reserve()).is_ok_and(|facts| facts.len() >= DISK_RESERVE_BYTES);
        DiskSpace {
            probe,
            folder: folder.clone(),
            is_held,
            was_full: false,
        }
    }

    /// Whether batches that create work must be refused; keeps the reserve in order on the way.
    pub(super) fn is_full(&mut self) -> bool {
        let Ok(free) = self.probe.free_bytes() else {
            return false;
        };
        if self.is_held && free < DISK_RESERVE_BYTES / 4 {
            self.give_up();
        } else if !self.is_held && free > DISK_FREE_MIN_BYTES + 2 * DISK_RESERVE_BYTES {
            self.take_back();
        }
        let is_full = free < DISK_FREE_MIN_BYTES;
        if is_full != self.was_full {
            self.was_full = is_full;
            tracing::warn!(free, is_full, "room on the store's disk");
        }
        is_full
    }

    fn give_up(&mut self) {
        self.is_held = false;
        if let Err(error) = fs::remove_file(self.folder.reserve()) {
            tracing::error!(%error, "the disk reserve cannot be given up");
        }
    }

    fn take_back(&mut self) {
        let take = || -> io::Result<()> {
            let path = self.folder.reserve();
            let file = private(OpenOptions::new().write(true).create(true).truncate(true), &path)?;
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, DISK_RESERVE_BYTES)?;
            file.sync_all()
        };
        match take() {
            Ok(()) => self.is_held = true,
            Err(error) => tracing::warn!(%error, "no disk reserve"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Told(Arc<AtomicU64>);

    impl FreeSpace for Told {
        fn free_bytes(&mut self) -> io::Result<u64> {
            Ok(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn the_reserve_is_taken_given_up_and_taken_back() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        let free = Arc::new(AtomicU64::new(1 << 30));
        let mut disk = DiskSpace::new(&folder, Box::new(Told(free.clone())));
        assert!(!disk.is_full() && folder.reserve().exists());
        free.store(DISK_FREE_MIN_BYTES - 1, Ordering::Relaxed);
        assert!(disk.is_full() && folder.reserve().exists());
        free.store(1, Ordering::Relaxed);
        assert!(disk.is_full() && !folder.reserve().exists());
        free.store(DISK_FREE_MIN_BYTES + 1, Ordering::Relaxed);
        assert!(!disk.is_full() && !folder.reserve().exists());
        free.store(1 << 30, Ordering::Relaxed);
        assert!(!disk.is_full() && folder.reserve().exists());
    }
}
