//! The `fencepost` binary.

use std::process::ExitCode;

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
