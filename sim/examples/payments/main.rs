//! A user's handlers under simulation: `cargo run --release --example payments -- run examples/payments/scenarios`.
//!
//! Owns: which handlers there are. Must never: change one: `charge.rs` is what a worker runs. Next: `charge.rs`
//! (right), `blind.rs` and `noted.rs` (wrong), `bank.rs` (what they call); docs/guides/scenarios-in-your-ci.md.

mod bank;
mod blind;
mod charge;
mod noted;
mod notes;

use fencepost_sim::Simulation;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (bank, notes) = (bank::SimulatedBank::new(), notes::SimulatedNotes::new());
    let (second, third) = (bank.clone(), bank.clone());
    Simulation::new()
        .started_by("cargo run --release --example payments --")
        .handler("charge", move || charge::charging(bank.clone()))
        .handler("charge-blindly", move || blind::charging_blindly(second.clone()))
        .handler("charge-once-noted", move || {
            noted::charging_once_noted(third.clone(), notes.clone())
        })
        .main()
}
