//! The resource that attempts act on, and the attempts that are under way to it.
//!
//! Owns: what is applied. Must never: know the job's rows. Next: `world.rs`.

use crate::scope::{Fault, GuardKind, Scope};
use fencepost_core::ids::Token;

/// The resource.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub struct Resource {
    /// Highest token seen.
    high: Token,
    /// Effects applied for the one key.
    pub applied: u32,
}

/// A started attempt.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Run {
    /// Where it runs; none once its worker is gone or has ended it while its call is under way.
    pub node: Option<usize>,
    /// Counted from 1.
    pub attempt: u32,
    /// How far its call is.
    pub call: Call,
    /// Told to stop.
    pub told: bool,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Not there yet.
    Away,
    /// The fence is raised and the effect was not there.
    Sealed,
    /// It applied the effect.
    Applied,
    /// The effect was there.
    Already,
    /// A newer token was there before.
    Stale,
}

impl Run {
    /// Whether its call may still reach the resource.
    pub fn is_open(&self) -> bool {
        matches!(self.call, Call::Away | Call::Sealed)
    }

    /// Whether it may say that it succeeded.
    pub fn has_effect(&self) -> bool {
        matches!(self.call, Call::Applied | Call::Already)
    }
}

impl Resource {
    /// The next call of a run arrives.
    pub fn call(&mut self, token: Token, run: &mut Run, scope: &Scope) {
        run.call = match scope.guard {
            GuardKind::Nothing => self.apply(),
            GuardKind::Keys if self.applied > 0 => Call::Already,
            GuardKind::Keys | GuardKind::Tokens if self.is_older(token, scope) => Call::Stale,
            GuardKind::Keys => self.raise_and_apply(token),
            GuardKind::Tokens => self.call_by_token(token, run, scope),
        };
    }

    fn call_by_token(&mut self, token: Token, run: &Run, scope: &Scope) -> Call {
        let seals = run.attempt > 1 && run.call == Call::Away && !scope.has(Fault::FenceOnly);
        if !seals {
            return self.raise_and_apply(token);
        }
        self.high = self.high.max(token);
        if self.applied > 0 { Call::Already } else { Call::Sealed }
    }

    fn is_older(&self, token: Token, scope: &Scope) -> bool {
        token < self.high && !scope.has(Fault::TokenIgnoredAtResource)
    }

    fn raise_and_apply(&mut self, token: Token) -> Call {
        self.high = self.high.max(token);
        self.apply()
    }

    fn apply(&mut self) -> Call {
        self.applied += 1;
        Call::Applied
    }
}
