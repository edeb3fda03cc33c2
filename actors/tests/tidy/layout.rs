//! Where things stand, and that every file says what it is.
//!
//! Owns: the names at the top, folders that hold a README only, file headers, places of unsafe code.
//! Must never: check what code does. Next: docs/ARCHITECTURE.md, the code map.

use crate::source::{SourceFile, Tree};
use crate::{Violation, sample};

/// Everything that may stand at the top, `true` where it must.
const TOP: &[(&str, bool)] = &[
    (".cargo", true),
    (".ci", true),
    (".git", false),
    (".gitattributes", false),
    (".gitignore", true),
    ("CHANGELOG.md", true),
    ("CONTRIBUTING.md", true),
    ("Cargo.lock", true),
    ("Cargo.toml", true),
    ("LICENSE", true),
    ("Makefile", true),
    ("README.md", true),
    ("SECURITY.md", true),
    ("actors", true),
    ("clippy.toml", true),
    ("deploy", false),
    ("docs", true),
    ("fencepost-data", false),
    ("fuzz", true),
    ("rustfmt.toml", true),
    ("scenarios", true),
    ("scripts", true),
    ("sim", true),
    ("storage", true),
    ("target", false),
];

/// Folders for later parts: a README says what will come, nothing pretends to be there.
const README_ONLY: &[&str] = &["fuzz"];

/// Files that may allow unsafe code, with the reason.
const UNSAFE_PLACES: &[(&str, &str)] = &[(
    "storage/tests/power_loss/interposer.rs",
    "stands between the store and the kernel's sync calls, to know what a power loss would keep",
)];

pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = check_top(&tree.top);
    found.extend(check_readme_only(&tree.files));
    found.extend(check_unsafe(&tree.files));
    found
}

fn check_top(top: &[String]) -> Vec<Violation> {
    let unknown = top.iter().filter(|name| !TOP.iter().any(|(known, _)| known == name));
    let missing = TOP
        .iter()
        .filter(|(name, must)| *must && !top.iter().any(|t| t == name));
    unknown
        .map(|name| Violation::new(name, 1, "does not belong at the top (see layout::TOP)"))
        .chain(missing.map(|(name, _)| Violation::new(name, 1, "is missing at the top")))
        .collect()
}

fn check_readme_only(files: &[SourceFile]) -> Vec<Violation> {
    let in_folder = |path: &str| {
        README_ONLY
            .iter()
            .any(|f| path.strip_prefix(f).is_some_and(|rest| rest.starts_with('/')))
    };
    files
        .iter()
        .filter(|f| in_folder(&f.path) && !f.path.ends_with("/README.md"))
        .map(|f| Violation::new(&f.path, 1, "this folder holds a README until its part is built"))
        .collect()
}

fn check_unsafe(files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|f| !UNSAFE_PLACES.iter().any(|(path, _)| *path == f.path))
    {
        for (index, line) in file.code.lines().enumerate() {
            if line.contains("allow(unsafe_code") || line.contains("expect(unsafe_code") {
                found.push(Violation::new(&file.path, index + 1, "unsafe code has named places"));
            }
        }
    }
    found
}

/// Every Rust file opens with a `//!` header of at least one full sentence.
pub fn check_headers(files: &[SourceFile]) -> Vec<Violation> {
    files
        .iter()
        .filter(|f| f.is_rust() && !opens_with_header(&f.text))
        .map(|f| Violation::new(&f.path, 1, "opens without a `//!` header"))
        .collect()
}

fn opens_with_header(text: &str) -> bool {
    let first = text.lines().find(|line| !line.starts_with("#!/"));
    first
        .and_then(|line| line.strip_prefix("//!"))
        .is_some_and(|rest| rest.trim().len() >= 10)
}

#[test]
fn a_stray_or_missing_top_name_is_found() {
    let mut top: Vec<String> = TOP.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(check_top(&top), []);
    top.retain(|name| name != "LICENSE");
    top.push("notes.txt".to_owned());
    let found: Vec<String> = check_top(&top).into_iter().map(|v| v.path).collect();
    assert_eq!(found, ["notes.txt", "LICENSE"]);
}

#[test]
fn stub_code_in_a_later_folder_is_found() {
    assert_eq!(check_readme_only(&sample("fuzz/src/lib.rs", "")).len(), 1);
    assert_eq!(check_readme_only(&sample("fuzz/README.md", "")).len(), 0);
}

#[test]
fn unsafe_outside_its_places_is_found() {
    let text = "//! A header here.\n#![allow(unsafe_code)]\n";
    assert_eq!(check_unsafe(&sample("storage/src/x.rs", text)).len(), 1);
}

#[test]
fn a_file_without_header_is_found() {
    assert_eq!(check_headers(&sample("sim/src/x.rs", "fn f() {}\n")).len(), 1);
    assert_eq!(check_headers(&sample("sim/src/x.rs", "//!\nfn f() {}\n")).len(), 1);
    assert_eq!(
        check_headers(&sample("sim/src/x.rs", "//! What this file owns.\n")).len(),
        0
    );
}
