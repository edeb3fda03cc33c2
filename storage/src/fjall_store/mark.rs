//! The high-water mark: the highest acknowledged sequence and its chain, outside the journal.
//!
//! Owns: a ring of slots in a file of fixed size, each with a checksum, so that a torn write leaves those
//! before it. A slot is durable before the answer. A large group's slot holds its mark alone and is written
//! after the journal is synced. A small group's holds its rows as well (`redo.rs`), is written first, and
//! makes the group durable by itself; the journal is synced once a round. Must never: overwrite rows that
//! the journal may not hold yet. Next: `marker.rs`, `verify.rs`.

use super::error::StartError;
use super::folder::{Folder, private};
use fencepost_core::limits::{MARK_ROWS_BYTES_MAX, MARK_SLOTS};
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 8] = b"FPMARK\x00\x02";
/// Writes are whole sectors, so that a slot is not half another's.
const SECTOR: usize = 512;
/// Distance of the slots.
const SLOT_STRIDE: u64 = 32 << 10;
/// Magic, store, sequence, chain, the chain before, length of the rows, checksum.
const HEAD_BYTES: usize = 8 + 16 + 8 + 32 + 32 + 4;
const _: () = assert!(HEAD_BYTES + MARK_ROWS_BYTES_MAX + 4 + SECTOR <= SLOT_STRIDE as usize);

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
    /// The group before it and the rows of this one, if its rows are here (a small group).
    pub(super) redo: Option<(Mark, Vec<u8>)>,
}

/// What the ring says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ring {
    /// The newest group.
    pub(super) top: Mark,
    /// The group up to which the journal must hold everything.
    pub(super) base: Mark,
    /// The slots between, oldest first, all with rows; the last is the top's.
    pub(super) redo: Vec<MarkSlot>,
}

/// The open file.
pub(super) struct MarkFile {
    file: File,
    store: u128,
    buffer: Vec<u8>,
    /// The highest slot's group.
    written: Option<u64>,
    #[cfg(any(test, feature = "planted"))]
    pub(super) planted: super::PlantedFaults,
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

impl Ring {
    fn of(slots: impl Iterator<Item = MarkSlot>) -> Option<Ring> {
        let mut by_sequence: BTreeMap<u64, MarkSlot> = slots.map(|slot| (slot.mark.sequence, slot)).collect();
        let (_, mut slot) = by_sequence.pop_last()?;
        let (top, mut redo) = (slot.mark, Vec::new());
        while let Some((before, _)) = slot.redo.clone() {
            redo.push(slot);
            let earlier = by_sequence.pop_last().map(|(_, slot)| slot);
            match earlier.filter(|slot| slot.mark == before) {
                Some(earlier) => slot = earlier,
                None => {
                    slot = before.alone();
                    break;
                }
            }
        }
        redo.reverse();
        Some(Ring {
            top,
            base: slot.mark,
            redo,
        })
    }

    /// The group of this number, if the ring knows it.
    pub(super) fn at(&self, sequence: u64) -> Option<Mark> {
        let known = self.redo.iter().map(|slot| slot.mark).chain([self.base]);
        known.into_iter().find(|mark| mark.sequence == sequence)
    }

    /// Its slots, to be written into another file.
    pub(super) fn slots(&self) -> Vec<MarkSlot> {
        let base = (self.redo.len() as u64) < MARK_SLOTS;
        let base = base.then(|| self.base.alone());
        base.into_iter().chain(self.redo.iter().cloned()).collect()
    }
}

impl MarkFile {
    /// The open file, whatever has become of its name.
    pub(super) fn facts(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Makes the file with its first slots, durable as a whole.
    pub(super) fn create(folder: &Folder, store: u128, first: &[MarkSlot]) -> Result<MarkFile, StartError> {
        let path = folder.mark();
        let create = || -> io::Result<MarkFile> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            let mut file = MarkFile {
                file: private(&mut options, &path)?,
                store,
                buffer: Vec::new(),
                written: None,
                #[cfg(any(test, feature = "planted"))]
                planted: super::PlantedFaults::default(),
            };
            let zeros = vec![0; usize::try_from(MARK_SLOTS * SLOT_STRIDE).unwrap_or(0)];
            file.file.write_all_at(&zeros, 0)?;
            first.iter().try_for_each(|slot| file.write(slot))?;
            file.file.sync_all()?;
            folder.sync()?;
            Ok(file)
        };
        create().map_err(StartError::io(&path))
    }

    /// Opens the file and reads its ring: the newest readable slot, and those that lead up to it. Written
    /// again first: what a failed sync left in the system's cache alone would read as durable.
    pub(super) fn open(folder: &Folder, store: u128) -> Result<(MarkFile, Ring), StartError> {
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
        let slots = (0..MARK_SLOTS).filter_map(|place| read_slot(&file, place * SLOT_STRIDE, store));
        let ring = Ring::of(slots).ok_or_else(|| damaged("file HIGHWATER holds no readable mark of this store"))?;
        let file = MarkFile {
            file,
            store,
            buffer: Vec::new(),
            written: Some(ring.top.sequence),
            #[cfg(any(test, feature = "planted"))]
            planted: super::PlantedFaults::default(),
        };
        Ok((file, ring))
    }

