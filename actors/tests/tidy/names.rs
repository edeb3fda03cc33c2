//! Names that only some modules may say, and what clippy cannot name.
//!
//! Owns: where `madsim` and `bincode` may stand, and the bans by text. Must never: repeat a ban that
//! `clippy.toml` can express. Next: `clippy.toml`, the larger half of the bans.

use crate::source::{SourceFile, idents};
use crate::{Violation, sample};

/// A name, the places where it may stand (path starts, or parts when they begin with `*`), the reason.
struct Home {
    name: &'static str,
    places: &'static [&'static str],
    reason: &'static str,
}

const HOMES: &[Home] = &[
    Home {
        name: "madsim::",
        places: &["sim/src/runtime", "sim/tests/"],
        reason: "only the simulator's runtime module touches the simulator's own interface",
    },
    Home {
        name: "bincode::",
        places: &["*/codec/", "*/codec.rs", "*/wire/", "*/wire.rs", "*/rows/"],
        reason: "only the codec and wire modules, and the row mirrors that derive it, know bincode",
    },
    Home {
        name: "fjall::",
        places: &[
            "storage/src/fjall",
            "storage/tests/",
            "actors/src/bench/",
            "actors/src/guard/",
        ],
        reason: "the engine stays behind the Store trait; the guard keeps its own ledger, the floor bench is bare",
    },
    Home {
        name: "tokio::fs",
        places: &[],
        reason: "does not exist in the simulator",
    },
    Home {
        name: "todo!",
        places: &[],
        reason: "finish it or leave it out",
    },
    Home {
        name: "unimplemented!",
        places: &[],
        reason: "finish it or leave it out",
    },
    Home {
        name: "#[ignore",
        places: &[],
        reason: "a test that does not run says nothing",
    },
];

/// Bans that must stay in `clippy.toml`.
const LINTS: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::sleep",
    "std::thread::spawn",
    "tokio::time::sleep",
    "actix::Actor::start",
    "actix::Actor::create",
    "actix::Supervisor",
    "actix::ResponseFuture",
    "actix::AsyncContext::run_later",
    "actix::AsyncContext::run_interval",
    "actix::Addr::do_send",
    "actix::Arbiter::new",
    "actix_rt::spawn",
    "getrandom::fill",
    "std::process::exit",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "axum::serve",
];

/// The tidy test names what it refuses.
const EXEMPT: &str = "actors/tests/tidy/";

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|f| f.is_rust() && !f.path.starts_with(EXEMPT)) {
        found.extend(check_homes(file));
        found.extend(check_select(file));
        found.extend(check_send_timeout(file));
    }
    found
}

fn check_homes(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for home in HOMES.iter().filter(|home| !is_home(home.places, &file.path)) {
        for (index, line) in file.code.lines().enumerate() {
            if says(line, home.name) {
                let what = format!("`{}` does not belong here: {}", home.name, home.reason);
                found.push(Violation::new(&file.path, index + 1, what));
            }
        }
    }
    found
}

fn is_home(places: &[&str], path: &str) -> bool {
    places.iter().any(|place| match place.strip_prefix('*') {
        Some(part) => path.contains(part),
        None => path.starts_with(place),
    })
}

/// True if the line says the name from its first letter on, not as the end of a longer name.
fn says(line: &str, name: &str) -> bool {
    line.match_indices(name)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
}

/// tokio seeds an unbiased `select!` from a counter of the process: runs would differ.
fn check_select(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, _) in file.code.match_indices("select!") {
        let rest = file.code[at + "select!".len()..].trim_start();
        let body = rest.trim_start_matches(['{', '(']).trim_start();
        if !body.starts_with("biased;") {
            let line = file.code[..at].lines().count().max(1);
            found.push(Violation::new(&file.path, line, "`select!` must start with `biased;`"));
        }
    }
    found
}

/// Actix's send time-outs panic under madsim; clippy cannot name their type.
fn check_send_timeout(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, _) in file.code.match_indices(".send(") {
        let open = at + ".send".len();
        let Some(close) = matching_paren(&file.code[open..]) else {
            continue;
        };
        if file.code[open + close + 1..].trim_start().starts_with(".timeout(") {
            let line = file.code[..at].lines().count().max(1);
            found.push(Violation::new(
                &file.path,
                line,
                "actix send time-outs panic under madsim",
            ));
        }
    }
    found
}

fn matching_paren(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

pub fn check_lint_list(files: &[SourceFile]) -> Vec<Violation> {
    let text = files
        .iter()
        .find(|f| f.path == "clippy.toml")
        .map_or("", |f| f.text.as_str());
    let mut found: Vec<Violation> = LINTS
        .iter()
        .filter(|path| !text.contains(&format!("path = \"{path}\"")))
        .map(|path| Violation::new("clippy.toml", 1, format!("lost its ban of `{path}`")))
        .collect();
    for file in files.iter().filter(|f| f.is_rust() && !f.path.starts_with(EXEMPT)) {
        found.extend(check_reasons(file));
    }
    found
}

/// Whoever lifts a ban says why: `allow(clippy::disallowed_…, reason = "…")`.
fn check_reasons(file: &SourceFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, _) in file.code.match_indices("clippy::disallowed_") {
        let rest = &file.code[at..];
        let attribute = &rest[..rest.find(']').unwrap_or(rest.len())];
        if !idents(attribute).any(|(_, word)| word == "reason") {
            let line = file.code[..at].lines().count().max(1);
            found.push(Violation::new(&file.path, line, "lifts a ban without a reason"));
        }
    }
    found
}

#[test]
fn names_outside_their_homes_are_found() {
    let text = "use madsim::runtime::Handle;\n#[cfg(madsim)]\nbincode::encode(x);\n// todo!()\ntodo!()\n";
    let found = check(&sample("actors/src/x.rs", text));
    assert_eq!(found.iter().map(|v| v.line).collect::<Vec<_>>(), [1, 3, 5]);
    let text = "let runtime = madsim::runtime::Runtime::new();\n";
    assert_eq!(check(&sample("sim/src/runtime/mod.rs", text)), []);
    assert_eq!(
        check(&sample("storage/src/codec/frame.rs", "bincode::encode(x);\n")),
        []
    );
}

#[test]
fn an_unbiased_select_is_found() {
    assert_eq!(
        check(&sample("sim/src/x.rs", "tokio::select! {\n    a = b => {}\n}\n")).len(),
        1
    );
    assert_eq!(
        check(&sample("sim/src/x.rs", "tokio::select! {\n    biased;\n}\n")).len(),
        0
    );
}

#[test]
fn a_send_with_timeout_is_found() {
    let text = "let a = addr\n    .send(f(1))\n    .timeout(d)\n    .await;\n";
    assert_eq!(check(&sample("actors/src/x.rs", text)).len(), 1);
    assert_eq!(check(&sample("actors/src/x.rs", "addr.send(f(1)).await;\n")).len(), 0);
}

#[test]
fn a_lost_ban_and_a_silent_exception_are_found() {
    assert_eq!(check_lint_list(&sample("clippy.toml", "")).len(), LINTS.len());
    let text = "#[allow(clippy::disallowed_methods)]\nfn f() {}\n";
    assert_eq!(check_reasons(&sample("actors/src/x.rs", text).remove(0)).len(), 1);
    let text = "#[allow(\n    clippy::disallowed_methods,\n    reason = \"x\"\n)]\nfn f() {}\n";
    assert_eq!(check_reasons(&sample("actors/src/x.rs", text).remove(0)).len(), 0);
}
