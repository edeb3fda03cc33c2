//! What a frame of a link carries: a call, its answer, or a message without one.
//!
//! Owns: these shapes as bytes. Must never: know a service's own messages. Next: `link.rs`.

use fencepost_core::limits::FRAME_BYTES_MAX;
use fencepost_storage::wire::{In, WireError};

/// Whom a call or message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceId(pub u8);

/// The store's calls.
pub const STORE: ServiceId = ServiceId(1);

/// Posts on the cell's board.
pub const BOARD: ServiceId = ServiceId(2);

/// Requests for owners of shards.
pub const REQUESTS: ServiceId = ServiceId(3);

/// What workers say to owners of shards.
pub const REPORTS: ServiceId = ServiceId(4);

/// What owners of shards say to workers.
pub const ORDERS: ServiceId = ServiceId(5);

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The service answered.
    Done,
    /// The listener has no such service, or this peer may not call it.
    NoService,
    /// It cannot take more now.
    Busy,
}

/// A call: number, service, time left, body.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Chosen by the caller, repeated in the answer.
    pub id: u64,
    /// For whom.
    pub service: ServiceId,
    /// Milliseconds after which the caller no longer waits.
    pub wait_ms: u32,
    /// The service's own message.
    pub body: &'a [u8],
}

/// An answer: number, status, body.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Of the call.
    pub id: u64,
    /// What became of it.
    pub status: Status,
    /// The service's own message; a reason for people when there is none.
    pub body: &'a [u8],
}

/// Appends a call to `out`.
pub fn put_request(request: &Request<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&request.id.to_be_bytes());
    out.push(request.service.0);
    out.extend_from_slice(&request.wait_ms.to_be_bytes());
    out.extend_from_slice(request.body);
}

/// Reads a call.
pub fn take_request(payload: &[u8]) -> Result<Request<'_>, WireError> {
    let mut input = In::new(payload, FRAME_BYTES_MAX)?;
    Ok(Request {
        id: u64::from_be_bytes(input.fixed()?),
        service: ServiceId(input.fixed::<1>()?[0]),
        wait_ms: u32::from_be_bytes(input.fixed()?),
        body: input.rest(),
    })
}

/// Appends an answer to `out`.
pub fn put_answer(answer: &Answer<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&answer.id.to_be_bytes());
    out.push(match answer.status {
        Status::Done => 0,
        Status::NoService => 1,
        Status::Busy => 2,
    });
    out.extend_from_slice(answer.body);
}

/// Reads an answer.
pub fn take_answer(payload: &[u8]) -> Result<Answer<'_>, WireError> {
    let mut input = In::new(payload, FRAME_BYTES_MAX)?;
    Ok(Answer {
        id: u64::from_be_bytes(input.fixed()?),
        status: match input.fixed::<1>()?[0] {
            0 => Status::Done,
            1 => Status::NoService,
            2 => Status::Busy,
            _ => return Err(WireError::Illegal("status")),
        },
        body: input.rest(),
    })
}

/// Appends a message to `out`.
pub fn put_tell(service: ServiceId, body: &[u8], out: &mut Vec<u8>) {
    out.push(service.0);
    out.extend_from_slice(body);
}

/// Reads a message.
pub fn take_tell(payload: &[u8]) -> Result<(ServiceId, &[u8]), WireError> {
    let mut input = In::new(payload, FRAME_BYTES_MAX)?;
    let service = ServiceId(input.fixed::<1>()?[0]);
    Ok((service, input.rest()))
}
