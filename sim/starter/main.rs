//! The simulation of this crate's handlers: `cargo sim run scenarios --seeds 100`, from the folder above.
//!
//! Owns: which handlers there are, by the names that scenarios and jobs use.

#[cfg(not(madsim))]
compile_error!("run `cargo sim` from the folder above, which sets --cfg madsim; unset RUSTFLAGS");

mod bank;

use fencepost_sim::Simulation;
use std::process::ExitCode;

fn main() -> ExitCode {
    let bank = bank::SimulatedBank::new();
    Simulation::new()
        .handler("charge", move || CRATE::charging(bank.clone()))
        .main()
}
