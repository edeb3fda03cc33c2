//! Names for imported schedules: what runs, and a few digits that tell lines apart.
//!
//! Owns: names that stay the same from import to import. Must never: depend on the place of a line.

use std::collections::BTreeMap;
use std::path::Path;

use super::{CrontabLine, LineOutcome};
use crate::name::Name;

/// Words that only start another program.
const WRAPPERS: &[&str] = &[
    "root",
    "sudo",
    "nice",
    "ionice",
    "nohup",
    "exec",
    "env",
    "timeout",
    "flock",
    "command",
    "time",
    "chronic",
    "test",
    "sh",
    "bash",
    "zsh",
    "dash",
    "python",
    "python2",
    "python3",
    "php",
    "perl",
    "ruby",
    "node",
    "java",
    "if",
    "then",
    "sleep",
    "true",
    "su",
    "chrt",
    "systemd-cat",
];

/// `backup.sh-3f9a1c`.
pub(super) fn of_command(expression: &str, user: Option<&str>, command: &str) -> Name {
    let mut hasher = blake3::Hasher::new();
    for part in [expression, user.unwrap_or(""), command] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize().to_hex();
    let digits: String = digest.chars().take(6).collect();
    name(&format!("{}-{digits}", program(command)))
}

/// The name of the program that a command seems to be about.
fn program(command: &str) -> String {
    let breaks = |c: char| c.is_whitespace() || "\"'`;|&<>(){}[]!$".contains(c);
    let mut words = command.split(breaks).filter(|word| !word.is_empty());
    let mut found = "";
    while let Some(word) = words.next() {
        let base = Path::new(word).file_name().and_then(|base| base.to_str()).unwrap_or("");
        if base == "cd" {
            words.next();
        } else if !(word.starts_with('-')
            || word.contains('=')
            || base.is_empty()
            || !base.starts_with(|c: char| c.is_ascii_alphabetic())
            || WRAPPERS.contains(&base)
            || word.starts_with("/dev/"))
        {
            found = base;
            break;
        }
    }
    let kept = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let slug: String = found.chars().filter(|c| kept(*c)).take(40).collect();
    if slug.is_empty() {
        "cron".to_owned()
    } else {
        slug.to_ascii_lowercase()
    }
}

/// Identical lines get `-2`, `-3` and so on.
pub(super) fn make_unique(lines: &mut [CrontabLine]) {
    let mut seen: BTreeMap<Name, u32> = BTreeMap::new();
    for line in lines {
        let LineOutcome::Proposed(proposal) = &mut line.outcome else {
            continue;
        };
        let count = seen.entry(proposal.name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            proposal.name = name(&format!("{}-{count}", proposal.name));
        }
    }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a slug of at most 40 letters and some digits fits the alphabet of names")
}
