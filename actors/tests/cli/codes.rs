//! The problem codes that the sources name, found by where they stand.
//!
//! A code is what is handed over in the place of a parameter `code: &'static str`, what a `fn code` returns, what is
//! bound to a variable `code`, and what stands behind a field `code` or `codes`.
//!
//! Owns: finding them. Must never: hold a code. Next: `problems.rs`, the page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A code, with what is said of it where it stands.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub code: String,
    /// The argument before it: `RefusalKind::Invalid`, `404`, `Exit::Usage`.
    pub before: String,
    pub file: String,
}

/// A function or closure that is given a code.
#[derive(Debug)]
struct Maker {
    file: String,
    name: String,
    /// The type that it belongs to, where it is called by that.
    of: Option<String>,
    place: usize,
    is_method: bool,
    is_closure: bool,
}

/// A `fn code` there is the reason of a connection that is not taken, which is counted and logged.
const NO_PROBLEMS: &str = "actors/src/mesh/frame.rs";

/// Product sources: their path and text, without comments and tests.
pub fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["actors/src", "actors/core/src", "storage/src"] {
        walk(&root.join(folder), &mut files);
    }
    let read = |path: PathBuf| {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        (name, lines.collect::<Vec<_>>().join("\n"))
    };
    files.into_iter().map(read).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_test = name.ends_with("tests.rs") || ["tests", "conformance", "bench"].contains(&name);
        match (path.is_dir(), is_test) {
            (_, true) => {}
            (true, false) => walk(&path, files),
            (false, false) if name.ends_with(".rs") => files.push(path),
            (false, false) => {}
        }
    }
}

