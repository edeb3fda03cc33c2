//! What the tests of the program share.
#![allow(dead_code, reason = "each test uses its part")]

pub mod browser;

use fencepost_sim::world::canary::is_chosen;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the program.
pub fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fencepost-sim"))
        .args(arguments)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

/// Everything that it said.
pub fn told(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// The first bundle that is named in what it said.
pub fn first_bundle(said: &str) -> &str {
    let named = said.split("bundle: ").nth(1).unwrap();
    named.split_whitespace().next().unwrap()
}

/// The planted bug that fails in a fixed share of seeds.
pub const CANARY: &str = "repeats-an-effect";

/// The first seeds that the canary fails.
pub fn chosen() -> impl Iterator<Item = u64> {
    (0..).filter(|seed| is_chosen(*seed))
}

/// An empty folder of its own; gone when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fencepost-sim-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.join(name)).unwrap()
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
