//! What a shard remembers of workers: their latest offers (F14), and who was asked to reconcile.
//!
//! Owns: repeated offers. Must never: decide who is alive. Next: `grants.rs`.

use crate::ids::{JobId, OfferId, Token, WorkerId};
use crate::limits::{OFFERS_REMEMBERED_MAX, WORKERS_REMEMBERED_MAX};
use std::collections::{BTreeMap, VecDeque};

/// Attempts that one offer was given.
pub(super) type Granted = Vec<(JobId, Token)>;

#[derive(Clone, Debug, Default, Hash)]
struct Memo {
    offers: VecDeque<(OfferId, Granted)>,
    forgotten: Option<OfferId>,
    heard: u64,
}

/// Workers heard of in this epoch.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Workers {
    memos: BTreeMap<WorkerId, Memo>,
    /// Attempts of earlier epochs, until their worker is first heard of in this one.
    inherited: BTreeMap<WorkerId, Granted>,
    heard: u64,
}

/// What is known of an offer.
#[derive(Clone, Debug, Hash)]
pub(super) enum Known {
    /// Nothing: grant.
    New,
    /// It was given these.
    Given(Granted),
    /// It is too old to be remembered: grant nothing.
    Forgotten,
}

impl Workers {
    /// Notes an attempt granted by an earlier owner.
    pub(super) fn inherit(&mut self, worker: WorkerId, id: JobId, token: Token) {
        self.inherited.entry(worker).or_default().push((id, token));
    }

    /// First word from a worker in this epoch: what earlier owners granted to it.
    pub(super) fn greet(&mut self, worker: &WorkerId) -> Granted {
        if self.inherited.is_empty() {
            return Granted::new();
        }
        self.inherited.remove(worker).unwrap_or_default()
    }

    /// What is known of an offer.
    pub(super) fn recall(&self, worker: &WorkerId, offer: OfferId) -> Known {
        let Some(memo) = self.memos.get(worker) else {
            return Known::New;
        };
        if let Some((_, granted)) = memo.offers.iter().find(|(id, _)| *id == offer) {
            return Known::Given(granted.clone());
        }
        if memo.forgotten.is_some_and(|last| offer <= last) {
            Known::Forgotten
        } else {
            Known::New
        }
    }

    /// What an offer was given, to count its leases from their release.
    pub(super) fn given(&self, worker: &WorkerId, offer: OfferId) -> &[(JobId, Token)] {
        let memo = self.memos.get(worker);
        let found = memo.and_then(|memo| memo.offers.iter().find(|(id, _)| *id == offer));
        found.map_or(&[], |(_, granted)| granted.as_slice())
    }

    /// Remembers what an offer was given. Offers that got nothing need no memory. Answers what is forgotten for it:
    /// nobody will say any more when that has left.
    pub(super) fn remember(&mut self, worker: &WorkerId, offer: OfferId, granted: Granted) -> Granted {
        self.heard += 1;
        let mut forgotten = Granted::new();
        if !self.memos.contains_key(worker) {
            forgotten = self.make_room();
            self.memos.insert(worker.clone(), Memo::default());
        }
        let Some(memo) = self.memos.get_mut(worker) else {
            return forgotten;
        };
        memo.heard = self.heard;
        memo.offers.push_back((offer, granted));
        if memo.offers.len() > OFFERS_REMEMBERED_MAX
            && let Some((oldest, granted)) = memo.offers.pop_front()
        {
            memo.forgotten = memo.forgotten.max(Some(oldest));
            forgotten.extend(granted);
        }
        forgotten
    }

    /// Forgets the half that was not heard of for longest, when there are too many.
    fn make_room(&mut self) -> Granted {
        if self.memos.len() < WORKERS_REMEMBERED_MAX {
            return Granted::new();
        }
        let mut heard: Vec<u64> = self.memos.values().map(|memo| memo.heard).collect();
        heard.sort_unstable();
        let middle = heard.get(heard.len() / 2).copied().unwrap_or(0);
        let gone = self.memos.extract_if(.., |_, memo| memo.heard <= middle);
        let offers = gone.flat_map(|(_, memo)| memo.offers);
        offers.flat_map(|(_, granted)| granted).collect()
    }
}
