//! The one place that calls bincode: fields in, fields out, with bounds.
//!
//! Owns: how one field becomes bytes, for rows and for the mesh's messages. Every list has a bound on
//! its count and elements of at least one byte; nothing is recursive; every read returns an error,
//! never panics. Must never: know a row or a message. Next: `codec/`, `remote/message.rs`.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer;
use bincode::enc::{Encode, EncoderImpl};
use bincode::error::{DecodeError, EncodeError};
use fencepost_core::ids::{Epoch, Generation, Incarnation, Token, WorkerId};
use fencepost_core::limits::ROW_BYTES_MAX;
use fencepost_core::name::Name;
use fencepost_core::time::{Span, StoreTime};
use std::sync::Arc;

type Config = Configuration<LittleEndian, Varint, Limit<ROW_BYTES_MAX>>;

const CONFIG: Config = bincode::config::standard().with_limit::<ROW_BYTES_MAX>();

/// Why bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// They end too early.
    #[error("it ends too early")]
    Short,
    /// More bytes than there may be.
    #[error("it has {0} bytes, more than it may have")]
    TooLong(usize),
    /// Bytes are left over.
    #[error("it has {0} bytes too many")]
    Trailing(usize),
    /// A field cannot be read.
    #[error("it cannot be decoded: {0}")]
    Undecodable(&'static str),
    /// A field has a value that cannot be.
    #[error("it holds an illegal value: {0}")]
    Illegal(&'static str),
}

struct Into<'a>(&'a mut Vec<u8>);

impl Writer for Into<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends fields to a buffer.
pub struct Out<'a>(EncoderImpl<Into<'a>, Config>);

impl<'a> Out<'a> {
    /// Appends to this buffer.
    pub fn new(buffer: &'a mut Vec<u8>) -> Out<'a> {
        Out(EncoderImpl::new(Into(buffer), CONFIG))
    }

    /// One value of a type that bincode knows.
    pub fn put<T: Encode>(&mut self, value: T) -> &mut Self {
        value
            .encode(&mut self.0)
            .expect("numbers, text and bytes always encode, and a vector takes them all");
        self
    }

    /// Text, after its length.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.put(text)
    }

    /// Bytes, after their length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.put(bytes)
    }

    /// A name as text.
    pub fn name(&mut self, name: &Name) -> &mut Self {
        self.put(name.as_str())
    }

    /// An instant in microseconds.
    pub fn time(&mut self, at: StoreTime) -> &mut Self {
        self.put(at.0)
    }

    /// A span in microseconds.
    pub fn span(&mut self, span: Span) -> &mut Self {
        self.put(span.0)
    }

    /// A fencing token.
    pub fn token(&mut self, token: Token) -> &mut Self {
        self.put(token.generation.0).put(token.epoch.0).put(token.sequence)
    }

    /// Which start of which worker.
    pub fn worker(&mut self, worker: &WorkerId) -> &mut Self {
        self.name(&worker.node).put(worker.boot)
    }

    /// A life of a schedule.
    pub fn incarnation(&mut self, life: &Incarnation) -> &mut Self {
        self.put(life.generation.0)
            .put(life.epoch.0)
            .put(life.batch)
            .put(life.place)
    }

    /// Absent, or a value.
    pub fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) -> &mut Self {
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

    /// A count, then that many elements of at least one byte each.
    pub fn list<T>(&mut self, values: &[T], mut put: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.put(values.len() as u64);
        for value in values {
            put(self, value);
        }
        self
    }
}

