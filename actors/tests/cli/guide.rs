//! `docs/guides/import.md` does what it says: its crontab, its commands, what they print.

use crate::server::Server;
use std::path::Path;
use std::process::{Command, Stdio};

/// Blocks of a page by their tag.
fn blocks<'a>(page: &'a str, tag: &str) -> Vec<&'a str> {
    let open = format!("```{tag}\n");
    let parts = page.split(open.as_str()).skip(1);
    parts.map(|part| part.split("```").next().unwrap()).collect()
}

/// Whether a line is as the page shows it; `…` stands for anything.
fn fits(shown: &str, line: &str) -> bool {
    let mut rest = line;
    for (at, part) in shown.split('…').enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(found) if at > 0 => rest = &rest[found + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || shown.ends_with('…')
}

/// Whether the lines are as shown; a lone `…` stands for any lines.
fn all_fit(shown: &[&str], lines: &[&str]) -> bool {
    match (shown.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => (0..=lines.len()).any(|skipped| all_fit(rest, &lines[skipped..])),
        (Some((first, shown)), Some((line, lines))) => fits(first, line) && all_fit(shown, lines),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn shell(folder: &Path, url: &str, command: &str) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_fencepost")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .env("FENCEPOST_SERVER", url)
        .env_remove("FENCEPOST_TOKEN")
        .env_remove("FENCEPOST_TZ")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_guide_to_import_does_what_it_says() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/import.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), blocks(&page, "crontab")[0]).unwrap();
    let server = Server::start(folder.path(), &["--allow-commands"]);
    let mut commands = 0;
    for block in blocks(&page, "console") {
        for part in block.split("$ ").skip(1).filter(|part| part.starts_with("fencepost ")) {
            // A `$ ` begins a command only at the start of a line.
            let (command, shown) = part.split_once('\n').unwrap();
            let mut shown: Vec<_> = shown.lines().collect();
            let exit = shown
                .last()
                .and_then(|line| line.strip_prefix("[exit ")?.strip_suffix(']')?.parse::<i32>().ok());
            if exit.is_some() {
                shown.pop();
            }
            let (code, out) = shell(folder.path(), &server.url, command);
            assert_eq!(code, exit.unwrap_or(0), "{command}\n{out}");
            let lines: Vec<_> = out.lines().collect();
            assert!(
                all_fit(&shown, &lines),
                "{command} printed\n{out}\nwhere the guide says\n{}",
                shown.join("\n")
            );
            commands += 1;
        }
    }
    assert_eq!(commands, 7);
    assert_eq!(server.stop(), 0);
}

#[test]
fn what_differs_is_found() {
    assert!(fits("a…c", "abc") && fits("…", "") && fits("a", "a") && fits("…Z", "1Z"));
    assert!(!fits("a…c", "abd") && !fits("a", "ab") && !fits("b…", "ab"));
    assert!(all_fit(&["…", "b", "…"], &["a", "b", "c"]) && !all_fit(&["…", "b"], &["b", "c"]));
}
