//! The guard at a resource: applies each effect once, whatever calls arrive, twice, late or out of order.
//!
//! Owns: key, fence and effect in one transaction (PROTOCOL F10). Must never: trust the order in which calls
//! arrive, or read a clock (callers say when). A service that receives Fencepost's calls uses it; Fencepost
//! itself does not. Next: `decide` for the rules, `docs/guides/exactly-once-effects.md` for how to use it.

pub mod decide;
#[cfg(not(madsim))]
pub mod fjall;
pub mod ledger;
mod row;

use fencepost_core::ids::Token;
use fencepost_core::limits::{GUARD_KEY_BYTES_MAX, GUARD_RESULT_BYTES_MAX};
use fencepost_core::time::StoreTime;

use self::decide::{Decision, Entry, EntryState, Fence, decide_begin, decide_by_token, decide_finish, decide_seal};
use self::ledger::{Ledger, Reader, Space, Write};

/// Why a guard gave no answer. Nothing was applied, or it is unknown until the ledger is opened again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// Key, line or result is empty or too long.
    #[error(
        "guard_input: a key or line has 1 to {GUARD_KEY_BYTES_MAX} bytes, a result at most {GUARD_RESULT_BYTES_MAX}"
    )]
    Input,
    /// The effect itself refused, for a reason of the service's. It may be tried again.
    #[error("guard_effect_refused: {0}")]
    Refused(String),
    /// The ledger failed.
    #[error("guard_ledger: {0}")]
    Ledger(String),
}

/// One call of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The idempotency key: the same for every attempt of a job.
    pub key: &'a str,
    /// The attempt's fencing token.
    pub token: Token,
    /// A line of jobs whose effects must come in the order of their tokens, as the jobs of one schedule that
    /// write the same file. `None`: only the attempts of one job are ordered.
    pub line: Option<&'a str>,
    /// Now, by the service's clock; only `purge` looks at it.
    pub now: StoreTime,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The effect was applied by this call.
    Applied(Vec<u8>),
    /// It had been applied before; this is the stored result.
    Already(Vec<u8>),
    /// The same attempt has begun and not finished. Retryable, never a failure.
    InProgress,
    /// A newer attempt was seen: this one must not touch anything any more.
    Stale,
}

/// What became of a beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Prepare the effect, then `finish`.
    Go,
    /// As in [`Answer`].
    Already(Vec<u8>),
    /// As in [`Answer`].
    InProgress,
    /// As in [`Answer`].
    Stale,
}

/// What an effect may do: read and change the service's own rows within the guard's transaction.
pub struct Effects<'a> {
    reader: &'a dyn Reader,
    writes: Vec<Write>,
}

impl Effects<'_> {
    /// A row of the service, with this effect's own changes.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, GuardError> {
        match self.writes.iter().rev().find(|write| write.key == key) {
            Some(write) => Ok(write.value.clone()),
            None => self.reader.get(Space::Effects, key),
        }
    }

    /// Puts a row.
    pub fn put(&mut self, key: &[u8], value: Vec<u8>) {
        self.writes.push(Write {
            space: Space::Effects,
            key: key.to_vec(),
            value: Some(value),
        });
    }

    /// Deletes a row.
    pub fn delete(&mut self, key: &[u8]) {
        self.writes.push(Write {
            space: Space::Effects,
            key: key.to_vec(),
            value: None,
        });
    }
}

