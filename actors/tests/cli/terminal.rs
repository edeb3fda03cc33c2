//! What a person at a terminal sees and a script does not: tables with heads, and progress.
//!
//! Owns: the real binary on a pseudo-terminal, which `script` of util-linux makes. Must never: read what is only
//! sometimes drawn.

use crate::server::start;
use crate::{fencepost, run};
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code and screen of the program with these words, none of which needs quoting.
fn on_a_terminal(folder: &Path, server: &str, words: &[&str]) -> (i32, String) {
    let program = fencepost(folder, words);
    let shell = format!(
        "stty cols 200 rows 24; exec {} {}",
        program.get_program().to_str().unwrap(),
        words.join(" ")
    );
    let mut script = Command::new("script");
    script.args(["-qefc", &shell, "/dev/null"]).current_dir(folder);
    for (name, value) in program.get_envs() {
        assert!(value.is_none(), "a clean environment");
        script.env_remove(name);
    }
    script.env("TERM", "xterm").env("FENCEPOST_SERVER", server);
    let output = script.stdin(Stdio::null()).output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), screen)
}

#[test]
fn lists_are_tables_with_a_head_on_a_terminal_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &[]);
    let url = server.url();
    let create = ["job", "create", "--handler", "noop", "--delay", "1h", "--server", &url];
    let (code, id, err) = run(folder.path(), &create);
    assert_eq!(code, 0, "{err}");
    let (code, screen) = on_a_terminal(folder.path(), &url, &["job", "list"]);
    let lines: Vec<_> = screen.lines().map(str::trim).collect();
    let row = lines.iter().position(|line| line.starts_with(id.trim()));
    let head = lines
        .iter()
        .position(|line| line.starts_with("ID") && line.contains("STATE"));
    assert!(code == 0 && head.is_some() && head < row, "{screen}");
    let (code, out, err) = run(folder.path(), &["job", "list", "--server", &url]);
    assert!(
        code == 0 && out.starts_with(&format!("{}\twaiting\t", id.trim())),
        "{out}{err}"
    );
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn long_work_says_what_it_is_and_how_far_on_a_terminal_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &["--allow-commands"]);
    let url = server.url();
    let create = ["job", "create", "--handler", "noop", "--delay", "1h", "--server", &url];
    let id = run(folder.path(), &create).1.trim().to_owned();
    std::fs::write(folder.path().join("tab"), "0 1 * * * /bin/one\n0 2 * * * /bin/two\n").unwrap();
    let cases: [(i32, &[&str], String); 3] = [
        (7, &["job", "wait", &id, "--for", "0s"], format!("waiting for {id}")),
        (0, &["job", "list", "--newest"], "reading all jobs".to_owned()),
        (0, &["import", "crontab", "tab"], "importing ".to_owned()),
    ];
    for (code, words, said) in &cases {
        let (ended, screen) = on_a_terminal(folder.path(), &url, words);
        assert!(ended == *code && screen.contains(said), "{words:?}: {ended}: {screen}");
        let is_bar = said.starts_with("importing");
        assert_eq!(screen.contains("░") || screen.contains("█"), is_bar, "{screen}");
        assert_eq!(screen.contains("/2"), is_bar, "{screen}");
        let (_, out, err) = run(folder.path(), &[&words[..], &["--server", &url]].concat());
        assert!(!out.contains(said) && !err.contains(said), "{out}{err}");
    }
    assert_eq!(server.stop(), Some(0));
}
