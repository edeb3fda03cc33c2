//! `new`: a crate with a handler of its own, its scenario, its simulation, and a workflow that runs it.
//!
//! Owns: the files of the starter. Handler, bank and scenario are those of `examples/payments`, so that what is written
//! is what the tests run. Must never: write over anything. Next: `../own/mod.rs`, docs/guides/scenarios-in-your-ci.md.

use super::arguments::Starter;
use super::report::{complain, say};
use super::{PASS, USAGE};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where this program's own sources lie.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// File and text. `NAME`, `CRATE`, `FENCEPOST` and `SIMULATOR` stand for what the maker says.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../starter/handlers.toml")),
    (".cargo/config.toml", include_str!("../../starter/alias.toml")),
    (".gitignore", "target/\nreports/\n"),
    (
        ".github/workflows/simulation.yml",
        include_str!("../../starter/workflow.yml"),
    ),
    ("src/lib.rs", include_str!("../../examples/payments/charge.rs")),
    (
        "scenarios/charge.toml",
        include_str!("../../examples/payments/scenarios/charge.toml"),
    ),
    ("sim/Cargo.toml", include_str!("../../starter/simulation.toml")),
    ("sim/.cargo/config.toml", include_str!("../../.cargo/config.toml")),
    ("sim/src/main.rs", include_str!("../../starter/main.rs")),
    ("sim/src/bank.rs", include_str!("../../examples/payments/bank.rs")),
];

/// The versions that Fencepost itself is built and tested with.
const LOCKS: &[(&str, &str)] = &[
    ("", include_str!("../../../Cargo.lock")),
    ("sim", include_str!("../../Cargo.lock")),
];

/// Makes it.
pub fn new(starter: &Starter) -> u8 {
    match make(starter) {
        Ok(told) => {
            say(&told);
            PASS
        }
        Err(why) => {
            complain(&format!("fencepost-sim: {why}"));
            USAGE
        }
    }
}

fn make(starter: &Starter) -> Result<String, String> {
    let folder = Path::new(&starter.folder);
    let name = name_of(folder)?;
    let is_free = std::fs::read_dir(folder).map_or(!folder.exists(), |mut entries| entries.next().is_none());
    if !is_free {
        return Err(format!("{} is there already", folder.display()));
    }
    let (fencepost, simulator) = dependencies(starter.fencepost.as_deref().unwrap_or(SOURCES))?;
    for (file, text) in FILES {
        let text = text
            .replace("crate::charge::", "CRATE::")
            .replace("CRATE", &name.replace('-', "_"))
            .replace("NAME", &name)
            .replace("FENCEPOST", &fencepost)
            .replace("SIMULATOR", &simulator);
        write(&folder.join(file), &text)?;
    }
    for (place, text) in LOCKS {
        write(&folder.join(place).join("Cargo.lock"), text)?;
    }
    let is_locked = LOCKS.iter().all(|(place, _)| lock(&folder.join(place)));
    let mut lines = vec![format!("made {}; in it:", folder.display())];
    if !is_locked {
        lines.push(
            "  cargo metadata --manifest-path sim/Cargo.toml > lock.log   # completes the locks, which failed".into(),
        );
    }
    lines.push("  cargo sim lint scenarios".to_owned());
    lines.push("  cargo sim run scenarios --seeds 20".to_owned());
    Ok(lines.join("\n"))
}

/// The crate's name: the last part of its folder.
fn name_of(folder: &Path) -> Result<String, String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    match name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_part) {
        true => Ok(name),
        false => Err(format!(
            "{name:?} is no name of a crate: small letters, digits, - and _, a letter first"
        )),
    }
}

/// How the manifests name the product and the simulator.
fn dependencies(sources: &str) -> Result<(String, String), String> {
    if sources.contains("://") || sources.starts_with("git@") {
        let git = format!("{{ git = {sources:?} }}");
        return Ok((git.clone(), git));
    }
    let part = |part: &str| -> Result<String, String> {
        let folder = Path::new(sources).join(part);
        let found = folder
            .canonicalize()
            .ok()
            .filter(|found| found.join("Cargo.toml").exists());
        let found: PathBuf = found.ok_or_else(|| format!("{sources} has no sources of Fencepost: no {part}"))?;
        Ok(format!("{{ path = {:?} }}", found.display().to_string()))
    };
    Ok((part("actors")?, part("sim")?))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Lets cargo take out of the lock what this crate does not need and put in the crate itself; versions stay.
fn lock(folder: &Path) -> bool {
    let once = |words: &[&str]| {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["metadata", "--format-version", "1"]).args(words);
        let quiet = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    once(&["--offline"]) || once(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_its_crate() {
        assert_eq!(name_of(Path::new("/tmp/pay-roll")), Ok("pay-roll".to_owned()));
        for bad in ["/tmp/Pay", "9pay", "a b", "/", "ä"] {
            assert!(name_of(Path::new(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn sources_are_a_folder_or_a_repository() {
        let (fencepost, simulator) = dependencies(SOURCES).unwrap();
        assert!(
            fencepost.ends_with("actors\" }") && simulator.ends_with("sim\" }"),
            "{fencepost}"
        );
        let (git, _) = dependencies("https://example.org/fencepost").unwrap();
        assert_eq!(git, "{ git = \"https://example.org/fencepost\" }");
        assert!(dependencies("/nowhere").is_err());
    }
}