/// An effect: changes rows and returns the result to store. It may run on a snapshot that is thrown away, so
/// it touches nothing but its rows.
pub trait Effect: FnMut(&mut Effects<'_>) -> Result<Vec<u8>, GuardError> {}
impl<F: FnMut(&mut Effects<'_>) -> Result<Vec<u8>, GuardError>> Effect for F {}

/// A guard over a ledger.
pub struct Guard<L> {
    ledger: L,
}

impl<L: Ledger> Guard<L> {
    /// A guard over this ledger, which nothing else writes.
    pub fn new(ledger: L) -> Self {
        Self { ledger }
    }

    /// Applies the effect of this key, once: key, fence and effect in one transaction.
    ///
    /// # Errors
    /// The effect refused (the fence is raised all the same), or the ledger failed.
    pub fn apply(&self, call: &Call<'_>, effect: impl Effect) -> Result<Answer, GuardError> {
        self.apply_if(call, decide_begin, effect)
    }

    /// Reserves the key for this attempt, for effects that take long to prepare. A newer attempt takes the
    /// reservation over, and then `finish` answers *stale*.
    ///
    /// # Errors
    /// The ledger failed.
    pub fn begin(&self, call: &Call<'_>) -> Result<Begun, GuardError> {
        call.check()?;
        let mut begun = Begun::Stale;
        self.ledger.transact(&mut |reader| {
            let (entry, line) = call.read(reader)?;
            begun = match decide_begin(entry.as_ref(), line, call.token) {
                Decision::Go => Begun::Go,
                Decision::Already(result) => Begun::Already(result),
                Decision::InProgress => Begun::InProgress,
                Decision::Stale => Begun::Stale,
            };
            Ok(if begun == Begun::Go {
                call.writes(EntryState::InProgress, line)
            } else {
                Vec::new()
            })
        })?;
        Ok(begun)
    }

    /// Applies the effect that this attempt has begun, if no newer attempt took over.
    ///
    /// # Errors
    /// As `apply`; after a refusal the key is open again.
    pub fn finish(&self, call: &Call<'_>, effect: impl Effect) -> Result<Answer, GuardError> {
        self.apply_if(call, decide_finish, effect)
    }

    fn apply_if(
        &self,
        call: &Call<'_>,
        decide: fn(Option<&Entry>, Option<Token>, Token) -> Decision,
        mut effect: impl Effect,
    ) -> Result<Answer, GuardError> {
        call.check()?;
        let mut answer = Ok(Answer::Stale);
        self.ledger.transact(&mut |reader| {
            let (entry, line) = call.read(reader)?;
            answer = Ok(match decide(entry.as_ref(), line, call.token) {
                Decision::Already(result) => Answer::Already(result),
                Decision::InProgress => Answer::InProgress,
                Decision::Stale => Answer::Stale,
                Decision::Go => {
                    let (result, mut writes) = run_effect(&mut effect, reader)?;
                    let state = result
                        .as_ref()
                        .map_or(EntryState::Open, |result| EntryState::Applied(result.clone()));
                    writes.extend(call.writes(state, line));
                    answer = result.map(Answer::Applied);
                    return Ok(writes);
                }
            });
            Ok(Vec::new())
        })?;
        answer
    }

    /// Raises the fence of a line, for resources that know tokens and no keys: from then on older attempts
    /// change nothing. Next look whether the effect is there (`read`), and only if not, `apply_by_token`.
    /// Answers whether the fence stands at this token.
    ///
    /// # Errors
    /// The ledger failed.
    pub fn seal(&self, line: &str, token: Token) -> Result<bool, GuardError> {
        check_key(line)?;
        let mut sealed = false;
        self.ledger.transact(&mut |reader| {
            let fence = read_fence(reader, line)?;
            sealed = decide_seal(fence, token);
            let raises = sealed && fence.is_none_or(|fence| fence.token != token);
            Ok(if raises {
                vec![fence_write(line, Fence { token, used: false })]
            } else {
                Vec::new()
            })
        })?;
        Ok(sealed)
    }

    /// Applies an effect under a token alone: never after a newer token was seen, and once for each token.
    /// Attempts after the first must `seal` and look before, or one effect is applied by two attempts.
    ///
    /// # Errors
    /// The effect refused (the fence is raised all the same), or the ledger failed.
    pub fn apply_by_token(&self, line: &str, token: Token, mut effect: impl Effect) -> Result<Answer, GuardError> {
        check_key(line)?;
        let mut answer = Ok(Answer::Stale);
        self.ledger.transact(&mut |reader| {
            if !decide_by_token(read_fence(reader, line)?, token) {
                answer = Ok(Answer::Stale);
                return Ok(Vec::new());
            }
            let (result, mut writes) = run_effect(&mut effect, reader)?;
            writes.push(fence_write(
                line,
                Fence {
                    token,
                    used: result.is_ok(),
                },
            ));
            answer = result.map(Answer::Applied);
            Ok(writes)
        })?;
        answer
    }

    /// A row of the service.
    ///
    /// # Errors
    /// The ledger failed.
    pub fn read(&self, key: &[u8]) -> Result<Option<Vec<u8>>, GuardError> {
        let mut found = None;
        self.ledger.transact(&mut |reader| {
            found = reader.get(Space::Effects, key)?;
            Ok(Vec::new())
        })?;
        Ok(found)
    }

    /// Forgets keys not written since `before`, looking at no more than `limit` keys after `after`. Returns
    /// where to go on, `None` at the end. Keep keys longer than dead letters live: a forgotten key that is
    /// sent again is applied again.
    ///
    /// # Errors
    /// The ledger failed.
    pub fn purge(&self, before: StoreTime, after: Option<&[u8]>, limit: usize) -> Result<Option<Vec<u8>>, GuardError> {
        let page = self.ledger.page(Space::Keys, after, limit.max(1))?;
        let next = if page.len() < limit.max(1) {
            None
        } else {
            page.last().map(|(key, _)| key.clone())
        };
        self.ledger.transact(&mut |reader| {
            let mut writes = Vec::new();
            for (key, _) in &page {
                // Read again: the key may have been written since the page was read.
                let row = reader.get(Space::Keys, key)?;
                let old = row
                    .map(|bytes| row::entry_of(&bytes))
                    .transpose()?
                    .is_some_and(|(_, at)| at < before);
                if old {
                    writes.push(Write {
                        space: Space::Keys,
                        key: key.clone(),
                        value: None,
                    });
                }
            }
            Ok(writes)
        })?;
        Ok(next)
    }
}

impl Call<'_> {
    fn check(&self) -> Result<(), GuardError> {
        check_key(self.key)?;
        self.line.map_or(Ok(()), check_key)
    }

    fn read(&self, reader: &dyn Reader) -> Result<(Option<Entry>, Option<Token>), GuardError> {
        let entry = reader.get(Space::Keys, self.key.as_bytes())?;
        let entry = entry
            .map(|bytes| row::entry_of(&bytes))
            .transpose()?
            .map(|(entry, _)| entry);
        let line = self.line.map(|line| read_fence(reader, line)).transpose()?.flatten();
        Ok((entry, line.map(|fence| fence.token)))
    }

    /// The key's new row, and the line's fence where this token raises it.
    fn writes(&self, state: EntryState, line_fence: Option<Token>) -> Vec<Write> {
        let value = row::entry_bytes(
            &Entry {
                fence: self.token,
                state,
            },
            self.now,
        );
        let mut writes = vec![Write {
            space: Space::Keys,
            key: self.key.as_bytes().to_vec(),
            value: Some(value),
        }];
        match self.line {
            Some(line) if line_fence.is_none_or(|fence| fence < self.token) => {
                writes.push(fence_write(
                    line,
                    Fence {
                        token: self.token,
                        used: true,
                    },
                ));
            }
            Some(_) | None => {}
        }
        writes
    }
}

/// An effect's result, or its refusal, and what it changes.
type Ran = (Result<Vec<u8>, GuardError>, Vec<Write>);

/// Runs the effect; a refusal changes nothing, a failing ledger ends the transaction.
fn run_effect(effect: &mut impl Effect, reader: &dyn Reader) -> Result<Ran, GuardError> {
    let mut effects = Effects {
        reader,
        writes: Vec::new(),
    };
    match effect(&mut effects) {
        Ok(result) if result.len() > GUARD_RESULT_BYTES_MAX => Ok((Err(GuardError::Input), Vec::new())),
        Ok(result) => Ok((Ok(result), effects.writes)),
        Err(GuardError::Ledger(why)) => Err(GuardError::Ledger(why)),
        Err(refused) => Ok((Err(refused), Vec::new())),
    }
}

fn read_fence(reader: &dyn Reader, line: &str) -> Result<Option<Fence>, GuardError> {
    reader
        .get(Space::Fences, line.as_bytes())?
        .map(|bytes| row::fence_of(&bytes))
        .transpose()
}

fn fence_write(line: &str, fence: Fence) -> Write {
    Write {
        space: Space::Fences,
        key: line.as_bytes().to_vec(),
        value: Some(row::fence_bytes(fence)),
    }
}

fn check_key(key: &str) -> Result<(), GuardError> {
    if key.is_empty() || key.len() > GUARD_KEY_BYTES_MAX {
        Err(GuardError::Input)
    } else {
        Ok(())
    }
}

/// Compiles and runs the guide's Rust code.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/exactly-once-effects.md")]
struct Guide;
