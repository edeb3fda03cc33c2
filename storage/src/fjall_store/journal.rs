//! A look into the engine's journals before the engine opens them.
//!
//! Owns: reading the engine's journal format (version 3) far enough to find our chain rows. The
//! engine replays up to the first entry it cannot read and drops the rest in silence; so we first
//! see which sequences are there without a gap, and cut off a torn tail that nobody was told of
//! (which the engine would refuse to open). Must never: cut below the high-water mark.
//! Next: `verify.rs`.

use super::error::StartError;
use super::identity::id_of;
use super::mark::Mark;
use super::rewrite;
use super::space::Space;
use crate::keys::chain_key;
use fencepost_core::limits::JOURNAL_VALUE_BYTES_MAX;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

const TRAILER: [u8; 4] = [b'F', b'J', b'L', 3];
const TAG_START: u8 = 1;
const TAG_ITEM: u8 = 2;
const TAG_END: u8 = 3;
const TAG_CLEAR: u8 = 4;

/// What the journals hold.
#[derive(Debug, Default)]
pub(super) struct Journals {
    /// First and last mark found, if any.
    pub(super) first: Option<Mark>,
    pub(super) last: Option<Mark>,
    /// The chain at the acknowledged sequence, if a journal holds it.
    pub(super) at_acknowledged: Option<[u8; 32]>,
    /// The newest file, its bytes that are whole batches, and whether others follow.
    active: Option<(PathBuf, u64, bool)>,
    /// Of each file, where its batches after the acknowledged one begin and end.
    tails: Vec<(PathBuf, u64, u64)>,
}

impl Journals {
    /// Reads all journals in order. A gap between sequences, or an end before the acknowledged one,
    /// is damage of the named file.
    pub(super) fn read(database: &Path, acknowledged: &Mark) -> Result<Journals, StartError> {
        let mut journals = Journals::default();
        let files = list(database)?;
        if files.is_empty() {
            // Without one the engine also forgets how far its own numbers had come: rows in tables
            // would be there and not be seen.
            return Err(journals.damage("the journal (db/*.jnl) is missing".to_owned(), acknowledged));
        }
        for (number, path) in files {
            journals.active = None;
            let (valid, is_torn) = journals
                .read_file(number, &path, acknowledged)
                .map_err(|error| match error {
                    ReadError::Io(error) => StartError::io(&path)(error),
                    ReadError::Gap(damage) => damage,
                })?;
            journals.active = Some((path, valid, is_torn));
        }
        Ok(journals)
    }

    fn read_file(&mut self, number: u64, path: &Path, acknowledged: &Mark) -> Result<(u64, bool), ReadError> {
        let mut reader = Reader::open(path)?;
        let mut tail = 0;
        loop {
            match reader.batch()? {
                Step::Batch(None) => {}
                Step::Batch(Some(mark)) => {
                    let expected = self.last.map(|last| last.sequence + 1);
                    if expected.is_some_and(|expected| expected != mark.sequence) {
                        return Err(ReadError::Gap(self.damage(
                            format!("batches before journal {number}.jnl (or in it) are missing"),
                            acknowledged,
                        )));
                    }
                    if mark.sequence == acknowledged.sequence {
                        self.at_acknowledged = Some(mark.chain);
                    }
                    if mark.sequence <= acknowledged.sequence {
                        tail = reader.valid;
                    }
                    self.first.get_or_insert(mark);
                    self.last = Some(mark);
                }
                Step::End { is_torn } => {
                    self.tails.push((path.to_path_buf(), tail, reader.valid));
                    return Ok((reader.valid, is_torn));
                }
            }
        }
    }

    /// Writes again what no sync is known to have reached: a failed one may have left it in the system's
    /// cache alone, where it reads well and is never written.
    pub(super) fn write_again(&self) -> Result<(), StartError> {
        for (path, from, to) in &self.tails {
            rewrite::in_place(path, *from, *to).map_err(StartError::io(path))?;
        }
        Ok(())
    }

    /// Damage, with the last good sequence.
    pub(super) fn damage(&self, what: String, acknowledged: &Mark) -> StartError {
        StartError::Damaged {
            what,
            acknowledged: acknowledged.sequence,
            found: self.last.map_or(0, |mark| mark.sequence),
        }
    }

