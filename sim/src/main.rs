//! `fencepost-sim`: see `cli/`.
#![cfg_attr(not(madsim), allow(unused))]

#[cfg(not(madsim))]
compile_error!("run `cargo sim` from the root; unset RUSTFLAGS");

#[cfg(madsim)]
fn main() -> std::process::ExitCode {
    fencepost_sim::cli::main()
}

#[cfg(not(madsim))]
fn main() {}
