//! The tidy test: what no compiler checks about this repository.
//!
//! Owns: layout, package arrows, sizes, words, names, locks, links and lists that must agree. Must
//! never: be waived by a comment in the code it checks; each rule lists its exemptions, with the
//! reason, in its own file. Each rule is itself shown a bad sample, so that it can fail.
//! Next: `source` reads the tree, the other modules hold one kind of rule each.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod arrows;
mod cases;
mod controls;
mod layout;
mod limits;
mod links;
mod locks;
mod names;
mod sizes;
mod source;
mod words;

use source::{SourceFile, Tree};

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    line: usize,
    what: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

/// Fails with one line per violation, each clickable.
fn assert_clean(rule: &str, found: &[Violation]) {
    let list: String = found
        .iter()
        .map(|v| format!("\n  {}:{}: {}", v.path, v.line, v.what))
        .collect();
    assert!(found.is_empty(), "{} broken {rule} rule(s):{list}", found.len());
}

/// Builds a one-file tree for a rule's bad sample.
fn sample(path: &str, text: &str) -> Vec<SourceFile> {
    vec![SourceFile::new(path, text)]
}

#[test]
fn the_tree_is_where_the_design_says() {
    let tree = Tree::load();
    assert!(tree.files.len() > 10, "the tidy test must see the repository");
    assert_clean("layout", &layout::check(&tree));
    assert_clean("header", &layout::check_headers(&tree.files));
}

#[test]
fn package_arrows_point_one_way() {
    let tree = Tree::load();
    assert_clean("arrow", &arrows::check_manifests(&tree.files));
    assert_clean("arrow", &arrows::check_core(&tree.files));
}

#[test]
fn production_tree_holds_nothing_of_the_simulator() {
    assert_clean("production tree", &arrows::check_production_tree());
}

#[test]
fn files_and_functions_stay_small() {
    assert_clean("size", &sizes::check(&Tree::load().files));
}

#[test]
fn every_word_means_one_thing() {
    assert_clean("word", &words::check(&Tree::load().files));
    assert_clean("glossary", &words::check_glossary(&Tree::load().files));
}

#[test]
fn names_stay_in_their_modules() {
    assert_clean("name", &names::check(&Tree::load().files));
}

#[test]
fn the_lint_list_is_whole() {
    assert_clean("lint", &names::check_lint_list(&Tree::load().files));
}

#[test]
fn both_worlds_build_the_same_versions() {
    assert_clean("lock", &locks::check(&Tree::load().files));
    assert_clean("lint", &locks::check_lints(&Tree::load().files));
}

#[test]
fn links_in_documents_resolve() {
    assert_clean("link", &links::check(&Tree::load()));
    assert_clean("decision", &links::check_decisions(&Tree::load().files));
}

#[test]
fn the_page_of_limits_is_the_module() {
    assert_clean("limits page", &limits::check(&Tree::load()));
}

#[test]
fn every_known_case_has_a_test_or_a_reason() {
    assert_clean("case", &cases::check(&Tree::load().files));
}

#[test]
fn every_planted_fault_has_its_control() {
    let files = Tree::load().files;
    assert_clean("control", &controls::check(&files));
    assert_clean("profile", &controls::check_profiles(&files));
}