    /// Writes a slot and makes it durable. One that a higher slot covers already is not written: its place
    /// in the ring may be another's by now.
    pub(super) fn write(&mut self, slot: &MarkSlot) -> io::Result<()> {
        #[cfg(any(test, feature = "planted"))]
        {
            if self.planted.without_mark || self.planted.answer_before_sync {
                return Ok(());
            }
            if self.planted.fail_mark_at.is_some_and(|at| slot.mark.sequence >= at) {
                return Err(io::Error::other("planted fault"));
            }
        }
        let is_covered =
            |written: u64| slot.mark.sequence < written || (slot.redo.is_none() && slot.mark.sequence == written);
        if self.written.is_some_and(is_covered) {
            return Ok(());
        }
        encode(self.store, slot, &mut self.buffer);
        self.buffer.resize(self.buffer.len().next_multiple_of(SECTOR), 0);
        let place = (slot.mark.sequence % MARK_SLOTS) * SLOT_STRIDE;
        self.file.write_all_at(&self.buffer, place)?;
        self.file.sync_data()?;
        self.written = Some(slot.mark.sequence);
        Ok(())
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
    if !head.starts_with(MAGIC) || length > MARK_ROWS_BYTES_MAX + 1 {
        return None;
    }
    let mark = Mark {
        sequence: u64::from_be_bytes(*sequence),
        chain: *chain,
    };
    let before = Mark {
        sequence: mark.sequence.saturating_sub(1),
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

    fn sequences(ring: &Ring) -> (u64, u64, Vec<u64>) {
        let redo = ring.redo.iter().map(|slot| slot.mark.sequence).collect();
        (ring.base.sequence, ring.top.sequence, redo)
    }

    fn opened(folder: &Folder) -> (u64, u64, Vec<u64>) {
        sequences(&MarkFile::open(folder, 7).unwrap().1)
    }

    fn damage(folder: &Folder, sequence: u64, at: usize) {
        let path = folder.mark();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[usize::try_from((sequence % MARK_SLOTS) * SLOT_STRIDE).unwrap() + at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
    }

    #[test]
    fn the_ring_reaches_back_to_the_last_mark_without_rows() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        let mut file = MarkFile::create(&folder, 7, &[mark(0).alone()]).unwrap();
        for sequence in 1..=3 {
            file.write(&with_rows(sequence, 10)).unwrap();
        }
        assert_eq!(opened(&folder), (0, 3, vec![1, 2, 3]));
        file.write(&mark(4).alone()).unwrap();
        assert_eq!(opened(&folder), (4, 4, vec![]));
        for sequence in 5..60 {
            file.write(&with_rows(sequence, MARK_ROWS_BYTES_MAX)).unwrap();
        }
        assert_eq!(opened(&folder), (43, 59, (44..60).collect()), "a whole round");
        damage(&folder, 59, HEAD_BYTES + 5_000);
        assert_eq!(opened(&folder), (43, 58, (44..59).collect()), "a torn slot is no slot");
        damage(&folder, 50, 30);
        assert_eq!(
            opened(&folder),
            (50, 58, (51..59).collect()),
            "what leads up to the top, no more"
        );
    }

    #[test]
    fn a_file_without_a_readable_slot_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        MarkFile::create(&folder, 7, &[mark(0).alone()]).unwrap();
        damage(&folder, 0, 30);
        assert_eq!(MarkFile::open(&folder, 7).err().unwrap().code(), "store_damaged");
    }

    #[test]
    fn a_ring_comes_back_from_its_slots() {
        for rounds in [3, 60] {
            let temp = tempfile::tempdir().unwrap();
            let folder = Folder::new(temp.path());
            let mut file = MarkFile::create(&folder, 7, &[mark(0).alone()]).unwrap();
            for sequence in 1..=rounds {
                file.write(&with_rows(sequence, 10)).unwrap();
            }
            let ring = MarkFile::open(&folder, 7).unwrap().1;
            MarkFile::create(&folder, 8, &ring.slots()).unwrap();
            assert_eq!(MarkFile::open(&folder, 8).unwrap().1, ring);
        }
    }

    #[test]
    fn a_mark_of_another_store_is_no_mark() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::new(temp.path());
        MarkFile::create(&folder, 7, &[mark(3).alone()]).unwrap();
        assert!(MarkFile::open(&folder, 8).is_err());
    }

    /// Golden bytes of the first format, the versions in them: what lies in folders stays readable.
    #[test]
    fn slots_and_chain_rows_are_what_was_always_written() {
        let hex = |bytes: &[u8]| {
            let text = bytes.iter().map(|byte| format!("{byte:02x}"));
            text.collect::<String>()
        };
        let golden: Vec<&str> = include_str!("../../golden/highwater-v2.hex").lines().collect();
        let (mut alone, mut rows) = (Vec::new(), Vec::new());
        encode(7, &mark(4).alone(), &mut alone);
        encode(7, &with_rows(5, 3), &mut rows);
        let written = [hex(&alone), hex(&rows), hex(&mark(6).to_value())];
        assert_eq!(golden, written, "as they would be now:\n{}", written.join("\n"));
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("ring");
        std::fs::write(&path, [alone.as_slice(), &rows].concat()).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(read_slot(&file, 0, 7), Some(mark(4).alone()));
        assert_eq!(read_slot(&file, alone.len() as u64, 7), Some(with_rows(5, 3)));
    }

    #[test]
    fn a_chain_row_comes_back_as_it_went() {
        assert_eq!(Mark::of_value(&mark(900).to_value()), Some(mark(900)));
        assert_eq!(Mark::of_value(&[1; 40]), None);
        assert_eq!(Mark::of_value(&[2; 41]), None);
    }
}
