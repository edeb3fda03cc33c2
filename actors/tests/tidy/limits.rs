//! `docs/limits.md` is generated from the limits module.
//!
//! Owns: reading `actors/core/src/limits/` and rendering the page; `BLESS=1` rewrites it. Must
//! never: hold a number of its own. Next: `actors/core/src/limits/mod.rs`, the one list of bounds.

use std::collections::BTreeMap;
use std::fs;

use crate::Violation;
use crate::source::Tree;

const SOURCE: &str = "actors/core/src/limits/";
const PAGE: &str = "docs/limits.md";
const HEAD: &str = "# Limits

Every queue, page, batch, payload and retry has a bound, and all of them stand in one module. This
page is generated from it (`BLESS=1 cargo test -p fencepost --test tidy`); the tidy test fails when
the two differ.

| limit | value | what it bounds |
|---|---|---|
";

/// One public constant with its doc comment.
struct Limit {
    name: String,
    value: String,
    meaning: String,
}

/// Compares the page with the module, or rewrites it when asked to.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let page = render(&source(tree));
    if std::env::var_os("BLESS").is_some() {
        fs::write(tree.root.join(PAGE), &page).unwrap();
        return Vec::new();
    }
    let have = tree
        .files
        .iter()
        .find(|f| f.path == PAGE)
        .map_or("", |f| f.text.as_str());
    compare(&page, have)
}

/// The files of the module in order of their names, as one text.
fn source(tree: &Tree) -> String {
    let files: BTreeMap<&str, &str> = tree
        .files
        .iter()
        .filter(|f| f.path.starts_with(SOURCE))
        .map(|f| (f.path.as_str(), f.text.as_str()))
        .collect();
    files.into_values().collect::<Vec<_>>().join("\n")
}

fn compare(wanted: &str, have: &str) -> Vec<Violation> {
    if wanted == have {
        return Vec::new();
    }
    let same = wanted.lines().zip(have.lines()).take_while(|(a, b)| a == b).count();
    vec![Violation::new(
        PAGE,
        same + 1,
        "differs from the limits module: run it once with BLESS=1",
    )]
}

fn render(source: &str) -> String {
    let limits = parse(source);
    let mut page = HEAD.to_owned();
    for limit in &limits {
        page += &format!("| `{}` | {} | {} |\n", limit.name, limit.value, limit.meaning);
    }
    page += "\nChecked against each other when the program is compiled:\n\n";
    for check in asserts(source) {
        page += &format!("- `{check}`\n");
    }
    page
}

fn parse(source: &str) -> Vec<Limit> {
    let mut known = BTreeMap::new();
    let mut limits = Vec::new();
    let mut meaning = Vec::new();
    let joined = source.replace(" =\n    ", " = ");
    for line in joined.lines() {
        if let Some(text) = line.strip_prefix("///") {
            meaning.push(text.trim().to_owned());
        } else if let Some((name, expression)) = constant(line) {
            let number = evaluate(expression, &known);
            if let Some(number) = number {
                known.insert(name.to_owned(), number);
            }
            let value = number.map_or_else(|| format!("`{expression}`"), |n| human(name, n));
            limits.push(Limit {
                name: name.to_owned(),
                value,
                meaning: meaning.join(" "),
            });
            meaning.clear();
        } else {
            meaning.clear();
        }
    }
    limits
}

/// Name and expression of `pub const NAME: TYPE = EXPRESSION;`.
fn constant(line: &str) -> Option<(&str, &str)> {
    let (head, expression) = line.strip_prefix("pub const ")?.split_once(" = ")?;
    Some((head.split(':').next()?, expression.trim_end_matches(';')))
}

/// Numbers, other limits, `*` and `<<`: all that a limit is written with.
fn evaluate(expression: &str, known: &BTreeMap<String, u64>) -> Option<u64> {
    let product = |text: &str| {
        text.split('*').try_fold(1_u64, |sum, factor| {
            let plain = factor.trim().replace('_', "");
            let number = plain.parse().ok().or_else(|| known.get(factor.trim()).copied())?;
            sum.checked_mul(number)
        })
    };
    let mut parts = expression.split("<<").map(product);
    let first = parts.next()??;
    parts.try_fold(first, |number, shift| number.checked_shl(u32::try_from(shift?).ok()?))
}

/// The number, with a unit that its name states.
fn human(name: &str, number: u64) -> String {
    let unit = if name.contains("_BYTES") {
        scaled(number, &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")], "bytes")
    } else if name.ends_with("_MS") || name.contains("_MS_") {
        let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
        scaled(number, &units, "ms")
    } else if name.ends_with("_US") {
        scaled(number, &[(1_000, "ms")], "µs")
    } else {
        grouped(number)
    };
    unit.replace(" bytes", if number == 1 { " byte" } else { " bytes" })
}

fn scaled(number: u64, units: &[(u64, &str)], smallest: &str) -> String {
    let fits = units
        .iter()
        .find(|(size, _)| number > 0 && number.is_multiple_of(*size));
    match fits {
        Some((size, unit)) => format!("{} {unit}", grouped(number / size)),
        None => format!("{} {smallest}", grouped(number)),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The conditions of `const _: () = assert!(…);`, each on one line.
fn asserts(source: &str) -> Vec<String> {
    source
        .split("const _: () = assert!(")
        .skip(1)
        .filter_map(|rest| rest.split_once(");"))
        .map(|(condition, _)| condition.split_whitespace().collect::<Vec<_>>().join(" "))
        .map(|condition| condition.trim_end_matches(',').to_owned())
        .collect()
}

#[test]
fn a_page_that_lags_behind_is_found() {
    let source = "/// Bytes of a name.\npub const NAME_BYTES_MAX: usize = 2 << 10;\n\
                  /// A wait.\npub const WAIT_MS: u64 = 7 * 86_400_000;\n\
                  const _: () = assert!(\n    NAME_BYTES_MAX\n        < 4_000\n);\n";
    let page = render(source);
    assert!(
        page.contains("| `NAME_BYTES_MAX` | 2 KiB | Bytes of a name. |"),
        "{page}"
    );
    assert!(page.contains("| `WAIT_MS` | 7 d | A wait. |"), "{page}");
    assert!(page.contains("- `NAME_BYTES_MAX < 4_000`"), "{page}");
    assert_eq!(compare(&page, &page), []);
    assert_eq!(compare(&page, &page.replace("2 KiB", "3 KiB")).len(), 1);
}

#[test]
fn every_public_number_is_on_the_page() {
    let source = source(&Tree::load());
    let count = source.matches("pub const ").count();
    let limits = parse(&source);
    assert_eq!(limits.len(), count);
    assert!(
        limits.iter().all(|l| !l.meaning.is_empty()),
        "a limit has no doc comment"
    );
    assert!(count > 20);
}
