//! The `fencepost` binary.

use std::process::ExitCode;

/// Rows are many small allocations that one thread makes and another frees; the system's allocator
/// spends a fifth of the processor on them and gives pages back only to ask for them again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    fencepost::cli::main_with(fencepost::targets::HandlerRegistry::default())
}
