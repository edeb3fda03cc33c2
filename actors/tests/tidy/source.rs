//! Reads the repository for the tidy rules.
//!
//! Owns: the walk over the tree and the view of Rust text without comments and literals. Must never:
//! know a rule. Next: `lex_rest` for the little that this reader knows of Rust's tokens.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are made by tools or by running the product.
const NOT_SOURCE: &[&str] = &[".git", "target", "fencepost-data", "node_modules"];
/// Endings of files that the rules read.
const READ: &[&str] = &["rs", "md", "toml", "lock", "sh", "txt", "yml", "yaml"];
/// Files without an ending that the rules read.
const READ_NAMES: &[&str] = &["Makefile", "run", "test", "bench"];

/// One text file of the repository.
pub struct SourceFile {
    /// Path from the repository's root, with forward slashes.
    pub path: String,
    /// The text as it stands.
    pub text: String,
    /// For Rust files: the text with comments and literals blanked, line for line. Else empty.
    pub code: String,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") {
            code_of(text)
        } else {
            String::new()
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// The repository as the rules see it.
pub struct Tree {
    pub root: PathBuf,
    pub files: Vec<SourceFile>,
    /// Names at the top, files and folders.
    pub top: Vec<String>,
}

impl Tree {
    pub fn load() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
        let mut files = Vec::new();
        walk(&root, &root, &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut top: Vec<String> = fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        top.sort();
        Self { root, files, top }
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !NOT_SOURCE.contains(&name.as_str()) {
            walk(root, &entry.path(), files);
        } else if kind.is_file() && is_read(&name) {
            let path = entry.path();
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            let relative = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            files.push(SourceFile::new(&relative, &text));
        }
    }
}

fn is_read(name: &str) -> bool {
    match name.rsplit_once('.') {
        Some((_, ending)) => READ.contains(&ending),
        None => READ_NAMES.contains(&name),
    }
}

/// Blanks comments, strings and characters, keeping every line and column.
pub fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = lex_rest(bytes, at).unwrap_or(at);
        if end == at {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        out.extend(bytes[at..end].iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that starts at `at` ends, if one starts there.
fn lex_rest(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        return Some(at + length);
    }
    if rest.starts_with(b"/*") {
        return Some(block_comment_end(bytes, at));
    }
    let after_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest[0] {
        b'"' => Some(string_end(bytes, at + 1)),
        b'r' if !after_name || bytes[at - 1] == b'b' => raw_string_end(bytes, at),
        b'\'' => char_end(bytes, at),
        _ => None,
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&b| b == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let found = bytes[open + 1..].windows(close.len()).position(|w| w == close);
    Some(found.map_or(bytes.len(), |p| open + 1 + p + close.len()))
}

/// A character, not a lifetime: `'x'`, `'\n'`, `'\u{1f}'`, or any one character before a quote.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes[at + 3..].iter().position(|&b| b == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    let text = std::str::from_utf8(&bytes[at + 1..bytes.len().min(at + 5)])
        .or_else(|e| std::str::from_utf8(&bytes[at + 1..at + 1 + e.valid_up_to()]))
        .ok()?;
    let first = text.chars().next()?;
    let close = at + 1 + first.len_utf8();
    (bytes.get(close) == Some(&b'\'')).then_some(close + 1)
}

/// Runs of letters, digits and underscores, with the byte where each starts.
pub fn idents(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

#[test]
fn comments_and_literals_are_blanked_in_place() {
    let text = "let a = \"x{\"; // {\nlet b = '{'; /* { /* { */ } */ let c: &'a str = r#\"{\"{\"#;";
    let code = code_of(text);
    assert_eq!(code.len(), text.len());
    assert_eq!(code.lines().count(), 2);
    assert!(!code.contains('{') && !code.contains('}'), "{code}");
    assert!(code.contains("let c: &'a str ="), "{code}");
}

#[test]
fn escapes_do_not_end_a_literal_early() {
    assert_eq!(code_of(r#"f("a\"b", '\'', '\\', b"\\")}"#).replace(' ', ""), "f(,,,b)}");
}
