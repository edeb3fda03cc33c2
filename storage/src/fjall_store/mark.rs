//! The high-water mark: the highest acknowledged sequence and its chain, outside the journal.
//!
//! Owns: a file of two slots that are written in turn, each with a checksum, so that a torn write
//! leaves the one before it. A slot is durable before the answer. One without rows is written after the
//! journal entry it names is synced; one with rows (`redo.rs`) beside it, and may then run ahead of the
//! journal by that one group, which it can bring back. Must never: run ahead otherwise. Next:
//! `marker.rs`, `verify.rs`.

use super::error::StartError;
use super::folder::{Folder, private};
use super::redo::REDO_BYTES_MAX;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 8] = b"FPMARK\x00\x02";
/// Writes are whole sectors, so that a slot is not half another's.
const SECTOR: usize = 512;
/// Distance of the slots.
const SLOT_STRIDE: u64 = 64 << 10;
/// Magic, store, sequence, chain, the chain before, length of the rows, checksum.
const HEAD_BYTES: usize = 8 + 16 + 8 + 32 + 32 + 4;
const _: () = assert!(HEAD_BYTES + REDO_BYTES_MAX + 4 + SECTOR <= SLOT_STRIDE as usize);

/// A place in the store's history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Number of the group commit.
    pub(super) sequence: u64,
    /// Hash over everything up to it.
    pub(super) chain: [u8; 32],
}

/// What a slot says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkSlot {
    /// The group it names.
    pub(super) mark: Mark,
    /// The group before it and the rows of this one, if it was written beside the journal.
    pub(super) redo: Option<(Mark, Vec<u8>)>,
}

/// The open file.
pub(super) struct MarkFile {
    file: File,
    store: u128,
    buffer: Vec<u8>,
}

impl Mark {
    /// The mark after a group with this digest.
    pub(super) fn next(&self, group: &[u8; 32]) -> Mark {
        let sequence = self.sequence + 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.chain).update(&sequence.to_be_bytes()).update(group);
        Mark {
            sequence,
            chain: *hasher.finalize().as_bytes(),
        }
    }

    /// A slot that names this group and holds no rows.
    pub(super) fn alone(self) -> MarkSlot {
        MarkSlot { mark: self, redo: None }
    }

    /// The chain for people.
    pub(super) fn chain_text(&self) -> String {
        blake3::Hash::from(self.chain).to_hex().to_string()
    }

    /// As stored in chain rows.
    pub(super) fn to_value(self) -> [u8; 41] {
        let mut value = [1; 41];
        let (_, rest) = value.split_at_mut(1);
        let (sequence, chain) = rest.split_at_mut(8);
        sequence.copy_from_slice(&self.sequence.to_be_bytes());
        chain.copy_from_slice(&self.chain);
        value
    }

    /// From a chain row.
    pub(super) fn of_value(value: &[u8]) -> Option<Mark> {
        let (version, rest) = value.split_first()?;
        let (sequence, chain) = rest.split_first_chunk::<8>()?;
        Some(Mark {
            sequence: u64::from_be_bytes(*sequence),
            chain: chain.try_into().ok().filter(|_| *version == 1)?,
        })
    }
}

impl MarkFile {
    /// Makes the file with its first slot, durable with both.
    pub(super) fn create(folder: &Folder, store: u128, first: &MarkSlot) -> Result<MarkFile, StartError> {
        let path = folder.mark();
        let create = || -> io::Result<MarkFile> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            let mut file = MarkFile {
                file: private(&mut options, &path)?,
                store,
                buffer: Vec::new(),
            };
            let zeros = vec![0; usize::try_from(2 * SLOT_STRIDE).unwrap_or(0)];
            file.file.write_all_at(&zeros, 0)?;
            file.write(first)?;
            file.file.sync_all()?;
            folder.sync()?;
            Ok(file)
        };
        create().map_err(StartError::io(&path))
    }

    /// Opens the file and reads the higher of its valid slots.
    pub(super) fn open(folder: &Folder, store: u128) -> Result<(MarkFile, MarkSlot), StartError> {
        let path = folder.mark();
        let damaged = |what: &str| StartError::Damaged {
            what: what.to_owned(),
            acknowledged: 0,
            found: 0,
        };
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damaged("file HIGHWATER is missing"));
            }
            Err(error) => return Err(StartError::io(&path)(error)),
        };
        let slots = [read_slot(&file, 0, store), read_slot(&file, SLOT_STRIDE, store)];
        let slot = slots
            .into_iter()
            .flatten()
            .max_by_key(|slot| slot.mark.sequence)
            .ok_or_else(|| damaged("file HIGHWATER holds no readable mark of this store"))?;
        let file = MarkFile {
            file,
            store,
            buffer: Vec::new(),
        };
        Ok((file, slot))
    }

    /// Writes a slot and makes it durable.
    pub(super) fn write(&mut self, slot: &MarkSlot) -> io::Result<()> {
        encode(self.store, slot, &mut self.buffer);
        self.buffer.resize(self.buffer.len().next_multiple_of(SECTOR), 0);
        let place = (slot.mark.sequence % 2) * SLOT_STRIDE;
        self.file.write_all_at(&self.buffer, place)?;
        self.file.sync_data()
    }
}

