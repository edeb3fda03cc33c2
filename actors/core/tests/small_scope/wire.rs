//! Messages on their way: in any order, late, twice, or never.
//!
//! Owns: what is under way. Must never: lose by itself (what is not delivered is lost). Next:
//! `world.rs`.

use fencepost_core::ids::{BeatId, JobId, OfferId, Token};
use fencepost_core::job::Outcome;
use fencepost_core::worker::io::WorkerInput;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// A worker's life: node and boot.
pub type Life = (usize, u64);

/// A message with its address.
#[derive(Clone, Debug, Hash)]
pub enum Packet {
    /// From a worker to whoever owns the shard.
    ToOwner(Life, FromWorker),
    /// To a worker.
    ToWorker(Life, WorkerInput),
}

/// What a worker says.
#[derive(Clone, Debug, Hash)]
pub enum FromWorker {
    Offer(OfferId, u32, bool, u32),
    Heartbeat(BeatId, Vec<(JobId, Token)>),
    Begin(JobId, Token),
    Outcomes(Vec<(JobId, Token, Outcome)>),
    HandBack(Vec<(JobId, Token)>),
}

impl Packet {
    /// The message in short: jobs are all the same one, tokens are epoch and sequence.
    pub fn tell(&self) -> String {
        let mut text = format!("{self:?}");
        let shorter = [
            ("Generation(1)", "g"),
            ("job_00070101010101010101010101010101", "job"),
            ("Token { generation: g, epoch: Epoch(", "Token("),
        ];
        for (long, short) in shorter {
            text = text.replace(long, short);
        }
        match text.find("job: Job {").zip(text.find("attempt: ")) {
            Some((from, to)) if from < to => format!("{}{}", &text[..from], &text[to..]),
            _ => text,
        }
    }
}

/// What is under way, by the messages' digests: the same message twice is one that may come twice.
#[derive(Clone, Default)]
pub struct Wire {
    packets: BTreeMap<u64, Packet>,
}

impl Wire {
    pub fn send(&mut self, packet: Packet) {
        self.packets.insert(digest(&packet), packet);
    }

    pub fn take(&mut self, id: u64) -> Option<Packet> {
        self.packets.remove(&id)
    }

    pub fn get(&self, id: u64) -> Option<&Packet> {
        self.packets.get(&id)
    }

    pub fn packets(&self) -> impl Iterator<Item = (u64, &Packet)> {
        self.packets.iter().map(|(id, packet)| (*id, packet))
    }

    /// The newest offer of a worker's life.
    pub fn offer_of(&self, life: Life) -> Option<u64> {
        let offers = self.packets().filter_map(|(id, packet)| match packet {
            Packet::ToOwner(from, FromWorker::Offer(offer, ..)) if *from == life => Some((*offer, id)),
            _ => None,
        });
        offers.max().map(|(_, id)| id)
    }

    /// The newest answer to an offer of a worker's life.
    pub fn answer_of(&self, life: Life) -> Option<u64> {
        let answers = self.packets().filter_map(|(id, packet)| match packet {
            Packet::ToWorker(to, WorkerInput::Granted { offer, .. }) if *to == life => Some((*offer, id)),
            _ => None,
        });
        answers.max().map(|(_, id)| id)
    }

    /// Forgets what cannot arrive any more: messages to a life that has ended.
    pub fn drop_to(&mut self, life: Life) {
        self.packets
            .retain(|_, packet| !matches!(packet, Packet::ToWorker(to, _) if *to == life));
    }
}

impl Hash for Wire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.packets.len().hash(state);
        self.packets.keys().for_each(|id| id.hash(state));
    }
}

/// A 64-bit digest.
pub fn digest(value: &impl Hash) -> u64 {
    let mut folder = Folder(0x9e37_79b9_7f4a_7c15);
    value.hash(&mut folder);
    folder.finish()
}

/// Folds words by wide multiplication: states are large and met by the million.
struct Folder(u64);

impl Folder {
    fn fold(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word).wrapping_mul(0xda94_2042_e4dd_58b5_9e6c_63d0_876a_9a43);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for Folder {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word).wrapping_add(chunk.len() as u64));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.fold(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.fold(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.fold(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
