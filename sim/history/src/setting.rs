//! The circumstances of a run: what the checkers must know beside what was seen.
//!
//! Owns: these facts. Next: `checkers/mod.rs`.

/// The circumstances of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting {
    /// When it began by true time, in microseconds since the Unix epoch; what was seen is counted from there.
    pub starts_at: i64,
    /// How far a clock may be from the truth, with a little for the way, in microseconds.
    pub lies_max: i64,
    /// Clocks lie: true time says nothing about due times.
    pub clocks_lie: bool,
    /// The store may be slow, sick or silent about outcomes at any time.
    pub store_is_unsure: bool,
    /// What a client sends may arrive long after it was sent.
    pub words_are_late: bool,
}
