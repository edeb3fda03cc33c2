//! The high-water mark: the highest acknowledged sequence and its chain, outside the journal.
//!
//! Owns: a file of two slots that are written in turn, each with a checksum, so that a torn write
//! leaves the one before it. It is made durable after the journal and before the answer. Must never:
//! run ahead of the journal. Next: `marker.rs`, `verify.rs`.

use super::error::StartError;
use super::folder::{Folder, private};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 8] = b"FPMARK\x00\x01";
/// Written at once; a sector, so that a slot is not half another's.
const SLOT_BYTES: usize = 512;
/// Distance of the slots: a page each.
const SLOT_STRIDE: u64 = 4_096;

/// A place in the store's history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Number of the group commit.
    pub(super) sequence: u64,
    /// Hash over everything up to it.
    pub(super) chain: [u8; 32],
}

/// The open file.
pub(super) struct MarkFile {
    file: File,
    store: u128,
    buffer: [u8; SLOT_BYTES],
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
    /// Makes the file with its first mark, durable with both slots.
    pub(super) fn create(folder: &Folder, store: u128, mark: Mark) -> Result<MarkFile, StartError> {
        let path = folder.mark();
        let create = || -> io::Result<MarkFile> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            let mut file = MarkFile {
                file: private(&mut options, &path)?,
                store,
                buffer: [0; SLOT_BYTES],
            };
            let zeros = vec![0; usize::try_from(2 * SLOT_STRIDE).unwrap_or(0)];
            file.file.write_all_at(&zeros, 0)?;
            file.write(mark)?;
            file.file.sync_all()?;
            folder.sync()?;
            Ok(file)
        };
        create().map_err(StartError::io(&path))
    }

    /// Opens the file and reads the higher of its valid slots.
    pub(super) fn open(folder: &Folder, store: u128) -> Result<(MarkFile, Mark), StartError> {
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
        let mark = slots
            .into_iter()
            .flatten()
            .max_by_key(|mark| mark.sequence)
            .ok_or_else(|| damaged("file HIGHWATER holds no readable mark of this store"))?;
        let file = MarkFile {
            file,
            store,
            buffer: [0; SLOT_BYTES],
        };
        Ok((file, mark))
    }

    /// Writes the mark and makes it durable.
    pub(super) fn write(&mut self, mark: Mark) -> io::Result<()> {
        let slot = encode(self.store, mark);
        let (head, _) = self.buffer.split_at_mut(slot.len());
        head.copy_from_slice(&slot);
        let place = (mark.sequence % 2) * SLOT_STRIDE;
        self.file.write_all_at(&self.buffer, place)?;
        self.file.sync_data()
    }
}

/// Magic, store, sequence, chain, checksum.
fn encode(store: u128, mark: Mark) -> Vec<u8> {
    let mut slot = Vec::with_capacity(68);
    slot.extend_from_slice(MAGIC);
    slot.extend_from_slice(&store.to_be_bytes());
    slot.extend_from_slice(&mark.sequence.to_be_bytes());
    slot.extend_from_slice(&mark.chain);
    let checksum = crc32fast::hash(&slot);
    slot.extend_from_slice(&checksum.to_be_bytes());
    slot
}

fn read_slot(file: &File, place: u64, store: u128) -> Option<Mark> {
    let mut bytes = [0; 68];
    file.read_exact_at(&mut bytes, place).ok()?;
    let (_, rest) = bytes.split_first_chunk::<24>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let chain = rest.first_chunk::<32>()?;
    let mark = Mark {
        sequence: u64::from_be_bytes(*sequence),
        chain: *chain,
    };
    (encode(store, mark) == bytes).then_some(mark)
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

    #[test]
    fn the_higher_readable_slot_counts() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        let mut file = MarkFile::create(&folder, 7, mark(0)).unwrap();
        for sequence in 1..10 {
            file.write(mark(sequence)).unwrap();
            assert_eq!(MarkFile::open(&folder, 7).unwrap().1, mark(sequence));
        }
        let path = folder.mark();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4_096 + 30] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(MarkFile::open(&folder, 7).unwrap().1, mark(8));
        bytes[30] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(MarkFile::open(&folder, 7).err().unwrap().code(), "store_damaged");
    }

    #[test]
    fn a_mark_of_another_store_is_no_mark() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        MarkFile::create(&folder, 7, mark(3)).unwrap();
        assert!(MarkFile::open(&folder, 8).is_err());
    }

    #[test]
    fn a_chain_row_comes_back_as_it_went() {
        assert_eq!(Mark::of_value(&mark(900).to_value()), Some(mark(900)));
        assert_eq!(Mark::of_value(&[1; 40]), None);
        assert_eq!(Mark::of_value(&[2; 41]), None);
    }
}