fn encode(store: u128, slot: &MarkSlot, bytes: &mut Vec<u8>) {
    let (before, rows) = match &slot.redo {
        Some((before, rows)) => (before.chain, rows.as_slice()),
        None => ([0; 32], [].as_slice()),
    };
    bytes.clear();
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&store.to_be_bytes());
    bytes.extend_from_slice(&slot.mark.sequence.to_be_bytes());
    bytes.extend_from_slice(&slot.mark.chain);
    bytes.extend_from_slice(&before);
    // One more than the length, zero for a slot without rows.
    let length = slot.redo.as_ref().map_or(0, |_| rows.len() + 1);
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(0).to_be_bytes());
    bytes.extend_from_slice(rows);
    let checksum = crc32fast::hash(bytes);
    bytes.extend_from_slice(&checksum.to_be_bytes());
}

fn read_slot(file: &File, place: u64, store: u128) -> Option<MarkSlot> {
    let mut bytes = vec![0; HEAD_BYTES];
    file.read_exact_at(&mut bytes, place).ok()?;
    let (head, rest) = bytes.split_first_chunk::<24>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (chain, rest) = rest.split_first_chunk::<32>()?;
    let (before, length) = rest.split_first_chunk::<32>()?;
    let length = usize::try_from(u32::from_be_bytes(*length.first_chunk::<4>()?)).ok()?;
    if !head.starts_with(MAGIC) || length > REDO_BYTES_MAX + 1 {
        return None;
    }
    let mark = Mark {
        sequence: u64::from_be_bytes(*sequence),
        chain: *chain,
    };
    let before = Mark {
        sequence: mark.sequence.checked_sub(1).unwrap_or_default(),
        chain: *before,
    };
    let mut tail = vec![0; length.saturating_sub(1) + 4];
    file.read_exact_at(&mut tail, place + HEAD_BYTES as u64).ok()?;
    bytes.extend_from_slice(&tail);
    tail.truncate(length.saturating_sub(1));
    let slot = MarkSlot {
        mark,
        redo: (length > 0).then_some((before, tail)),
    };
    let mut again = Vec::with_capacity(bytes.len());
    encode(store, &slot, &mut again);
    (again == bytes).then_some(slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(sequence: u64) -> Mark {
        Mark {
            sequence,
            chain: [u8::try_from(sequence % 251).unwrap(); 32],
        }
    }

    fn with_rows(sequence: u64, rows: usize) -> MarkSlot {
        MarkSlot {
            mark: mark(sequence),
            redo: Some((mark(sequence - 1), vec![9; rows])),
        }
    }

    #[test]
    fn the_higher_readable_slot_counts() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        let mut file = MarkFile::create(&folder, 7, &mark(0).alone()).unwrap();
        for sequence in 1..10 {
            let slot = match sequence % 3 {
                0 => mark(sequence).alone(),
                1 => with_rows(sequence, 0),
                _ => with_rows(sequence, REDO_BYTES_MAX),
            };
            file.write(&slot).unwrap();
            assert_eq!(MarkFile::open(&folder, 7).unwrap().1, slot);
        }
        let path = folder.mark();
        let mut bytes = std::fs::read(&path).unwrap();
        let second = usize::try_from(SLOT_STRIDE).unwrap();
        bytes[second + 30] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(MarkFile::open(&folder, 7).unwrap().1, with_rows(8, REDO_BYTES_MAX));
        bytes[30] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(MarkFile::open(&folder, 7).err().unwrap().code(), "store_damaged");
    }

    #[test]
    fn a_slot_whose_rows_are_torn_is_no_slot() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        let mut file = MarkFile::create(&folder, 7, &mark(0).alone()).unwrap();
        file.write(&with_rows(1, 3_000)).unwrap();
        file.write(&with_rows(2, 5_000)).unwrap();
        let path = folder.mark();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[HEAD_BYTES + 4_000..HEAD_BYTES + 5_000].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(MarkFile::open(&folder, 7).unwrap().1, with_rows(1, 3_000));
    }

    #[test]
    fn a_mark_of_another_store_is_no_mark() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        MarkFile::create(&folder, 7, &mark(3).alone()).unwrap();
        assert!(MarkFile::open(&folder, 8).is_err());
    }

    #[test]
    fn a_chain_row_comes_back_as_it_went() {
        assert_eq!(Mark::of_value(&mark(900).to_value()), Some(mark(900)));
        assert_eq!(Mark::of_value(&[1; 40]), None);
        assert_eq!(Mark::of_value(&[2; 41]), None);
    }
}
