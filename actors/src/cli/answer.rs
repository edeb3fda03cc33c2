//! Asking a server for one thing or a list, and showing the answer.
//!
//! Owns: the flags that all such commands have, and the two ways to show. Must never: know what is asked
//! about. Next: `client.rs` (the call), `output.rs` (the forms).

use super::client::{Call, Client, ServerArgs};
use super::failure::Failure;
use super::output::{Column, Format, OutputArgs, show_list, show_one};
use super::pages::collect;
use super::when::{ShowTz, Times};
use crate::problem::Exit;
use clap::Args;
use std::io::Write;
use std::time::Duration;

/// Which server is asked, and how its answer is shown.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    #[command(flatten)]
    times: ShowTz,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

impl AnswerArgs {
    /// The form of the output.
    pub fn format(&self) -> Format {
        self.output.output
    }

    /// What `--timeout` says, if anything.
    pub fn timeout(&self) -> Option<Duration> {
        self.server.timeout
    }

    /// A client, and the zone of the times.
    ///
    /// # Errors
    /// A flag that cannot be used.
    pub fn begin(&self) -> Result<(Client, Times), Failure> {
        Ok((Client::new(&self.server)?, Times::of(&self.times)?))
    }

    /// Makes a call and shows its answer.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn show(&self, call: Call<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
        let (client, times) = self.begin()?;
        let reply = client.call(call).await?;
        show_one(out, self.format(), &reply.body, &times)?;
        Ok(Exit::Ok)
    }

    /// Reads the pages of a list, up to a limit, and shows them.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn list(
        &self,
        path: &str,
        params: &[(&str, Option<String>)],
        limit: usize,
        columns: &[Column],
        out: &mut dyn Write,
    ) -> Result<Exit, Failure> {
        let (client, times) = self.begin()?;
        let items = collect(&client, path, params, limit).await?;
        show_list(out, self.format(), &items, columns, &times)?;
        Ok(Exit::Ok)
    }
}
