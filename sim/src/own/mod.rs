//! A user's own handlers under simulation: the program that they make, with the same command line.
//!
//! Owns: which handlers this program has, said once before anything runs. Must never: change a handler; what runs here
//! is what a worker runs. Next: `seat.rs` (a handler within the world), `service.rs` (what it calls), then
//! `../world/services.rs`; docs/decisions/0056.

mod seat;
mod service;

pub use service::{Effects, NoAnswer, Service};

pub(crate) use seat::Caller;

use crate::world::World;
use fencepost::targets::{Handler, HandlerRegistry};
use fencepost_core::name::Name;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Makes a handler for one life of a process: what a handler keeps in memory dies with its process.
type Make = Box<dyn Fn() -> Box<dyn Handler> + Send + Sync>;

/// A simulation with handlers of its own.
///
/// ```no_run
/// use fencepost::targets::{HandlerContext, HandlerError};
/// use fencepost_sim::{Service, Simulation};
///
/// async fn greet(hall: Service<Vec<String>>, context: HandlerContext) -> Result<Vec<u8>, HandlerError> {
///     let name = String::from_utf8_lossy(&context.payload.bytes).into_owned();
///     hall.call(move |guests, effects| {
///         if !guests.contains(&name) {
///             effects.applied("greeting");
///             guests.push(name);
///         }
///     })
///     .await?;
///     Ok(Vec::new())
/// }
///
/// fn main() -> std::process::ExitCode {
///     let hall = Service::new(Vec::new());
///     let greeter = move || {
///         let hall = hall.clone();
///         move |context| greet(hall.clone(), context)
///     };
///     Simulation::new().handler("greet", greeter).main()
/// }
/// ```
#[derive(Default)]
pub struct Simulation {
    handlers: BTreeMap<Name, Make>,
    names: Vec<&'static str>,
    command: Option<&'static str>,
}

static OWN: OnceLock<Simulation> = OnceLock::new();

impl Simulation {
    /// No handler but the built-in one.
    #[must_use]
    pub fn new() -> Simulation {
        Simulation::default()
    }

    /// Scenarios may name this handler. `make` is called for each process of the cluster that begins.
    ///
    /// # Panics
    /// The text is no name, or has a handler already.
    #[must_use]
    pub fn handler<H: Handler + 'static>(
        mut self,
        name: &'static str,
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> Simulation {
        let known = match Name::new(name) {
            Ok(known) => known,
            Err(why) => panic!("{name:?} cannot name a handler: {why}"),
        };
        let make = move || -> Box<dyn Handler> { Box::new(make()) };
        let before = self.handlers.insert(known, Box::new(make));
        assert!(before.is_none(), "two handlers are named {name}");
        self.names.push(name);
        self
    }

    /// How people start this program, as reports tell them to; `cargo sim` where nothing is said.
    #[must_use]
    pub fn started_by(self, command: &'static str) -> Simulation {
        let command = Some(command);
        Simulation { command, ..self }
    }

    /// Runs the command line: `run`, `lint`, `repro`, `shrink`, `determinism`, `stats`. One program has one simulation.
    ///
    /// # Panics
    /// It is called a second time.
    #[must_use]
    pub fn main(self) -> ExitCode {
        assert!(OWN.set(self).is_ok(), "one program has one simulation");
        crate::cli::main()
    }
}

/// Names of the handlers of this program, in the order of their registration.
pub fn names() -> &'static [&'static str] {
    OWN.get().map_or(&[], |own| &own.names)
}

/// How people start this program.
pub fn command() -> &'static str {
    OWN.get().and_then(|own| own.command).unwrap_or("cargo sim")
}

/// The handlers as one life of a process has them.
pub(crate) fn handlers(world: &World) -> HandlerRegistry {
    let mut registry = HandlerRegistry::default();
    for (name, make) in OWN.get().into_iter().flat_map(|own| &own.handlers) {
        registry.register(name.clone(), seat::Seat::new(world.clone(), make()));
    }
    registry
}
