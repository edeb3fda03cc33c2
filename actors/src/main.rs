//! The `fencepost` binary.
fn main() -> std::process::ExitCode {
    fencepost::cli::main()
}
