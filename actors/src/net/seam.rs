//! Where the simulator takes hold of connections: it is told of each that is dialed, and may wrap those of the mesh.
//!
//! Owns: the hook, one for each thread, since a simulation has a thread of its own. This module and every use of it
//! exist only under `cfg(madsim)`. Must never: change what a connection without a hook does. Next:
//! `sim/src/world/links.rs`.

use crate::net::Stream;
use std::cell::RefCell;
use std::rc::Rc;
use tokio::net::TcpStream;

/// What takes hold of connections.
pub trait Seam {
    /// A connection to this address, `host:port`, is about to be asked for.
    fn dialing(&self, to: &str);
    /// A connection between two nodes was made; what stands in its place.
    fn wrap(&self, stream: TcpStream) -> Box<dyn Stream>;
}

thread_local! {
    static SEAM: RefCell<Option<Rc<dyn Seam>>> = const { RefCell::new(None) };
}

/// From now on this one takes hold of the connections of this thread, or none.
pub fn set(seam: Option<Rc<dyn Seam>>) {
    SEAM.set(seam);
}

fn here() -> Option<Rc<dyn Seam>> {
    SEAM.with_borrow(Clone::clone)
}

pub(crate) fn dialing(to: &str) {
    if let Some(seam) = here() {
        seam.dialing(to);
    }
}

pub(crate) fn wrap(stream: TcpStream) -> Box<dyn Stream> {
    match here() {
        Some(seam) => seam.wrap(stream),
        None => Box::new(stream),
    }
}
