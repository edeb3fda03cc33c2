//! Tokens whose attempts ended lately, so that a repeated outcome is answered without a fetch (F18).
//!
//! Owns: a bounded memory; the job row's attempts answer for older ones. Next: `outcomes.rs`.

use super::io::Recorded;
use crate::ids::Token;
use crate::limits::TOKENS_REMEMBERED_MAX;
use std::collections::{BTreeMap, VecDeque};

/// The newest ended attempts.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct RecentTokens {
    answers: BTreeMap<Token, Recorded>,
    order: VecDeque<Token>,
}

impl RecentTokens {
    /// Remembers how an attempt ended.
    pub(super) fn add(&mut self, token: Token, answer: Recorded) {
        if self.answers.insert(token, answer).is_some() {
            return;
        }
        self.order.push_back(token);
        if self.order.len() > TOKENS_REMEMBERED_MAX {
            let oldest = self.order.pop_front();
            oldest.and_then(|token| self.answers.remove(&token));
        }
    }

    /// How it ended, if it is remembered.
    pub(super) fn get(&self, token: Token) -> Option<Recorded> {
        self.answers.get(&token).copied()
    }
}