    /// The newest journal's name, for people.
    pub(super) fn newest(&self) -> String {
        let name = self.active.as_ref().and_then(|(path, ..)| path.file_name());
        name.map_or_else(|| "none".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Cuts a torn tail off the newest journal. Only called once everything acknowledged was found.
    pub(super) fn cut_torn_tail(&self) -> Result<(), StartError> {
        let Some((path, valid, true)) = &self.active else {
            return Ok(());
        };
        tracing::warn!(journal = %path.display(), valid, "cutting off a torn write that was never acknowledged");
        let cut = || -> io::Result<()> {
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(*valid)?;
            file.sync_all()
        };
        cut().map_err(StartError::io(path))
    }
}

/// Makes every journal durable as it is.
pub(super) fn sync_all(database: &Path) -> Result<(), StartError> {
    for (_, path) in list(database)? {
        let sync = || fs::File::open(&path)?.sync_all();
        sync().map_err(StartError::io(&path))?;
    }
    Ok(())
}

enum ReadError {
    Io(io::Error),
    Gap(StartError),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

/// Journals by number.
fn list(database: &Path) -> Result<Vec<(u64, PathBuf)>, StartError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(database).map_err(StartError::io(database))? {
        let path = entry.map_err(StartError::io(database))?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            found.push((
                number.ok_or_else(|| StartError::Damaged {
                    what: format!("file {} is no journal", path.display()),
                    acknowledged: 0,
                    found: 0,
                })?,
                path,
            ));
        }
    }
    found.sort();
    Ok(found)
}

/// Where each whole batch of a journal ends.
#[cfg(test)]
pub(super) fn batch_ends(path: &Path) -> io::Result<Vec<u64>> {
    let mut reader = Reader::open(path)?;
    let mut ends = Vec::new();
    while let Step::Batch(_) = reader.batch()? {
        ends.push(reader.valid);
    }
    Ok(ends)
}

enum Step {
    /// A whole batch with a good checksum, and the mark in it.
    Batch(Option<Mark>),
    /// No further whole batch: a clean end, or bytes of a broken one.
    End { is_torn: bool },
}

struct Reader {
    file: BufReader<File>,
    at: u64,
    /// End of the last whole batch.
    valid: u64,
    /// Entries of the batch under way, as they stand in the file.
    raw: Vec<u8>,
}

impl Reader {
    fn open(path: &Path) -> io::Result<Reader> {
        Ok(Reader {
            file: BufReader::with_capacity(256 << 10, File::open(path)?),
            at: 0,
            valid: 0,
            raw: Vec::new(),
        })
    }

    fn batch(&mut self) -> io::Result<Step> {
        let begin = self.at;
        let Some([tag]) = self.take()? else {
            return Ok(Step::End {
                is_torn: self.at != begin,
            });
        };
        // Zeros are the file's preallocated rest.
        if tag == 0 {
            return Ok(Step::End { is_torn: false });
        }
        let batch = if tag == TAG_START { self.entries()? } else { None };
        Ok(match batch {
            Some(mark) => {
                self.valid = self.at;
                Step::Batch(mark)
            }
            None => Step::End { is_torn: true },
        })
    }

    /// The rest of a batch after its start tag; `None` if it is broken.
    fn entries(&mut self) -> io::Result<Option<Option<Mark>>> {
        let Some(head) = self.take::<12>()? else {
            return Ok(None);
        };
        let [a, b, c, d, ..] = head;
        let count = u32::from_le_bytes([a, b, c, d]);
        let mut hasher = Xxh3::default();
        let mut mark = None;
        for _ in 0..count {
            self.raw.clear();
            let Some([tag]) = self.take()? else {
                return Ok(None);
            };
            self.raw.push(tag);
            let is_whole = match tag {
                TAG_ITEM => self.item(&mut mark)?,
                TAG_CLEAR => self.append(8)?,
                _ => false,
            };
            if !is_whole {
                return Ok(None);
            }
            hasher.update(&self.raw);
        }
        let Some(end) = self.take::<13>()? else {
            return Ok(None);
        };
        let mut expected = [0; 13];
        expected[0] = TAG_END;
        expected[1..9].copy_from_slice(&hasher.digest().to_le_bytes());
        expected[9..].copy_from_slice(&TRAILER);
        Ok((end == expected).then_some(mark))
    }

    /// One item after its tag; finds the chain row of the meta keyspace.
    fn item(&mut self, mark: &mut Option<Mark>) -> io::Result<bool> {
        if !self.append(20)? {
            return Ok(false);
        }
        let Some(head) = self.raw.last_chunk::<20>() else {
            return Ok(false);
        };
        let [_, _, k0, k1, k2, k3, k4, k5, k6, k7, n0, n1, _, _, _, _, v0, v1, v2, v3] = *head;
        let keyspace = u64::from_le_bytes([k0, k1, k2, k3, k4, k5, k6, k7]);
        let key_bytes = usize::from(u16::from_le_bytes([n0, n1]));
        let value_bytes = u32::from_le_bytes([v0, v1, v2, v3]);
        if value_bytes > JOURNAL_VALUE_BYTES_MAX {
            return Ok(false);
        }
        let key_at = self.raw.len();
        if !self.append(key_bytes)? || !self.append(usize::try_from(value_bytes).unwrap_or(usize::MAX))? {
            return Ok(false);
        }
        let key = self.raw.get(key_at..key_at + key_bytes).unwrap_or(&[]);
        if keyspace == id_of(Space::Meta) && key == chain_key(Space::Meta.number()) {
            *mark = Mark::of_value(self.raw.get(key_at + key_bytes..).unwrap_or(&[]));
        }
        Ok(true)
    }

    fn take<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        let is_whole = self.fill(&mut bytes)?;
        Ok(is_whole.then_some(bytes))
    }

    fn append(&mut self, count: usize) -> io::Result<bool> {
        let begin = self.raw.len();
        self.raw.resize(begin + count, 0);
        let mut raw = std::mem::take(&mut self.raw);
        let is_whole = raw.get_mut(begin..).map_or(Ok(false), |rest| self.fill(rest));
        self.raw = raw;
        is_whole
    }

    fn fill(&mut self, into: &mut [u8]) -> io::Result<bool> {
        match self.file.read_exact(into) {
            Ok(()) => {
                self.at += into.len() as u64;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}
