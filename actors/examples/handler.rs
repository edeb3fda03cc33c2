//! A server with a Rust handler of its own: `cargo run -p fencepost --example handler -- dev --ephemeral`.
//!
//! Owns: the worked example of the section on handlers in `docs/guides/targets.md`. Must never: do more
//! before `main_with` than register handlers.

use fencepost::targets::{HandlerContext, HandlerError, HandlerRegistry};
use fencepost_core::name::Name;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut handlers = HandlerRegistry::default();
    handlers.register(Name::new("shout").expect("a plain word is a name"), shout);
    fencepost::cli::main_with(handlers)
}

/// Gives back its payload in capitals.
async fn shout(context: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    let text = std::str::from_utf8(&context.payload.bytes)
        .map_err(|_| HandlerError::stop("the payload is no text").without_effect())?;
    context.progress("shouting");
    Ok(text.to_uppercase().into_bytes())
}