/// Takes fields off a slice.
pub struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    /// Refuses more than `max` bytes before anything is read.
    pub fn new(bytes: &'a [u8], max: usize) -> Result<In<'a>, WireError> {
        if bytes.len() > max {
            return Err(WireError::TooLong(bytes.len()));
        }
        Ok(In(bytes))
    }

    /// One value of a type that bincode knows.
    pub fn take<T: bincode::BorrowDecode<'a, ()>>(&mut self) -> Result<T, WireError> {
        let (value, read) =
            bincode::borrow_decode_from_slice::<T, Config>(self.0, CONFIG).map_err(|error| plain(&error))?;
        self.0 = self.0.get(read..).unwrap_or(&[]);
        Ok(value)
    }

    /// Bytes that do not go through bincode (fixed places).
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(WireError::Short)?;
        self.0 = rest;
        Ok(*head)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Everything must have been read.
    pub fn end(&self) -> Result<(), WireError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(WireError::Trailing(self.0.len()))
        }
    }

    /// Text of at most `max` bytes.
    pub fn str(&mut self, max: usize, what: &'static str) -> Result<&'a str, WireError> {
        let text: &str = self.take()?;
        if text.len() > max {
            return Err(WireError::Illegal(what));
        }
        Ok(text)
    }

    /// The same, shared.
    pub fn text(&mut self, max: usize, what: &'static str) -> Result<Arc<str>, WireError> {
        self.str(max, what).map(Arc::from)
    }

    /// The same, owned.
    pub fn string(&mut self, max: usize, what: &'static str) -> Result<String, WireError> {
        self.str(max, what).map(String::from)
    }

    /// At most `max` bytes.
    pub fn bytes(&mut self, max: usize, what: &'static str) -> Result<Arc<[u8]>, WireError> {
        let bytes: &[u8] = self.take()?;
        if bytes.len() > max {
            return Err(WireError::Illegal(what));
        }
        Ok(Arc::from(bytes))
    }

    /// A legal name.
    pub fn name(&mut self) -> Result<Name, WireError> {
        let text: &str = self.take()?;
        Name::new(text).map_err(|_| WireError::Illegal("name"))
    }

    /// The name of a line: a queue's, or that of its remote jobs.
    pub fn line(&mut self) -> Result<Name, WireError> {
        let text: &str = self.take()?;
        Name::line(text).map_err(|_| WireError::Illegal("name of a line"))
    }

    /// An instant within the calendar.
    pub fn time(&mut self) -> Result<StoreTime, WireError> {
        checked_time(self.take()?)
    }

    /// A span.
    pub fn span(&mut self) -> Result<Span, WireError> {
        self.take().map(Span)
    }

    /// Yes or no.
    pub fn flag(&mut self) -> Result<bool, WireError> {
        self.take()
    }

    /// A fencing token.
    pub fn token(&mut self) -> Result<Token, WireError> {
        Ok(Token {
            generation: Generation(self.take()?),
            epoch: Epoch(self.take()?),
            sequence: self.take()?,
        })
    }

    /// Which start of which worker.
    pub fn worker(&mut self) -> Result<WorkerId, WireError> {
        Ok(WorkerId {
            node: self.name()?,
            boot: self.take()?,
        })
    }

    /// A life of a schedule.
    pub fn incarnation(&mut self) -> Result<Incarnation, WireError> {
        Ok(Incarnation {
            generation: Generation(self.take()?),
            epoch: Epoch(self.take()?),
            batch: self.take()?,
            place: self.take()?,
        })
    }

    /// Absent, or a value.
    pub fn option<T, E: From<WireError>>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        if self.flag()? { take(self).map(Some) } else { Ok(None) }
    }

    /// At most `max` elements, and never more than there are bytes left.
    pub fn list<T, E: From<WireError>>(
        &mut self,
        max: usize,
        what: &'static str,
        mut take: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let count: u64 = self.take()?;
        let count = usize::try_from(count).map_err(|_| WireError::Illegal(what))?;
        if count > max || count > self.0.len() {
            return Err(WireError::Illegal(what).into());
        }
        (0..count).map(|_| take(self)).collect()
    }
}

/// In words; the library's own text is for its developers.
fn plain(error: &DecodeError) -> WireError {
    match error {
        DecodeError::UnexpectedEnd { .. } => WireError::Short,
        DecodeError::LimitExceeded => WireError::Undecodable("a length beyond its limit"),
        DecodeError::Utf8 { .. } => WireError::Undecodable("text that is not UTF-8"),
        DecodeError::InvalidBooleanValue(_) => WireError::Undecodable("neither yes nor no"),
        DecodeError::InvalidIntegerType { .. } => WireError::Undecodable("a number too large for its field"),
        _ => WireError::Undecodable("a field of another form"),
    }
}

/// A stored instant: not beyond the year 9999.
pub fn checked_time(micros: i64) -> Result<StoreTime, WireError> {
    if micros > StoreTime::MAX.0 {
        return Err(WireError::Illegal("instant"));
    }
    Ok(StoreTime(micros))
}

/// A value that must lie within bounds.
pub fn within<T: PartialOrd>(value: T, low: T, high: T, what: &'static str) -> Result<T, WireError> {
    if value < low || value > high {
        return Err(WireError::Illegal(what));
    }
    Ok(value)
}
