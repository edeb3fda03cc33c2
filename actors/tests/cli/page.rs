//! `docs/cli.md` is made from the grammar and the table of exit codes; `BLESS=1` rewrites it.

use fencepost::cli::variables::{CLIENT_VARIABLES, JOB_VARIABLES};
use fencepost::problem::EXITS;
use fencepost::process::exit::EXITS as SERVER_EXITS;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "# The command line

Made from the program itself (`BLESS=1 cargo test -p fencepost --test cli`); a test fails when the two
differ. Data goes to standard output, everything else to standard error. On a terminal lists are tables;
in a pipe they are tab-separated lines without a head (`schedule preview` is a table in both). `-o json` and
`-o jsonl` are the API's own JSON, byte for byte, with times in UTC; errors are then one problem document on standard error.

A command finds the server at `http://127.0.0.1:4480` (`--server`, `FENCEPOST_SERVER`) and the token in
`./fencepost-data/token` (`--token-file`, `FENCEPOST_TOKEN_FILE`), a file that its owner alone can read; the token is
never an argument. `FENCEPOST_TOKEN` holds the token itself and wins over the file; for a server it is
`FENCEPOST_API_TOKEN` that says which token clients must show.

Two zones, never mixed up: `--tz` of commands that make or change schedules (`schedule create`, `schedule edit`,
`import crontab`) and of `schedule preview` is the zone of the rule, UTC unless it is named. `--tz` of all other commands,
and `FENCEPOST_TZ`, is the zone that times are shown in, and is stored nowhere.

What went wrong is told in two lines, `error: … [code, field]` and `hint: …`, also by a server that does not start; programs
decide on the code, which stays: [all codes](problems.md). A command line that is wrong has the code `usage`, and its
usage behind the two lines.

## Variables

What the command line reads from its environment; a server's settings have [variables of their own](config.md).
A variable that begins with `FENCEPOST_` and is none of them is told on standard error and does nothing.

| variable | meaning |
|---|---|
";

const EXIT_HEAD: &str = "
## Exit codes

| code | meaning |
|---|---|
";

fn render() -> String {
    let mut page = HEAD.to_owned();
    for (name, meaning) in CLIENT_VARIABLES {
        writeln!(page, "| `{name}` | {meaning} |").unwrap();
    }
    page.push_str("\nThe program of a `command` target finds these:\n\n| variable | meaning |\n|---|---|\n");
    for (name, meaning) in JOB_VARIABLES {
        writeln!(page, "| `{name}` | {meaning} |").unwrap();
    }
    page.push_str(EXIT_HEAD);
    for (exit, meaning) in EXITS {
        writeln!(page, "| {} | {meaning} |", *exit as u8).unwrap();
    }
    page.push_str(
        "\n9 and 10 are reserved. `serve` and `dev` end with 2 where a flag is wrong or the file of settings cannot be read, \
         with 8\nwhere a setting in the file or a variable is wrong, with 1 where the system starts no process or thread at \
         all, else with\ncodes of their own:\n\n| code | meaning |\n|---|---|\n",
    );
    for (code, meaning) in SERVER_EXITS {
        writeln!(page, "| {code} | {meaning} |").unwrap();
    }
    page.push_str(
        "\nAs the first process of a container the program passes on the code of the server that it started, or 128 and \
         the\nnumber of the signal that ended it (137: killed, for lack of memory, say).\n",
    );
    let mut grammar = fencepost::cli::grammar();
    grammar.build();
    for command in grammar.get_subcommands().filter(|command| command.get_name() != "help") {
        describe(command, &mut page);
    }
    page
}

fn describe(command: &clap::Command, page: &mut String) {
    let groups: Vec<_> = command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help")
        .collect();
    if !groups.is_empty() {
        groups.into_iter().for_each(|inner| describe(inner, page));
        return;
    }
    let mut shown = command
        .clone()
        .term_width(100)
        .mut_args(|arg| arg.hide_env_values(true));
    let help = shown.render_long_help().to_string();
    let title = shown.get_bin_name().unwrap_or_default().to_owned();
    writeln!(page, "\n## {title}\n\n```text").unwrap();
    for line in help.lines() {
        writeln!(page, "{}", line.trim_end()).unwrap();
    }
    page.push_str("```\n");
}

#[test]
fn the_page_of_the_command_line_is_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let page = render();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let have = std::fs::read_to_string(&path).unwrap_or_default();
    let same = page.lines().zip(have.lines()).take_while(|(a, b)| a == b).count();
    assert!(
        page == have,
        "docs/cli.md differs from line {}: run it once with BLESS=1",
        same + 1
    );
}

/// Numbers that stand behind `= ` at the end of lines like this one.
fn numbers(source: &str, begin: &str) -> BTreeSet<u8> {
    let number = |line: &str| line.rsplit_once("= ")?.1.trim_end_matches([';', ',']).parse().ok();
    let lines = source.lines().map(str::trim).filter(|line| line.starts_with(begin));
    lines.filter_map(number).collect()
}

#[test]
fn every_exit_code_that_the_program_names_is_in_the_tables() {
    let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let told: BTreeSet<_> = SERVER_EXITS.iter().map(|(code, _)| *code).collect();
    let named = numbers(&read("src/process/exit.rs"), "pub const");
    assert!(named.len() > 5 && named == told, "{named:?} {told:?}");
    let problems = read("src/problem.rs");
    let (_, rest) = problems.split_once("pub enum Exit {").unwrap();
    let named = numbers(rest.split_once("\n}").unwrap().0, "");
    let told: BTreeSet<_> = EXITS.iter().map(|(exit, _)| *exit as u8).collect();
    assert!(named.len() > 9 && named == told, "{named:?} {told:?}");
}

#[test]
fn every_command_has_an_example_that_the_grammar_accepts() {
    let page = render();
    let mut examples = 0;
    for line in page
        .lines()
        .map(str::trim)
        .filter(|line| line.contains("fencepost ") && !line.starts_with("Usage"))
    {
        let Some(at) = line.find("fencepost ") else { continue };
        if !(line.starts_with("fencepost ") || line.contains("| fencepost ")) {
            continue;
        }
        let command = line[at..].split(" > ").next().unwrap();
        let words = split_words(command);
        let parsed = fencepost::cli::grammar().try_get_matches_from(&words);
        assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
        examples += 1;
    }
    assert!(examples >= 20, "only {examples} examples");
}

/// Words of a shell line with single quotes.
fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, begun) = (!quoted, true),
            ' ' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            other => {
                word.push(other);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}
