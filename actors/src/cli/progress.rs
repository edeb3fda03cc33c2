//! Progress of long commands, on standard error and only on a terminal.
//!
//! Owns: the shapes. Must never: write to standard output, or slow the work down: what is measured for a bar
//! is measured only while it is drawn.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};
use std::fmt;
use std::fs;
use std::io::{self, IsTerminal, Write, stderr};
use std::path::Path;
use std::time::Duration;

fn target() -> ProgressDrawTarget {
    match stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

/// For work of unknown length.
pub fn spinner(message: &str) -> ProgressBar {
    // A bar's own style has neither a message nor what turns.
    let bar = ProgressBar::with_draw_target(None, target())
        .with_style(ProgressStyle::default_spinner())
        .with_finish(ProgressFinish::AndClear)
        .with_message(message.to_owned());
    if stderr().is_terminal() {
        // Also where the work is over before it turns.
        bar.tick();
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}

/// For `count` steps.
pub fn bar(count: u64, message: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count), target())
        .with_finish(ProgressFinish::AndClear)
        .with_message(message.to_owned());
    match ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

const BAR_WIDTH: u64 = 30;

/// For a copy of one folder to another: how much of it is there.
pub fn copying(from: &Path, to: &Path, message: &str) -> ProgressBar {
    let whole = bytes_in(from).max(1);
    let to = to.to_path_buf();
    let copied = move |_: &ProgressState, out: &mut dyn fmt::Write| {
        let done = bytes_in(&to).min(whole);
        let full = usize::try_from(done * BAR_WIDTH / whole).unwrap_or(0);
        let rest = usize::try_from(BAR_WIDTH).unwrap_or(0).saturating_sub(full);
        let (done, whole) = (done >> 20, whole >> 20);
        let _ = write!(out, "{}{} {done}/{whole} MiB", "█".repeat(full), "░".repeat(rest));
    };
    let bar = spinner(message);
    match ProgressStyle::with_template("{msg} {copied}") {
        Ok(style) => bar.with_style(style.with_key("copied", copied)),
        Err(_) => bar,
    }
}

/// Bytes of all files in a folder; what cannot be read counts nothing.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_in(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// Writes to `out` in such a way that a bar on the same terminal stays below.
pub struct Above<'a> {
    /// The bar.
    pub bar: &'a ProgressBar,
    /// Where to.
    pub out: &'a mut dyn Write,
}

impl Write for Above<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bar.suspend(|| self.out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_counts_the_bytes_of_its_files_and_one_that_is_not_there_none() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("db")).unwrap();
        fs::write(temp.path().join("db/a"), [0; 70]).unwrap();
        fs::write(temp.path().join("b"), [0; 7]).unwrap();
        assert_eq!(bytes_in(temp.path()), 77);
        assert_eq!(bytes_in(&temp.path().join("none")), 0);
    }
}
