//! A strict reader of TZif files (RFC 8536), version 2 and later.
//!
//! Owns: turning bytes into changes, offsets and the footer text.
//! Must never: accept what it does not understand, or read the 32-bit block, which ends in 2037.
//! Next: `posix` reads the footer.

use super::OFFSET_BOUND_SECONDS;

/// What a file says, before any clean-up.
#[derive(Debug)]
pub(super) struct TzifFile<'a> {
    /// The offset before the first change.
    pub first_offset: i32,
    /// Instant of a change and the offset from then on; instants ascend.
    pub changes: Vec<(i64, i32)>,
    /// The POSIX rule for the time after the last change; empty when there is none.
    pub footer: &'a str,
}

/// The six counts of a header, in file order.
struct Header {
    version: u8,
    ut_count: usize,
    standard_count: usize,
    leap_count: usize,
    change_count: usize,
    type_count: usize,
    name_bytes: usize,
}

struct Reader<'a> {
    rest: &'a [u8],
}

/// Reads a whole file.
pub(super) fn read(bytes: &[u8]) -> Result<TzifFile<'_>, &'static str> {
    let mut reader = Reader { rest: bytes };
    let old = reader.header()?;
    if old.version < b'2' {
        return Err("version 1 has no rule for the future");
    }
    reader.take(old.block_bytes(4))?;
    let header = reader.header()?;
    if header.leap_count != 0 {
        return Err("leap seconds are not supported");
    }
    if header.type_count == 0 {
        return Err("no local time type");
    }
    let instants = reader.take(header.change_count * 8)?;
    let kinds = reader.take(header.change_count)?;
    let offsets = offsets(reader.take(header.type_count * 6)?)?;
    reader.take(header.name_bytes + header.standard_count + header.ut_count)?;
    let footer = footer(reader.rest)?;
    Ok(TzifFile {
        first_offset: *offsets.first().ok_or("no local time type")?,
        changes: changes(instants, kinds, &offsets)?,
        footer,
    })
}

fn changes(instants: &[u8], kinds: &[u8], offsets: &[i32]) -> Result<Vec<(i64, i32)>, &'static str> {
    let mut changes: Vec<(i64, i32)> = Vec::with_capacity(kinds.len());
    for (instant, kind) in instants.chunks_exact(8).zip(kinds) {
        let at = i64::from_be_bytes(instant.try_into().map_err(|_| "cut short")?);
        let offset = *offsets.get(usize::from(*kind)).ok_or("a change names no type")?;
        if changes.last().is_some_and(|(before, _)| *before >= at) {
            return Err("changes do not ascend");
        }
        changes.push((at, offset));
    }
    Ok(changes)
}

fn offsets(types: &[u8]) -> Result<Vec<i32>, &'static str> {
    let mut offsets = Vec::new();
    for record in types.chunks_exact(6) {
        let (offset, flags) = record.split_at(4);
        let offset = i32::from_be_bytes(offset.try_into().map_err(|_| "cut short")?);
        if i64::from(offset).abs() >= OFFSET_BOUND_SECONDS {
            return Err("an offset of 26 hours or more");
        }
        if flags.first().is_none_or(|daylight| *daylight > 1) {
            return Err("a daylight flag that is neither 0 nor 1");
        }
        offsets.push(offset);
    }
    Ok(offsets)
}

fn footer(rest: &[u8]) -> Result<&str, &'static str> {
    let text = std::str::from_utf8(rest).map_err(|_| "the footer is not text")?;
    let line = text.strip_prefix('\n').and_then(|text| text.strip_suffix('\n'));
    line.filter(|line| !line.contains('\n'))
        .ok_or("the footer is not one line")
}

impl Header {
    /// Bytes of the data block with times of `time_bytes` each.
    fn block_bytes(&self, time_bytes: usize) -> usize {
        self.change_count * (time_bytes + 1)
            + self.type_count * 6
            + self.name_bytes
            + self.leap_count * (time_bytes + 4)
            + self.standard_count
            + self.ut_count
    }
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("cut short")?;
        self.rest = rest;
        Ok(taken)
    }

    fn count(&mut self) -> Result<usize, &'static str> {
        let bytes = self.take(4)?.try_into().map_err(|_| "cut short")?;
        let count = usize::try_from(u32::from_be_bytes(bytes)).map_err(|_| "a huge count")?;
        if count > 65_536 { Err("a huge count") } else { Ok(count) }
    }

    fn header(&mut self) -> Result<Header, &'static str> {
        if self.take(4)? != b"TZif" {
            return Err("not a TZif file");
        }
        let version = *self.take(1)?.first().ok_or("cut short")?;
        self.take(15)?;
        Ok(Header {
            version,
            ut_count: self.count()?,
            standard_count: self.count()?,
            leap_count: self.count()?,
            change_count: self.count()?,
            type_count: self.count()?,
            name_bytes: self.count()?,
        })
    }
}
