//! Refusals: what a caller is told, the same in the API and on the command line.
//!
//! Owns: the stable codes. Must never: carry Debug output. Next: the HTTP and CLI mapping in
//! `fencepost`.

use std::fmt;

/// What kind of answer a refusal is; decides the HTTP status and the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request itself is wrong (400; exit 2, or 8 for expressions and files).
    Invalid,
    /// Nothing of that name (404; exit 3).
    NotFound,
    /// Not allowed (401, 403; exit 4).
    Forbidden,
    /// It clashes with what is there (409, 412; exit 5).
    Conflict,
    /// If-Match does not fit (412; exit 5).
    Precondition,
    /// The same idempotency key with another body (422; exit 5).
    KeyReused,
    /// Too large (413).
    TooLarge,
    /// A limit is reached; try later (429).
    Limited,
    /// Not now (503; exit 6).
    Unavailable,
    /// The disk is full (507).
    StorageFull,
}

impl RefusalKind {
    /// Every kind, in the order that nodes number them by when they send one: a new kind comes last.
    pub const ALL: [RefusalKind; 10] = [
        RefusalKind::Invalid,
        RefusalKind::NotFound,
        RefusalKind::Forbidden,
        RefusalKind::Conflict,
        RefusalKind::Precondition,
        RefusalKind::KeyReused,
        RefusalKind::TooLarge,
        RefusalKind::Limited,
        RefusalKind::Unavailable,
        RefusalKind::StorageFull,
    ];
}

// The list holds every kind, each at its own place; a kind after the last one fails to compile here.
const _: () = {
    let mut rest: &[RefusalKind] = &RefusalKind::ALL;
    let mut place = 0;
    while let [first, others @ ..] = rest {
        assert!(*first as usize == place);
        place += 1;
        rest = others;
    }
    let [.., last] = RefusalKind::ALL;
    match last {
        RefusalKind::Invalid
        | RefusalKind::NotFound
        | RefusalKind::Forbidden
        | RefusalKind::Conflict
        | RefusalKind::Precondition
        | RefusalKind::KeyReused
        | RefusalKind::TooLarge
        | RefusalKind::Limited
        | RefusalKind::Unavailable => panic!("the last kind is not on the list"),
        RefusalKind::StorageFull => {}
    }
};

/// A clear no: stable code, place, next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kind.
    pub kind: RefusalKind,
    /// Stable, snake_case.
    pub code: &'static str,
    /// Which field, in dots: `schedule.cron[0]`.
    pub field: Option<String>,
    /// What is wrong, one sentence.
    pub detail: String,
    /// What to do next.
    pub hint: String,
}

impl Refusal {
    /// A refusal without a field.
    pub fn new(kind: RefusalKind, code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal {
            kind,
            code,
            field: None,
            detail: detail.into(),
            hint: hint.into(),
        }
    }

    /// The same, naming the field.
    pub fn at(mut self, field: impl Into<String>) -> Refusal {
        self.field = Some(field.into());
        self
    }
}

/// What callers are told when the disk has no room for new work.
pub fn storage_full() -> Refusal {
    Refusal::new(
        RefusalKind::StorageFull,
        "storage_full",
        "the disk has no room for new jobs or schedules",
        "free space on the data folder's disk; cancel, complete and drain go on meanwhile",
    )
}

/// What somebody wrote, as a refusal shows it: its first letters, and control characters as escapes, for without them
/// it would look like what it is not.
pub fn shown(text: &str, letters_max: usize) -> String {
    let letters = text.chars().take(letters_max);
    let escaped = letters.map(|c| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    escaped.collect()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {} ({})", self.detail, self.code),
            None => write!(f, "{} ({})", self.detail, self.code),
        }
    }
}

impl std::error::Error for Refusal {}
