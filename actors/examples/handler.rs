//! A server with a Rust handler of its own: `cargo run -p fencepost --example handler -- dev --ephemeral`.
//!
//! Owns: the worked example of the section on handlers in `docs/guides/targets.md`. Must never: do more
//! before `main_with` than register handlers.

use fencepost::targets::{HandlerContext, HandlerError, HandlerRegistry};
use fencepost_core::name::Name;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut handlers = HandlerRegistry::default();
    handlers.register(Name::new("shout").expect("a plain word is a name"), shout);
    fencepost::cli::main_with(handlers)
}

/// Gives back its payload in capitals, letter by letter, and says how far it is.
async fn shout(context: HandlerContext) -> Result<Vec<u8>, HandlerError> {
    let text = std::str::from_utf8(&context.payload.bytes)
        .map_err(|_| HandlerError::stop("the payload is no text").without_effect())?;
    let (all, mut shouted) = (text.chars().count(), String::new());
    for (count, letter) in text.chars().enumerate() {
        context.progress(&format!("{count} letters of {all}"));
        breathe().await;
        shouted.extend(letter.to_uppercase());
    }
    Ok(shouted.into_bytes())
}

#[expect(clippy::disallowed_methods, reason = "a user's handler runs on real time")]
async fn breathe() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
