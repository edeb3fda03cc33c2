//! What holds for every message between nodes: its bytes stay as they are, and no others are read as it.
//!
//! Owns: the two checks. Next: `cluster_messages.rs`, `work_messages.rs`.

/// Messages as bytes, each with the name of its kind.
pub type Written = Vec<(&'static str, Vec<u8>)>;

/// They are written as they always were.
pub fn are_golden(golden: &str, written: &Written) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines: Vec<String> = written
        .iter()
        .map(|(what, bytes)| format!("{what} {}", hex(bytes)))
        .collect();
    let now = lines.join("\n");
    assert_eq!(
        golden.lines().collect::<Vec<_>>(),
        lines,
        "as they would be now:\n{now}"
    );
}

/// Cut off, longer or of another version they are refused; `again` reads and writes one.
pub fn are_strict(written: &Written, again: impl Fn(&str, &[u8]) -> Option<Vec<u8>>) {
    for (what, bytes) in written {
        for end in 0..bytes.len() {
            assert!(again(what, &bytes[..end]).is_none(), "{what} cut off at {end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(again(what, &longer).is_none(), "{what} with a byte too many");
        let mut newer = bytes.clone();
        // One that no build knows.
        newer[0] += 100;
        assert!(again(what, &newer).is_none(), "{what} of another version");
        // Any other byte is read as something or refused, and never panics.
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0xff;
            let _ = again(what, &other);
        }
    }
}
