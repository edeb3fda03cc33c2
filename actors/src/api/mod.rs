//! The HTTP API: JSON over axum on our own hyper accept loop.
//!
//! Owns: everything between a socket and the `Gateway`. Must never: decide what a request means (the
//! machines do), or listen beyond loopback. Start at `server.rs` (sockets), `guard.rs` (who may), `routes/`
//! (what there is), `dto/` (shapes), `json.rs` and `fields.rs` (reading).

pub mod body;
pub mod dto;
pub mod fields;
pub mod guard;
pub mod handle;
pub mod json;
pub mod places;
pub mod query;
pub mod routes;
pub mod server;
pub mod stall;
pub mod text;
pub mod token;
