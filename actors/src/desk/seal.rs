//! Grants as text, with a seal: who may report on an attempt.
//!
//! Owns: the form of a grant and its message authentication code, over cell, worker, tenant, job, attempt and token.
//! The key is its node's: a start goes on with that of the one before, so that a late word about what that one handed
//! out is known for one (F18). Must never: be guessed or shown, or accept a grant for another worker. Next: `mod.rs`.

use crate::chance::Chance;
use fencepost_core::ids::{Epoch, Generation, JobId, Token};
use fencepost_core::limits::NAME_BYTES_MAX;
use fencepost_core::name::Name;
use std::fmt;

const PREFIX: &str = "fpg1_";
/// Job, attempt, token.
const HEAD: usize = 16 + 4 + 20;
const MAC: usize = 16;

/// What a grant says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Owner of quotas.
    pub tenant: Name,
    /// Which job.
    pub job: JobId,
    /// Which attempt.
    pub attempt: u32,
    /// Its fencing token.
    pub token: Token,
}

/// What grants are sealed with.
#[derive(Clone, PartialEq, Eq)]
pub struct GrantKey([u8; 32]);

impl GrantKey {
    /// From a secret text.
    pub fn of(text: &str) -> GrantKey {
        GrantKey(blake3::derive_key(
            "fencepost 2026 grants of workers over HTTP",
            text.as_bytes(),
        ))
    }

    /// For a node that keeps nothing.
    pub fn draw(chance: &dyn Chance) -> GrantKey {
        let mut key = [0; 32];
        chance.fill(&mut key);
        GrantKey(key)
    }
}

impl fmt::Debug for GrantKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("GrantKey")
    }
}

/// The key.
pub(super) struct Seal {
    key: GrantKey,
    cell: u128,
}

impl Seal {
    pub(super) fn new(key: GrantKey, cell: u128) -> Seal {
        Seal { key, cell }
    }

    /// The grant as its worker gets it.
    pub(super) fn close(&self, worker: &Name, grant: &Grant) -> String {
        let mut body = Vec::with_capacity(HEAD + MAC + NAME_BYTES_MAX);
        body.extend_from_slice(grant.job.as_bytes());
        body.extend_from_slice(&grant.attempt.to_be_bytes());
        body.extend_from_slice(&grant.token.to_bytes());
        body.extend_from_slice(grant.tenant.as_bytes());
        let mac = self.mac(worker, &body);
        let mac = mac.as_bytes().first_chunk::<MAC>().expect("a hash is longer");
        let digits = body.iter().chain(mac).map(|byte| format!("{byte:02x}"));
        PREFIX.chars().map(String::from).chain(digits).collect()
    }

    /// What it says, if we gave it to this worker.
    pub(super) fn open(&self, worker: &Name, text: &str) -> Option<Grant> {
        let digits = text.strip_prefix(PREFIX)?;
        let most = 2 * (HEAD + MAC + NAME_BYTES_MAX);
        if digits.len() > most || !digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let bytes = digits.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok().filter(|_| pair.len() == 2)
        });
        let bytes = bytes.collect::<Option<Vec<u8>>>()?;
        let (body, mac) = bytes.split_last_chunk::<MAC>()?;
        let expected = self.mac(worker, body);
        // In constant time: the comparison of whole hashes, both cut and padded alike.
        let (mut given, mut right) = ([0; 32], [0; 32]);
        given.iter_mut().zip(mac).for_each(|(to, from)| *to = *from);
        right
            .iter_mut()
            .zip(expected.as_bytes().iter().take(MAC))
            .for_each(|(to, from)| *to = *from);
        (blake3::Hash::from_bytes(given) == blake3::Hash::from_bytes(right)).then(|| read(body))?
    }

    fn mac(&self, worker: &Name, body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key.0);
        hasher.update(&self.cell.to_be_bytes());
        hasher.update(&(worker.as_bytes().len() as u64).to_be_bytes());
        hasher.update(worker.as_bytes());
        hasher.update(body);
        hasher.finalize()
    }
}

fn read(body: &[u8]) -> Option<Grant> {
    let (job, rest) = body.split_first_chunk::<16>()?;
    let (attempt, rest) = rest.split_first_chunk::<4>()?;
    let (generation, rest) = rest.split_first_chunk::<4>()?;
    let (epoch, rest) = rest.split_first_chunk::<8>()?;
    let (sequence, tenant) = rest.split_first_chunk::<8>()?;
    Some(Grant {
        tenant: Name::new(std::str::from_utf8(tenant).ok()?).ok()?,
        job: JobId::from_bytes(*job)?,
        attempt: u32::from_be_bytes(*attempt),
        token: Token {
            generation: Generation(u32::from_be_bytes(*generation)),
            epoch: Epoch(u64::from_be_bytes(*epoch)),
            sequence: u64::from_be_bytes(*sequence),
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::chance::SystemChance;
    use fencepost_core::ids::Slot;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn grant() -> Grant {
        Grant {
            tenant: name("default"),
            job: JobId::fresh(Slot::new(7).unwrap(), [9; 14]),
            attempt: 3,
            token: Token {
                generation: Generation(1),
                epoch: Epoch(2),
                sequence: 900,
            },
        }
    }

    #[test]
    fn a_grant_is_read_back_by_its_worker_only() {
        let key = GrantKey::of("secret");
        let seal = Seal::new(key.clone(), 5);
        let text = seal.close(&name("a"), &grant());
        assert_eq!(seal.open(&name("a"), &text), Some(grant()));
        assert_eq!(seal.open(&name("b"), &text), None);
        let others = [
            (GrantKey::of("another"), 5),
            (GrantKey::draw(&SystemChance), 5),
            (key.clone(), 6),
        ];
        for (key, cell) in others {
            assert_eq!(
                Seal::new(key, cell).open(&name("a"), &text),
                None,
                "another node or cell"
            );
        }
        let next_start = Seal::new(key, 5);
        assert_eq!(next_start.open(&name("a"), &text), Some(grant()));
    }

    #[test]
    fn no_changed_grant_is_read() {
        let seal = Seal::new(GrantKey::of("secret"), 5);
        let text = seal.close(&name("a"), &grant());
        for at in 0..text.len() {
            for digit in ['0', '7', 'f', 'g', '\u{e9}'] {
                let mut changed: Vec<char> = text.chars().collect();
                if std::mem::replace(&mut changed[at], digit) != digit {
                    let changed: String = changed.into_iter().collect();
                    assert_eq!(seal.open(&name("a"), &changed), None, "{changed}");
                }
            }
            assert_eq!(seal.open(&name("a"), &text[..at]), None);
        }
        for odd in ["", "fpg1_", "fpg1_0", &format!("{text}00"), &"f".repeat(100_000)] {
            assert_eq!(seal.open(&name("a"), odd), None);
        }
    }
}
