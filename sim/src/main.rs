//! The simulator.
#[cfg(not(madsim))]
compile_error!("run `cargo sim` from the root; unset RUSTFLAGS");
fn main() {}
