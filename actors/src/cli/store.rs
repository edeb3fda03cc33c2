//! `fencepost store …`: backup and restore of a store that no server has open.
//!
//! Owns: the two commands. Must never: touch a store in use (the folder's lock refuses), or restore over
//! a whole one. Next: `fencepost_storage::fjall_store::restore` for what a restore changes and why.

use super::failure::Failure;
use super::output::{Format, OutputArgs, counted, put};
use super::progress;
use crate::chance::{SystemChance, draw_u64};
use crate::clock::{Clock as _, SystemClock};
use crate::problem::Exit;
use crate::process::serve::StoreTicks;
use clap::{Args, Subcommand};
use fencepost_core::ids::Generation;
use fencepost_core::name::Name;
use fencepost_storage::fjall_store::{
    BackupError, IsStopped, NewStore, Options, RestoreStep, Restored, backup, restore,
};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Work with a store that no server has open.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy a store to a new folder.
    #[command(after_help = "Example:\n  fencepost store backup ./fencepost-data /backup/fencepost-monday")]
    Backup(BackupArgs),
    /// Make a store of a backup: raises the generation, parks at-most-once jobs as uncertain, holds their schedules.
    #[command(after_help = "Example:\n  fencepost store restore /backup/fencepost-monday ./fencepost-data")]
    Restore(RestoreArgs),
}

/// Arguments of `store backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Folder of the store.
    from: PathBuf,
    /// New folder for the copy; half of an earlier copy is begun anew.
    to: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `store restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Folder of the backup.
    from: PathBuf,
    /// New folder for the store; half of an earlier restore is begun anew.
    to: PathBuf,
    /// Lowest generation to rise to, above any that the lost store may have held; unnamed, the seconds since
    /// 1970, so that two restores of one backup differ.
    #[arg(long, value_name = "N")]
    generation: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

impl StoreCommand {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        match self {
            StoreCommand::Backup(args) => args.output.output,
            StoreCommand::Restore(args) => args.output.output,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run(&self, out: &mut dyn Write, is_stopped: IsStopped<'_>) -> Result<Exit, Failure> {
        match self {
            StoreCommand::Backup(args) => {
                let bar = progress::copying(&args.from, &args.to, "copying");
                let done = backup(&args.from, &args.to, is_stopped);
                bar.finish_and_clear();
                done.map_err(|error| failure(&error))?;
                let text = format!("copied to {}", args.to.display());
                let json = json!({ "folder": args.to.display().to_string() });
                put(out, &shown(args.output.output, &text, &json))?;
            }
            StoreCommand::Restore(args) => {
                let lowest = args
                    .generation
                    .map_or_else(|| generation_of(SystemClock::new().wall()), Generation);
                let bar = progress::copying(&args.from, &args.to, "restoring");
                let done = restore(&args.from, &args.to, lowest, fresh(), &mut on_step, is_stopped);
                bar.finish_and_clear();
                let done = done.map_err(|error| failure(&error))?;
                let json = json!({
                    "folder": args.to.display().to_string(), "generation": done.generation.0,
                    "parked": done.parked, "unreadable": done.unreadable,
                    "held": done.held.iter().map(Name::as_str).collect::<Vec<_>>(),
                });
                put(out, &shown(args.output.output, &told(args, &done), &json))?;
            }
        }
        Ok(Exit::Ok)
    }
}

/// The generation that nobody named: a backup knows none of the restores that were made of it, the clock
/// tells them apart. `wall` is in microseconds since 1970.
fn generation_of(wall: i64) -> Generation {
    let seconds = wall.div_euclid(1_000_000);
    Generation(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
}

fn told(args: &RestoreArgs, done: &Restored) -> String {
    let mut text = format!(
        "restored to {}: generation {}, {} parked as uncertain, {} held, {} unreadable",
        args.to.display(),
        done.generation.0,
        counted(done.parked, "at-most-once job"),
        counted(done.held.len() as u64, "schedule"),
        counted(done.unreadable, "row"),
    );
    if !done.held.is_empty() {
        text.push_str("\nheld, as their jobs run at most once and may have fired after the backup:");
        for name in &done.held {
            text.push_str("\n  ");
            text.push_str(name.as_str());
        }
        text.push_str("\nlook at what has run, then `fencepost schedule resume NAME`");
    }
    text.push_str(
        "\ntoken, grant-key and mesh-secret are in no backup: copy them from the old folder before the start",
    );
    text
}

/// A test may end the process before a step.
fn on_step(step: RestoreStep) {
    tracing::debug!(?step, "restoring");
    #[cfg(feature = "test-switches")]
    crate::process::switches::die_at(&format!("restore-{step:?}").to_lowercase());
}

fn shown(format: Format, text: &str, json: &serde_json::Value) -> String {
    match format {
        Format::Text => text.to_owned(),
        Format::Json | Format::Jsonl => json.to_string(),
    }
}

fn fresh() -> Options {
    let draw = || (u128::from(draw_u64(&SystemChance)) << 64) | u128::from(draw_u64(&SystemChance));
    let ids = NewStore {
        store: draw(),
        cell: draw(),
    };
    Options::new(ids, Arc::new(StoreTicks(Arc::new(SystemClock::new()))))
}

fn failure(error: &BackupError) -> Failure {
    let (exit, code, hint) = match error {
        BackupError::Start(start) => (Exit::Failed, start.code(), start.next_step()),
        BackupError::Occupied(_) => (Exit::Conflict, "folder_occupied", "Name a folder that does not exist."),
        BackupError::Nested { .. } => (
            Exit::Conflict,
            "folder_nested",
            "Name a folder beside the other, not in it.",
        ),
        BackupError::NoStore(_) => (
            Exit::NotFound,
            "store_not_found",
            "Name the folder of a store, or of a backup.",
        ),
        BackupError::Store(_) => (Exit::Failed, "store_failed", "Check the disk."),
        BackupError::Unreadable(_) => (Exit::Failed, "store_unreadable", "Try an older backup."),
        BackupError::Stopped => (
            Exit::Interrupted,
            "interrupted",
            "Run the same command again; it begins anew. Nothing else opens that folder.",
        ),
    };
    Failure::new(
        exit,
        code,
        crate::api::fields::sentence(&error.to_string()),
        crate::api::fields::sentence(hint),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f11_the_generation_that_nobody_named_grows_with_the_clock() {
        assert_eq!(generation_of(1_796_000_000_999_999), Generation(1_796_000_000));
        assert_eq!(generation_of(1_796_000_001_000_000), Generation(1_796_000_001));
        assert_eq!(generation_of(-5), Generation(0), "the backup's, and one more");
        assert_eq!(generation_of(i64::MAX), Generation(u32::MAX));
    }
}
