//! The `fencepost` binary.

use std::process::ExitCode;

/// Rows are many small allocations that one thread makes and another frees; the system's allocator
/// spends a fifth of the processor on them and gives pages back only to ask for them again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The supervisor of one command: before anything that makes threads or reads configuration.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == fencepost::targets::SUPERVISE)
    {
        return fencepost::targets::supervise_main();
    }
    fencepost::cli::main()
}
