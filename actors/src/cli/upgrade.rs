//! `fencepost upgrade …`: which version every node of a cell has, and the step after which none can go back.
//!
//! Owns: the two commands. Must never: stop or start a node. Next: docs/guides/upgrade.md.

use super::client::{Call, Client, ServerArgs};
use super::failure::Failure;
use super::output::{Format, OutputArgs, put};
use crate::problem::Exit;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::io::Write;

/// Work with the upgrade of a cell.
#[derive(Debug, Subcommand)]
pub enum UpgradeCommand {
    /// Show which version every node of the cell has; exit code 1 while one is older.
    #[command(after_help = "Example:\n  fencepost upgrade status")]
    Status(UpgradeArgs),
    /// End the upgrade once every node has the new version; none can go back afterwards.
    #[command(after_help = "Example:\n  fencepost upgrade finish")]
    Finish(UpgradeArgs),
}

/// Arguments of `upgrade status` and `upgrade finish`.
#[derive(Debug, Args)]
pub struct UpgradeArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

impl UpgradeCommand {
    fn args(&self) -> &UpgradeArgs {
        let (UpgradeCommand::Status(args) | UpgradeCommand::Finish(args)) = self;
        args
    }

    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        self.args().output.output
    }

    /// Runs it.
    ///
    /// # Errors
    /// What went wrong: an older node is there, say.
    pub async fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let client = Client::new(&self.args().server)?;
        let call = match self {
            UpgradeCommand::Status(_) => Call::get("/v1/upgrade"),
            UpgradeCommand::Finish(_) => Call::post("/v1/upgrade/finish"),
        };
        let reply = client.call(call).await?;
        let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        match self.format() {
            Format::Text => show(&said, out)?,
            Format::Json | Format::Jsonl => put(out, String::from_utf8_lossy(&reply.body).trim_end())?,
        }
        Ok(if is_mixed(&said) { Exit::Failed } else { Exit::Ok })
    }
}

fn number(said: &Value, key: &str) -> u64 {
    said.get(key).and_then(Value::as_u64).unwrap_or_default()
}

fn nodes(said: &Value) -> impl Iterator<Item = &Value> {
    said.get("nodes").and_then(Value::as_array).into_iter().flatten()
}

fn is_mixed(said: &Value) -> bool {
    let known = number(said, "level_known");
    number(said, "level_of_store") < known || nodes(said).any(|node| number(node, "level_known") < known)
}

fn show(said: &Value, out: &mut dyn Write) -> Result<(), Failure> {
    let (level, known) = (number(said, "level"), number(said, "level_known"));
    let mut rows = vec![("store".to_owned(), number(said, "level_of_store"))];
    rows.extend(nodes(said).map(|node| {
        let name = node.get("node").and_then(Value::as_str).unwrap_or_default();
        (format!("node {name}"), number(node, "level_known"))
    }));
    for (name, of_node) in rows {
        let word = if of_node < known {
            "the version before"
        } else {
            "this version"
        };
        put(out, &format!("{name}: {word} (level {of_node})"))?;
    }
    let next = match (level < known, is_mixed(said)) {
        (false, _) => "the upgrade is finished",
        (true, true) => "start this version on the older ones; each of them can still go back",
        (true, false) => "every node can still go back; 'fencepost upgrade finish' ends that",
    };
    put(out, &format!("cell: level {level}; {next}"))
}
