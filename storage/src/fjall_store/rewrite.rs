//! Bytes that a failed sync may have left in the system's cache alone.
//!
//! After a sync that failed, the system takes the pages for written although the disk does not hold them: a
//! later sync of the same pages succeeds and does nothing. A process that starts on such a cache reads good
//! bytes that the next power loss takes away. Owns: writing them again as they are, which makes the next sync
//! a true one. Must never: change a byte. Next: `mark.rs` and `journal.rs` for what is written again,
//! decision 0018 for why nothing else need be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are written again at once.
const PART_BYTES: u64 = 256 << 10;

/// Writes the bytes of a file from `from` up to `to` over themselves, and syncs it.
pub(super) fn in_place(path: &Path, from: u64, to: u64) -> io::Result<()> {
    if from >= to {
        return Ok(());
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    over_itself(&file, from, to)?;
    file.sync_data()
}

/// As `in_place`, without the sync.
pub(super) fn over_itself(file: &File, from: u64, to: u64) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut at = from;
    while at < to {
        let part = (to - at).min(PART_BYTES);
        bytes.resize(usize::try_from(part).unwrap_or(0), 0);
        file.read_exact_at(&mut bytes, at)?;
        file.write_all_at(&bytes, at)?;
        at += part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_changes() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        let bytes: Vec<u8> = (0..600_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        std::fs::write(&path, &bytes).unwrap();
        for (from, to) in [(0, 600_000), (5, 5), (9, 3), (7, 300_001), (599_999, 600_000)] {
            in_place(&path, from, to).unwrap();
            assert!(std::fs::read(&path).unwrap() == bytes, "{from} to {to}");
        }
        assert!(in_place(&path, 0, 600_001).is_err(), "beyond its end");
    }
}
