//! The one place that calls bincode: fields in, fields out, with bounds.
//!
//! Owns: how one field becomes bytes. Every list has a bound on its count and elements of at least
//! one byte; nothing is recursive; every read returns an error, never panics. Must never: know a
//! row. Next: `mod.rs`.

use super::RowError;
use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer;
use bincode::enc::{Encode, EncoderImpl};
use bincode::error::EncodeError;
use fencepost_core::ids::{Epoch, Generation, Incarnation, Token, WorkerId};
use fencepost_core::limits::ROW_BYTES_MAX;
use fencepost_core::name::Name;
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

type Config = Configuration<LittleEndian, Varint, Limit<ROW_BYTES_MAX>>;

const CONFIG: Config = bincode::config::standard().with_limit::<ROW_BYTES_MAX>();

struct Into<'a>(&'a mut Vec<u8>);

impl Writer for Into<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends fields to a buffer.
pub(super) struct Out<'a>(EncoderImpl<Into<'a>, Config>);

impl<'a> Out<'a> {
    pub(super) fn new(buffer: &'a mut Vec<u8>) -> Out<'a> {
        Out(EncoderImpl::new(Into(buffer), CONFIG))
    }

    /// One value of a type that bincode knows.
    pub(super) fn put<T: Encode>(&mut self, value: T) -> &mut Self {
        value
            .encode(&mut self.0)
            .expect("numbers, text and bytes always encode, and a vector takes them all");
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.put(text)
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.put(bytes)
    }

    pub(super) fn name(&mut self, name: &Name) -> &mut Self {
        self.put(name.as_str())
    }

    pub(super) fn time(&mut self, at: StoreTime) -> &mut Self {
        self.put(at.0)
    }

    pub(super) fn span(&mut self, span: Span) -> &mut Self {
        self.put(span.0)
    }

    pub(super) fn token(&mut self, token: Token) -> &mut Self {
        self.put(token.generation.0).put(token.epoch.0).put(token.sequence)
    }

    pub(super) fn worker(&mut self, worker: &WorkerId) -> &mut Self {
        self.name(&worker.node).put(worker.boot)
    }

    pub(super) fn incarnation(&mut self, life: &Incarnation) -> &mut Self {
        self.put(life.generation.0)
            .put(life.epoch.0)
            .put(life.batch)
            .put(life.place)
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) -> &mut Self {
        match value {
            None => {
                self.put(0_u8);
            }
            Some(inner) => {
                self.put(1_u8);
                put(self, inner);
            }
        }
        self
    }

    pub(super) fn list<T>(&mut self, values: &[T], mut put: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.put(values.len() as u64);
        for value in values {
            put(self, value);
        }
        self
    }
}

/// Takes fields off a slice.
pub(super) struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    /// Refuses more than a row may hold before anything is read.
    pub(super) fn new(bytes: &'a [u8]) -> Result<In<'a>, RowError> {
        if bytes.len() > ROW_BYTES_MAX {
            return Err(RowError::TooLong(bytes.len()));
        }
        Ok(In(bytes))
    }

    pub(super) fn take<T: bincode::BorrowDecode<'a, ()>>(&mut self) -> Result<T, RowError> {
        let (value, read) = bincode::borrow_decode_from_slice::<T, Config>(self.0, CONFIG)
            .map_err(|error| RowError::Undecodable(error.to_string()))?;
        self.0 = self.0.get(read..).unwrap_or(&[]);
        Ok(value)
    }

    /// Bytes that do not go through bincode (fixed places).
    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], RowError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(RowError::Short)?;
        self.0 = rest;
        Ok(*head)
    }

    /// Everything must have been read.
    pub(super) fn end(&self) -> Result<(), RowError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(RowError::Trailing(self.0.len()))
        }
    }

    pub(super) fn str(&mut self, max: usize, what: &'static str) -> Result<&'a str, RowError> {
        let text: &str = self.take()?;
        if text.len() > max {
            return Err(RowError::Illegal(what));
        }
        Ok(text)
    }

    pub(super) fn text(&mut self, max: usize, what: &'static str) -> Result<Arc<str>, RowError> {
        self.str(max, what).map(Arc::from)
    }

    pub(super) fn string(&mut self, max: usize, what: &'static str) -> Result<String, RowError> {
        self.str(max, what).map(String::from)
    }

    pub(super) fn bytes(&mut self, max: usize, what: &'static str) -> Result<Arc<[u8]>, RowError> {
        let bytes: &[u8] = self.take()?;
        if bytes.len() > max {
            return Err(RowError::Illegal(what));
        }
        Ok(Arc::from(bytes))
    }

    pub(super) fn name(&mut self) -> Result<Name, RowError> {
        let text: &str = self.take()?;
        Name::new(text).map_err(|_| RowError::Illegal("name"))
    }

    pub(super) fn time(&mut self) -> Result<StoreTime, RowError> {
        checked_time(self.take()?)
    }

    pub(super) fn span(&mut self) -> Result<Span, RowError> {
        self.take().map(Span)
    }

    pub(super) fn flag(&mut self) -> Result<bool, RowError> {
        self.take()
    }

    pub(super) fn token(&mut self) -> Result<Token, RowError> {
        Ok(Token {
            generation: Generation(self.take()?),
            epoch: Epoch(self.take()?),
            sequence: self.take()?,
        })
    }

    pub(super) fn worker(&mut self) -> Result<WorkerId, RowError> {
        Ok(WorkerId {
            node: self.name()?,
            boot: self.take()?,
        })
    }

    pub(super) fn incarnation(&mut self) -> Result<Incarnation, RowError> {
        Ok(Incarnation {
            generation: Generation(self.take()?),
            epoch: Epoch(self.take()?),
            batch: self.take()?,
            place: self.take()?,
        })
    }

    pub(super) fn option<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, RowError>,
    ) -> Result<Option<T>, RowError> {
        if self.flag()? { take(self).map(Some) } else { Ok(None) }
    }

    /// At most `max` elements, and never more than there are bytes left.
    pub(super) fn list<T>(
        &mut self,
        max: usize,
        what: &'static str,
        mut take: impl FnMut(&mut Self) -> Result<T, RowError>,
    ) -> Result<Vec<T>, RowError> {
        let count: u64 = self.take()?;
        let count = usize::try_from(count).map_err(|_| RowError::Illegal(what))?;
        if count > max || count > self.0.len() {
            return Err(RowError::Illegal(what));
        }
        (0..count).map(|_| take(self)).collect()
    }
}

/// A stored instant: not beyond the year 9999.
pub(super) fn checked_time(micros: i64) -> Result<StoreTime, RowError> {
    if micros > StoreTime::MAX.0 {
        return Err(RowError::Illegal("instant"));
    }
    Ok(StoreTime(micros))
}

/// A value that must lie within bounds.
pub(super) fn within<T: PartialOrd>(value: T, low: T, high: T, what: &'static str) -> Result<T, RowError> {
    if value < low || value > high {
        return Err(RowError::Illegal(what));
    }
    Ok(value)
}
