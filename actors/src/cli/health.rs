//! `fencepost health`: one question to a server, for probes of containers and service managers.
//!
//! Owns: the exit code. Needs no token. Must never: print more than a line. Next: `doctor.rs` (what is wrong).

use super::client::{Call, Client, ServerArgs};
use super::failure::Failure;
use super::output::{Format, OutputArgs, put};
use crate::problem::Exit;
use clap::Args;
use std::io::Write;

/// Arguments of `health`.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Ask only whether it lives, not whether it takes requests. What is printed is the server's answer: JSON.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

impl HealthArgs {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        self.output.output
    }

    /// Runs it; exit code 1 if the server is not ready.
    ///
    /// # Errors
    /// There is no server.
    pub async fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let path = if self.live { "/livez" } else { "/readyz" };
        let reply = Client::without_token(&self.server)?.answer(Call::get(path)).await?;
        put(out, String::from_utf8_lossy(&reply.body).trim_end())?;
        Ok(if reply.status == 200 { Exit::Ok } else { Exit::Failed })
    }
}
