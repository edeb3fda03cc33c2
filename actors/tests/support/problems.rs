//! `docs/problems.md` as a table: what each problem code is told with.
//!
//! Owns: reading the rows. Must never: know a code. Next: `../cli/problems.rs`, which compares the page with the
//! program.
#![allow(dead_code, reason = "each test program uses a part of it")]

const PAGE: &str = include_str!("../../../docs/problems.md");

/// A row: code, statuses, exit codes, when it comes, what to do.
pub type Row = [String; 5];

/// All rows in order.
pub fn rows() -> Vec<Row> {
    let lines = PAGE.lines().filter(|line| line.starts_with("| `"));
    let cells = lines.map(|line| {
        let line = line.trim_start_matches("| ").trim_end_matches(" |");
        line.split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    });
    let rows = cells.map(|cells| <Row>::try_from(cells).unwrap_or_else(|cells| panic!("no five cells: {cells:?}")));
    rows.map(|[code, rest @ ..]| {
        let [http, exit, when, next] = rest;
        [code.trim_matches('`').to_owned(), http, exit, when, next]
    })
    .collect()
}

/// Whether a cell names a number.
pub fn names(cell: &str, number: u32) -> bool {
    cell == "any" || cell.split(", ").any(|one| one == number.to_string())
}

/// Fails if a code has no row, or its row does not have this number in the cell.
#[track_caller]
pub fn expect(code: &str, cell: usize, number: u32) {
    let rows = rows();
    let Some(row) = rows.iter().find(|row| row[0] == code) else {
        panic!("docs/problems.md has no row for {code}");
    };
    assert!(
        names(&row[cell], number),
        "docs/problems.md does not have {number} in {row:?}"
    );
}

/// Which cell of a row has the statuses.
pub const HTTP: usize = 1;
/// Which cell of a row has the exit codes.
pub const EXIT: usize = 2;
