//! `docs/config.md` is made from the table of settings; `BLESS=1` rewrites it.

use fencepost::config::{Kind, Preset, SETTINGS, Setting};
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "# Settings of a server

Made from the table in the program (`BLESS=1 cargo test -p fencepost --test cli`); a test fails when the
two differ. How to use them: [the guide](guides/config.md). A flag wins over a variable, a variable over the
file, the file over the default. Lists are separated by commas in flags and variables.

| in the file | flag | variable | value | default | what it is |
|---|---|---|---|---|---|
";

fn row(setting: &Setting) -> String {
    let flag = match (setting.flag, setting.kind) {
        (None, _) => "none".to_owned(),
        (Some((flag, _)), Kind::Switch) => format!("`--{flag}`"),
        (Some((flag, value)), _) => format!("`--{flag} {value}`"),
    };
    let path = match setting.kind {
        Kind::Secret => format!("none (`{}`)", setting.path),
        _ => format!("`{}`", setting.path),
    };
    let preset = match setting.preset {
        Preset::Unset(what) => what.to_owned(),
        Preset::Text(text) => format!("`{text}`"),
        Preset::Number(number) => number.to_string(),
        Preset::Switch(on) => on.to_string(),
    };
    let (env, what) = (setting.env, setting.kind.what());
    format!("| {path} | {flag} | `{env}` | {what} | {preset} | {} |", setting.about)
}

#[test]
fn the_page_of_settings_is_the_table() {
    let mut page = HEAD.to_owned();
    for setting in SETTINGS {
        writeln!(page, "{}", row(setting)).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/config.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let have = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == have, "docs/config.md differs: run it once with BLESS=1");
}

#[test]
fn no_two_settings_share_a_path_a_flag_or_a_variable() {
    let texts = |of: fn(&Setting) -> Option<&'static str>| {
        let mut all: Vec<_> = SETTINGS.iter().filter_map(|setting| of(setting)).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        (all.len(), count)
    };
    for of in [
        (|setting| Some(setting.path)) as fn(&Setting) -> Option<&'static str>,
        |setting| Some(setting.env),
        |setting| setting.flag.map(|(flag, _)| flag),
    ] {
        let (different, count) = texts(of);
        assert_eq!(different, count);
    }
}
