//! Does what a guide says, in a folder of its own, with the real binary.
//!
//! Owns: the folder, the environment, background programs and their end. Must never: know a guide.
//! Next: `script`, which reads them.

#![allow(
    clippy::disallowed_methods,
    reason = "watches a real process in real time; nothing here runs in the simulator"
)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::script::{Shown, Step, matches, parse};

/// A minute's cron fires within a minute; the rest is for a busy machine.
const UNTIL_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(250);

/// Runs a guide of `docs/guides` from its first block to its last.
pub fn run_guide(name: &str, environment: &[(&str, String)]) {
    run_guide_on(name, environment, &[]);
}

/// The same with these ports of the guide replaced by others, which are free here.
pub fn run_guide_on(name: &str, environment: &[(&str, String)], ports: &[(&str, String)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides").join(name);
    let mut guide = std::fs::read_to_string(path).unwrap();
    for (shown, free) in ports {
        assert!(guide.contains(shown), "{name} does not speak of {shown}");
        guide = guide.replace(shown, free);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut room = Room {
        folder: folder.path(),
        environment,
        background: Vec::new(),
    };
    let mut commands = 0;
    for step in parse(&guide) {
        match step {
            Step::File { name, content } => std::fs::write(folder.path().join(name), content).unwrap(),
            Step::Command(shown) => {
                commands += 1;
                room.run(name, &shown);
            }
        }
    }
    assert!(commands > 3, "{name} shows hardly anything");
    room.leave();
}

struct Room<'a> {
    folder: &'a Path,
    environment: &'a [(&'a str, String)],
    background: Vec<Child>,
}

impl Room<'_> {
    fn run(&mut self, guide: &str, shown: &Shown) {
        if shown.background {
            let mut log = std::fs::File::options();
            let log = log.create(true).append(true).open(self.folder.join("background.log"));
            let log = log.unwrap();
            let mut command = self.shell(&format!("exec {}", shown.typed));
            command.stdout(log.try_clone().unwrap()).stderr(log);
            self.background.push(command.spawn().unwrap());
            return;
        }
        let started = Instant::now();
        loop {
            let output = self.shell(&format!("exec 2>&1; {}", shown.typed)).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if matches(&shown.output, &text.lines().collect::<Vec<_>>()) {
                return;
            }
            if !shown.until || started.elapsed() > UNTIL_MAX {
                panic!("{}", self.complaint(guide, shown, &output));
            }
            self.bury();
            std::thread::sleep(POLL);
        }
    }

    /// What the guide has ended by itself is gone.
    fn bury(&mut self) {
        self.background.retain_mut(|child| child.try_wait().unwrap().is_none());
    }

    fn shell(&self, typed: &str) -> Command {
        let bin = Path::new(env!("CARGO_BIN_EXE_fencepost")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", typed])
            .current_dir(self.folder)
            .stdin(Stdio::null());
        command
            .env("PATH", path)
            .env("HOME", self.folder)
            .env("LC_ALL", "C.UTF-8");
        for name in [
            "FENCEPOST_TOKEN",
            "FENCEPOST_TOKEN_FILE",
            "FENCEPOST_TZ",
            "FENCEPOST_DATA",
        ] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (*name, value.as_str())));
        command
    }

    fn complaint(&self, guide: &str, shown: &Shown, output: &Output) -> String {
        let log = std::fs::read_to_string(self.folder.join("background.log")).unwrap_or_default();
        format!(
            "{guide}:{}: `{}` is shown as\n{}\n--- but said ({})\n{}{}\n--- in the background\n{log}",
            shown.line,
            shown.typed,
            shown.output.join("\n"),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        )
    }

    /// Ends the background programs as Ctrl-C would, the last one first, and expects them to end well.
    fn leave(mut self) {
        self.bury();
        for mut child in self.background.drain(..).rev() {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            let status = child.wait().unwrap();
            assert!(status.success(), "the server did not drain: {status}");
        }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        for child in &mut self.background {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
