//! Files and functions stay readable.
//!
//! Owns: the caps on lines, and the width of comments, which no formatter breaks; without waivers. Must never: count
//! lines of data files. Next: `source::code_of` for how braces in literals are kept out of the count.

use crate::source::SourceFile;
use crate::{Violation, sample};

const FUNCTION_LINES_MAX: usize = 70;
const CORE_FILE_LINES_MAX: usize = 400;
const FILE_LINES_MAX: usize = 600;
/// As in rustfmt.toml.
const COMMENT_WIDTH_MAX: usize = 120;

pub fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        let max = if file.path.starts_with("actors/core/") {
            CORE_FILE_LINES_MAX
        } else {
            FILE_LINES_MAX
        };
        let lines = file.text.lines().count();
        if lines > max {
            let what = format!("{lines} lines, {max} at most: split by concept");
            found.push(Violation::new(&file.path, 1, what));
        }
        for (line, text) in (1..).zip(file.text.lines()) {
            let width = text.chars().count();
            if text.trim_start().starts_with("//") && width > COMMENT_WIDTH_MAX {
                let what = format!("a comment of {width} characters, {COMMENT_WIDTH_MAX} at most");
                found.push(Violation::new(&file.path, line, what));
            }
        }
        for (line, name, length) in functions(&file.code) {
            if length > FUNCTION_LINES_MAX {
                let what = format!("`{name}` has {length} lines, {FUNCTION_LINES_MAX} at most");
                found.push(Violation::new(&file.path, line, what));
            }
        }
    }
    found
}

/// Line, name and number of lines between the first and the last of every function with a body.
fn functions(code: &str) -> Vec<(usize, String, usize)> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let inside_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let name: String = code[at + 3..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if inside_word || name.is_empty() {
            continue;
        }
        if let Some((open, close)) = body(bytes, at) {
            let line = |to: usize| bytes[..to].iter().filter(|&&b| b == b'\n').count() + 1;
            debug_assert!(open <= close);
            found.push((line(at), name, (line(close) - line(at)).saturating_sub(1)));
        }
    }
    found
}

/// The braces of the function that starts at `at`; none when a `;` ends it first.
fn body(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (mut parens, mut braces, mut open) = (0_i32, 0_i32, None);
    for (index, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => parens += 1,
            b')' | b']' => parens -= 1,
            b';' if open.is_none() && parens == 0 => return None,
            b'{' => {
                braces += 1;
                open = open.or(Some(index));
            }
            b'}' => {
                braces -= 1;
                if braces == 0 {
                    return Some((open?, index));
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn a_long_function_is_found() {
    let text = |lines: usize| format!("//! A header.\nfn long() {{\n{}}}\n", "    a();\n".repeat(lines));
    assert_eq!(check(&sample("actors/src/x.rs", &text(70))), []);
    let found = check(&sample("actors/src/x.rs", &text(71)));
    assert_eq!(found.len(), 1);
    assert!(found[0].what.contains("`long` has 71 lines"), "{found:?}");
}

#[test]
fn a_wide_comment_is_found_and_a_wide_literal_is_none() {
    let comment = |width: usize| format!("    /// {}\n", "é".repeat(width - 8));
    assert_eq!(check(&sample("storage/src/x.rs", &comment(120))), []);
    assert_eq!(check(&sample("storage/src/x.rs", &comment(121))).len(), 1);
    let literal = format!("const A: &str = \"{}\";\n", "/".repeat(200));
    assert_eq!(check(&sample("storage/src/x.rs", &literal)), []);
}

#[test]
fn braces_in_literals_do_not_hide_a_long_function() {
    let text = format!("fn long() {{\n    f(\"}}\");\n{}}}\n", "    a();\n".repeat(70));
    assert_eq!(check(&sample("actors/src/x.rs", &text)).len(), 1);
}

#[test]
fn a_long_file_is_found_and_the_core_is_stricter() {
    let text = "// a line\n".repeat(401);
    assert_eq!(check(&sample("actors/core/src/x.rs", &text)).len(), 1);
    assert_eq!(check(&sample("storage/src/x.rs", &text)).len(), 0);
    assert_eq!(check(&sample("storage/src/x.rs", &"// a line\n".repeat(601))).len(), 1);
}