/// Every code of these sources.
pub fn find(sources: &[(String, String)]) -> Vec<Found> {
    let makers: Vec<Maker> = sources.iter().flat_map(|(file, text)| makers(file, text)).collect();
    let consts: BTreeMap<&str, &str> = sources.iter().flat_map(|(_, text)| consts(text)).collect();
    let mut found = Vec::new();
    for (file, text) in sources {
        let mut add = |before: &str, said: &str| {
            found.extend(codes_in(said, &consts).into_iter().map(|code| Found {
                code,
                before: before.trim().to_owned(),
                file: file.clone(),
            }));
        };
        for maker in makers.iter().filter(|maker| is_meant(maker, file, &makers)) {
            for args in calls(text, maker, *file == maker.file) {
                let before = maker.place.checked_sub(1).and_then(|at| args.get(at));
                if let Some(said) = args.get(maker.place) {
                    add(before.copied().unwrap_or_default(), said);
                }
            }
        }
        let returned = returned(text).filter(|_| file != NO_PROBLEMS);
        for said in returned.chain(bound(text)).chain(fields(text)) {
            add("", said);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// A file's own function hides others of its name.
fn is_meant(maker: &Maker, file: &str, makers: &[Maker]) -> bool {
    let is_own = maker.file == file;
    let own = |other: &&Maker| other.file == file && other.name == maker.name && other.of.is_none();
    let has_own = makers
        .iter()
        .filter(own)
        .any(|other| other.is_method == maker.is_method);
    match maker.of {
        Some(_) => true,
        None => is_own || (!maker.is_closure && !has_own),
    }
}

fn makers(file: &str, text: &str) -> Vec<Maker> {
    let mut found = Vec::new();
    let mut add = |name: &str, of: Option<String>, params: &[&str], is_closure: bool| {
        let is_method = params.first().is_some_and(|first| first.trim_end().ends_with("self"));
        let is_code = |param: &&str| match param.trim().split_once(':') {
            Some((name, kind)) => name == "code" && kind.trim() == "&'static str",
            None => is_closure && param.trim() == "code",
        };
        if let Some(place) = params.iter().position(is_code) {
            found.push(Maker {
                file: file.to_owned(),
                name: name.to_owned(),
                of: of.filter(|_| !is_method),
                place: place - usize::from(is_method),
                is_method,
                is_closure,
            });
        }
    };
    for (at, _) in text.match_indices("fn ") {
        let rest = &text[at + 3..];
        let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
        let is_inner = text[..at].lines().last().is_some_and(|line| line.starts_with("    "));
        let of = text[..at]
            .rfind("\nimpl")
            .filter(|_| is_inner)
            .map(|at| type_of(&text[at + 5..]));
        if let Some(params) = arguments(&rest[name.len()..]) {
            add(&name, of, &params, false);
        }
    }
    for (at, _) in text.match_indices("let ") {
        let Some((name, rest)) = text[at + 4..].split_once(" = |") else {
            continue;
        };
        if name.chars().all(is_word)
            && let Some((params, _)) = rest.split_once('|')
        {
            add(name, None, &params.split(',').collect::<Vec<_>>(), true);
        }
    }
    found
}

/// The type behind `impl`.
fn type_of(rest: &str) -> String {
    let head = rest.split('{').next().unwrap();
    let head = head.split(" for ").last().unwrap().trim();
    let head = head.rsplit_once("> ").map_or(head, |(_, name)| name);
    head.chars().take_while(|c| is_word(*c)).collect()
}

/// The arguments of every call of a maker.
fn calls<'a>(text: &'a str, maker: &Maker, is_own: bool) -> Vec<Vec<&'a str>> {
    let begin = format!("{}(", maker.name);
    let is_call = |at: usize| {
        let before = &text[..at];
        match (&maker.of, maker.is_method) {
            (_, true) => before.ends_with('.'),
            (Some(of), _) => before.ends_with(&format!("{of}::")) || (is_own && before.ends_with("Self::")),
            (None, _) => {
                !before.ends_with(|c: char| is_word(c) || c == '.') && !before.ends_with("fn ") && !is_of_type(before)
            }
        }
    };
    let places = text.match_indices(&begin).map(|(at, _)| at).filter(|at| is_call(*at));
    places
        .filter_map(|at| arguments(&text[at + maker.name.len()..]))
        .collect()
}

/// Whether a function of a type is named behind this.
fn is_of_type(before: &str) -> bool {
    let path = before.strip_suffix("::").unwrap_or_default();
    let last = path.rsplit(|c: char| !is_word(c)).next().unwrap_or_default();
    last.starts_with(|c: char| c.is_ascii_uppercase())
}

/// What stands between brackets at the head of the text, split by its commas.
fn arguments(text: &str) -> Option<Vec<&str>> {
    let (inner, commas) = bracketed(text)?;
    let mut parts = Vec::new();
    let mut from = 0;
    for comma in commas {
        parts.push(&inner[from..comma]);
        from = comma + 1;
    }
    parts.push(&inner[from..]);
    Some(parts)
}

/// The inside of the bracket at the head of the text, and where its own commas are.
fn bracketed(text: &str) -> Option<(&str, Vec<usize>)> {
    let (mut depth, mut commas) = (0_usize, Vec::new());
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth <= 1 => return (depth == 1).then(|| (&text[1..at], commas)),
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 1 => commas.push(at - 1),
            '"' => skip_text(&mut chars),
            // A character: the lifetime of a type has no second quote.
            '\'' if text[at + 1..].chars().nth(1) == Some('\'') => {
                chars.nth(1);
            }
            '\'' if text[at + 1..].starts_with('\\') => {
                chars.nth(2);
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn skip_text(chars: &mut std::str::CharIndices<'_>) {
    while let Some((_, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => return,
            _ => {}
        }
    }
}

/// The bodies of `fn code`.
fn returned(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("fn code(").filter_map(|(at, _)| {
        let open = text[at..].find('{')?;
        text[at..at + open].contains("&'static str").then_some(())?;
        bracketed(&text[at + open..]).map(|(body, _)| body)
    })
}

/// What is bound to a variable `code`, alone or among others.
fn bound(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("let ").filter_map(|(at, _)| {
        let (pattern, value) = text[at + 4..].split_once(" = ")?;
        let has_code = pattern.split(|c: char| !is_word(c)).any(|word| word == "code");
        (has_code && !pattern.contains(['{', ';', '"'])).then(|| statement(value))
    })
}

/// As far as the end of the statement.
fn statement(text: &str) -> &str {
    let mut from = 0;
    while let Some(at) = text[from..].find(['{', '(', ';']).map(|at| from + at) {
        match bracketed(&text[at..]) {
            _ if text[at..].starts_with(';') => return &text[..at],
            Some((inner, _)) => from = at + inner.len() + 2,
            None => from = at + 1,
        }
    }
    text
}

/// What stands behind a field.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    ["code: \"", "\"code\": \"", "codes: ["]
        .into_iter()
        .flat_map(move |field| {
            text.match_indices(field).filter_map(move |(at, _)| {
                let value = &text[at + field.len() - 1..];
                match field.ends_with('[') {
                    true => bracketed(value).map(|(inner, _)| inner),
                    false => value.get(..value[1..].find('"')? + 2),
                }
            })
        })
}

fn consts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("const ").filter_map(|(at, _)| {
        let (name, value) = text[at + 6..].split_once(": &str = \"")?;
        name.chars().all(is_word).then_some((name, value.split('"').next()?))
    })
}

/// The codes among the texts and constants of a piece of source.
fn codes_in(said: &str, consts: &BTreeMap<&str, &str>) -> Vec<String> {
    let texts = said.split('"').skip(1).step_by(2);
    let outside = said.split('"').step_by(2);
    let words = outside.flat_map(|part| part.split(|c: char| !is_word(c)));
    let named = words.filter_map(|word| consts.get(word).copied());
    let is_code = |text: &&str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    texts.chain(named).filter(is_code).map(str::to_owned).collect()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[test]
fn codes_are_found_wherever_they_stand() {
    let one = "use a::b;\n\nimpl Refusal {\n    fn new(kind: Kind, code: &'static str, detail: &str) -> Refusal {\n    }\n}\n\
               fn told(code: &'static str) {\n}\n\
               impl Fields {\n    fn refuse(&self, field: &str, code: &'static str) {}\n}\n\
               impl Bad {\n    fn code(&self) -> &'static str {\n        match self { A => \"of_a\", B => OF_B }\n    }\n}\n\
               const OF_B: &str = \"of_b\";\n";
    let two = "fn f() {\n    let refuse = |code, detail| Refusal::new(Kind::Odd, code, detail);\n\
               refuse(\"by_closure\", \"no_code\");\n    Other::told(\"no_code\");\n    module::told(match x { true => \"either\", false => \"or_this\" });\n\
               fields.refuse(\"no_code\", \"by_method\");\n    Refusal::new(Kind::Late, \"by_name\", format!(\"a, {b}\"));\n\
               let (code, hint) = match x {\n        A => (\"bound\", \"a; b\"),\n        B => (OF_B, \"c d\"),\n    };\n\
               json!({\"code\": \"in_json\"});\n    Kept { codes: [\"first\", \"second\"], name: \"no_code\" }\n}\n";
    let sources = [("one".to_owned(), one.to_owned()), ("two".to_owned(), two.to_owned())];
    let found = find(&sources);
    let codes: Vec<&str> = found.iter().map(|found| found.code.as_str()).collect();
    let wanted = [
        "bound",
        "by_closure",
        "by_method",
        "by_name",
        "either",
        "first",
        "in_json",
        "of_a",
        "of_b",
        "of_b",
        "or_this",
        "second",
    ];
    assert_eq!(codes, wanted);
    let before = |code: &str| found.iter().find(|found| found.code == code).unwrap().before.clone();
    assert_eq!(
        (before("by_name").as_str(), before("either").as_str()),
        ("Kind::Late", "")
    );
}
