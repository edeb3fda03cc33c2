//! Streams of chance: one per purpose, all from the seed.
//!
//! Owns: that taking a draw away in one stream does not shift another (shrinking needs that). Must
//! never: touch the executor's own randomness. Next: `options.rs`.

use std::sync::{Mutex, PoisonError};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// The stream of a purpose under a seed.
    pub fn new(seed: u64, purpose: &str) -> Stream {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&seed.to_be_bytes());
        hasher.update(purpose.as_bytes());
        let mut state = [0; 8];
        hasher.finalize_xof().fill(&mut state);
        Stream {
            state: u64::from_be_bytes(state),
        }
    }

    /// The next number (splitmix64).
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`, both inclusive.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high - low + 1)
    }

    /// True with this probability in percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.draw() % (items.len().max(1) as u64)).unwrap_or(0);
        items.get(at)
    }
}

/// A stream as the product's source of chance.
#[derive(Debug)]
pub struct SharedStream(Mutex<Stream>);

impl SharedStream {
    /// Over a stream.
    pub fn new(stream: Stream) -> SharedStream {
        SharedStream(Mutex::new(stream))
    }
}

impl fencepost::chance::Chance for SharedStream {
    fn fill(&self, bytes: &mut [u8]) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(8) {
            let drawn = stream.draw().to_be_bytes();
            for (byte, drawn) in chunk.iter_mut().zip(drawn) {
                *byte = drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |seed, purpose| Stream::new(seed, purpose).draw();
        assert_eq!(draw(1, "faults"), draw(1, "faults"));
        assert_ne!(draw(1, "faults"), draw(1, "workload"));
        assert_ne!(draw(1, "faults"), draw(2, "faults"));
    }
}
