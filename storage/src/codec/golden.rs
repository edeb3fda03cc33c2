//! The golden bytes: what the first format wrote stays readable and stays what is written.
//!
//! Owns: the comparison with `storage/golden/v1.hex` and `v2.hex`. A new format adds a file and keeps these.
//! Next: `samples.rs`.

use super::*;
use super::{decode_scope, encode_scope, samples};
use crate::keys::{key_bytes, scope_key};
use fencepost_core::row::CellRow;
use fencepost_core::schedule::CursorRow;
use std::fmt::Write as _;

const GOLDEN: &str = include_str!("../../golden/v1.hex");
const GOLDEN_2: &str = include_str!("../../golden/v2.hex");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

/// `kind key value`, a line each.
fn lines() -> Vec<String> {
    let mut lines: Vec<String> = samples::rows()
        .iter()
        .map(|row| {
            let mut value = Vec::new();
            encode_row(row, &mut value);
            let kind = crate::keys::Kind::of_row(&row.key());
            format!("{kind:?} {} {}", hex(&key_bytes(&row.key())), hex(&value))
        })
        .collect();
    let scope = samples::scope();
    let (key, value) = (scope_key(scope.scope), encode_scope(&scope));
    lines.push(format!("Scope {} {}", hex(&key), hex(&value)));
    lines
}

#[test]
fn what_is_written_is_what_was_always_written() {
    let written = lines();
    let golden: Vec<&str> = GOLDEN.lines().collect();
    assert_eq!(
        golden.len(),
        written.len(),
        "lines as they would be now:\n{}",
        written.join("\n")
    );
    for (golden, written) in golden.iter().zip(&written) {
        assert_eq!(golden, written);
    }
}

#[test]
fn the_second_format_of_a_row_is_written_where_the_first_has_no_place() {
    let row = Row::Job(Box::new(samples::keeping_job()));
    let (key, mut value) = (key_bytes(&row.key()), Vec::new());
    encode_row(&row, &mut value);
    let cell = match samples::rows().swap_remove(0) {
        Row::Cell(cell) => Row::Cell(CellRow {
            level: fencepost_core::level::Level(2),
            ..cell
        }),
        other => other,
    };
    let (cell_key, mut cell_value) = (key_bytes(&cell.key()), Vec::new());
    encode_row(&cell, &mut cell_value);
    let line = |kind: &str, key, value| format!("{kind} {} {}\n", hex(key), hex(value));
    let written = line("Job", &key, &value) + &line("Cell", &cell_key, &cell_value);
    assert!(GOLDEN_2.starts_with(&written));
    assert_eq!(decode_row(&cell_key, &cell_value), Ok(cell));
    assert_eq!(decode_row(&key, &value), Ok(row));
    let mut other = samples::keeping_job();
    other.key_kept = None;
    let row = Row::Job(Box::new(other));
    let mut first = Vec::new();
    encode_row(&row, &mut first);
    assert_eq!((first[0], value[0]), (1, 2));
    assert!(first.len() < value.len(), "the usual costs nothing");
}

#[test]
fn the_second_format_of_a_cursor_is_written_where_an_edit_dropped_what_has_not_come() {
    let cursor = samples::dropping_cursor();
    let row = Row::Cursor(Box::new(cursor.clone()));
    let (key, mut value) = (key_bytes(&row.key()), Vec::new());
    encode_row(&row, &mut value);
    let line = format!("Cursor {} {}", hex(&key), hex(&value));
    assert_eq!(GOLDEN_2.lines().nth(2), Some(line.as_str()));
    assert_eq!(decode_row(&key, &value), Ok(row));
    let mut first = Vec::new();
    let dropped = Vec::new();
    encode_row(&Row::Cursor(Box::new(CursorRow { dropped, ..cursor })), &mut first);
    assert_eq!((first[0], value[0]), (1, 2));
    assert_eq!(
        first[1..],
        value[1..first.len()],
        "the second is the first and what is behind it"
    );
    // The second format with nothing behind the first is none.
    first[0] = 2;
    assert_eq!(decode_row(&key, &first), Err(RowError::Short));
    first.push(0);
    assert_eq!(decode_row(&key, &first), Err(RowError::Illegal("dropped occurrences")));
}

/// The tests above name the lines of the second format one by one: none is left that nothing is compared with.
#[test]
fn every_line_of_the_second_format_is_compared() {
    let kinds: Vec<&str> = GOLDEN_2.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(kinds, ["Job", "Cell", "Cursor"]);
}

#[test]
fn what_was_written_is_read_as_it_was_meant() {
    let mut rows = samples::rows().into_iter();
    for line in GOLDEN.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let (key, value) = (unhex(parts[1]), unhex(parts[2]));
        if parts[0] == "Scope" {
            assert_eq!(decode_scope(&key, &value), Ok(samples::scope()));
        } else {
            assert_eq!(decode_row(&key, &value), Ok(rows.next().unwrap()));
        }
    }
    assert!(rows.next().is_none());
}

#[test]
fn every_kind_of_row_has_golden_bytes() {
    let kinds: Vec<&str> = GOLDEN.lines().filter_map(|line| line.split(' ').next()).collect();
    for kind in crate::keys::KINDS {
        let is_there = kinds.contains(&format!("{kind:?}").as_str());
        // Chain rows are marks: `fjall_store/mark.rs` holds their golden bytes.
        assert!(
            is_there || kind == crate::keys::Kind::Chain,
            "no golden bytes of {kind:?}"
        );
    }
}
