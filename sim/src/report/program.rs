//! Which program made a record: the commit of its sources, and the digest of the program itself.
//!
//! Owns: asking for both when a record is kept. Must never: be asked for in a run that keeps none. The commit is
//! that of the sources' folder at that time (docs/decisions/0050). Next: `bundle.rs`.

use crate::own;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};

/// Says the commit where the sources have no repository beside them.
pub const COMMIT_VARIABLE: &str = "FENCEPOST_SIM_COMMIT";

/// What made a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Commit of the sources, `+changes` where files differ from it; `unknown` where nothing tells it.
    pub commit: String,
    /// Digest of the program file.
    pub digest: String,
}

impl Program {
    /// This program.
    pub fn this() -> Program {
        let file = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        Program {
            commit: commit(),
            digest: blake3::hash(&file).to_hex().get(..32).unwrap_or_default().to_owned(),
        }
    }
}

/// The commit of the sources that this program was built from.
pub fn commit() -> String {
    if let Ok(told) = std::env::var(COMMIT_VARIABLE)
        && !told.is_empty()
    {
        return told;
    }
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
    let suffix = if changed.is_empty() { "" } else { "+changes" };
    format!("{commit}{suffix}")
}

fn git(words: &[&str]) -> Option<String> {
    // A user's program is built from sources around the folder that it runs in.
    let folder = match own::names() {
        [] => env!("CARGO_MANIFEST_DIR"),
        _ => ".",
    };
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(words);
    let ended = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
    ended.status.success().then_some(text)
}
