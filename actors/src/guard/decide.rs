//! What a guard answers, as pure functions of what it has seen.
//!
//! Owns: the order of the checks (PROTOCOL F10, F12). Must never: read or write. A service with a database
//! of its own can call these inside its transaction. Next: `mod` for the guard that does so.

use fencepost_core::ids::Token;

/// What is known of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The highest token seen with this key.
    pub fence: Token,
    /// How far its effect is.
    pub state: EntryState,
}

/// How far the effect of a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// Seen, not begun: given up, or refused by the effect itself.
    Open,
    /// The holder of the fence has begun.
    InProgress,
    /// It is there, with the result that was answered.
    Applied(Vec<u8>),
}

/// What a call may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Apply the effect, or begin it.
    Go,
    /// The effect is there; answer its stored result.
    Already(Vec<u8>),
    /// The same attempt has begun and not finished.
    InProgress,
    /// A newer attempt was seen.
    Stale,
}

/// The fence of a line of calls that carry tokens and no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The highest token seen.
    pub token: Token,
    /// Whether that token has applied its effect.
    pub used: bool,
}

/// Whether `token` is older than what was seen. The one check that a negative control takes out.
fn is_older(token: Token, seen: Option<Token>) -> bool {
    #[cfg(feature = "test-switches")]
    if crate::process::switches::is_planted("no-token-check") {
        return false;
    }
    seen.is_some_and(|seen| token < seen)
}

/// A call with a key: may it begin, or apply in one step? `line` is the fence of its line, if it names one.
#[must_use]
pub fn decide_begin(entry: Option<&Entry>, line: Option<Token>, token: Token) -> Decision {
    match entry {
        // Applied answers everyone, also the late: the answer changes nothing.
        Some(Entry {
            state: EntryState::Applied(result),
            ..
        }) => Decision::Already(result.clone()),
        _ if is_older(token, line) || is_older(token, entry.map(|entry| entry.fence)) => Decision::Stale,
        // A newer token takes over what an older one has begun: the older one can no longer finish.
        Some(Entry {
            fence,
            state: EntryState::InProgress,
        }) if *fence == token => Decision::InProgress,
        Some(Entry {
            state: EntryState::Open | EntryState::InProgress,
            ..
        })
        | None => Decision::Go,
    }
}

/// The second half of a call that has begun: may it apply its effect now?
#[must_use]
pub fn decide_finish(entry: Option<&Entry>, line: Option<Token>, token: Token) -> Decision {
    match entry {
        Some(Entry {
            state: EntryState::Applied(result),
            ..
        }) => Decision::Already(result.clone()),
        _ if is_older(token, line) || is_older(token, entry.map(|entry| entry.fence)) => Decision::Stale,
        Some(Entry {
            state: EntryState::InProgress,
            ..
        }) => Decision::Go,
        // Never begun, or given up: nothing was reserved for it.
        Some(Entry {
            state: EntryState::Open,
            ..
        })
        | None => Decision::Stale,
    }
}

/// May this token raise the fence? Sealing again with the same token is harmless.
#[must_use]
pub fn decide_seal(fence: Option<Fence>, token: Token) -> bool {
    !is_older(token, fence.map(|fence| fence.token))
}

/// A call with a token and no key: may it apply? A token applies at most once.
#[must_use]
pub fn decide_by_token(fence: Option<Fence>, token: Token) -> bool {
    match fence {
        Some(fence) if fence.token == token => !fence.used,
        Some(fence) => !is_older(token, Some(fence.token)),
        None => true,
    }
}
