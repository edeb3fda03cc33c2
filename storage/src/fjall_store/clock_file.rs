//! The line of the store's clock, kept beside the store for a start in the same boot of the machine (PROTOCOL F20).
//!
//! Owns: one file of fixed size. It is never synced: a boot that ended takes all use of it along, and within
//! a boot what a process has written stays readable after its death. What cannot be read is not known, and
//! refuses no start. Must never: hold anything that the store's rows need. Next: `../clock.rs`.

use super::folder::{Folder, private};
use crate::clock::{KeptLine, LineKeep};
use fencepost_core::time::{BootTime, Span, StoreTime};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const MAGIC: &[u8; 8] = b"FPCLOCK\x01";
/// Magic, boot, time since it, wall time.
const FIELD_BYTES: usize = 8 + 16 + 8 + 8;
const SUM_BYTES: usize = 16;

/// The file.
pub(super) struct ClockFile(PathBuf);

impl ClockFile {
    pub(super) fn new(folder: &Folder) -> ClockFile {
        ClockFile(folder.clock())
    }

    fn write(&self, line: &KeptLine) -> io::Result<()> {
        let file = private(OpenOptions::new().write(true).create(true).truncate(false), &self.0)?;
        file.write_all_at(&bytes_of(line), 0)
    }
}

impl LineKeep for ClockFile {
    fn load(&self) -> Option<KeptLine> {
        line_of(&std::fs::read(&self.0).ok()?)
    }

    fn save(&self, line: &KeptLine) {
        if let Err(error) = self.write(line) {
            tracing::warn!(%error, file = %self.0.display(), "a leap of the clock before the next start would not be seen");
        }
    }
}

fn bytes_of(line: &KeptLine) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&line.boot.id.to_be_bytes());
    bytes.extend_from_slice(&line.boot.since.0.to_be_bytes());
    bytes.extend_from_slice(&line.wall.0.to_be_bytes());
    let sum = blake3::hash(&bytes);
    bytes.extend(sum.as_bytes().iter().take(SUM_BYTES));
    bytes
}

fn line_of(bytes: &[u8]) -> Option<KeptLine> {
    let (fields, sum) = bytes.split_at_checked(FIELD_BYTES)?;
    if !blake3::hash(fields).as_bytes().starts_with(sum) || sum.len() != SUM_BYTES {
        return None;
    }
    let (id, rest) = fields.strip_prefix(MAGIC)?.split_first_chunk::<16>()?;
    let (since, rest) = rest.split_first_chunk::<8>()?;
    let wall = rest.first_chunk::<8>()?;
    Some(KeptLine {
        boot: BootTime {
            id: u128::from_be_bytes(*id),
            since: Span(u64::from_be_bytes(*since)),
        },
        wall: StoreTime(i64::from_be_bytes(*wall)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_as_it_went_and_damage_is_no_line() {
        let line = KeptLine {
            boot: BootTime {
                id: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321,
                since: Span(7),
            },
            wall: StoreTime(1_795_000_000_123_456),
        };
        let bytes = bytes_of(&line);
        assert_eq!(line_of(&bytes), Some(line));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(line_of(&damaged), None, "{at}");
            assert_eq!(line_of(&bytes[..at]), None, "{at}");
        }
    }
}
