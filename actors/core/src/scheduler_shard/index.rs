//! Who is due: all schedules of the shard by name, by due instant and by release.
//!
//! Owns: the indexes, kept in step with each schedule whenever it is touched. Must never: visit a
//! schedule that is not asked for. All of it can be rebuilt from rows.

use super::live::Live;
use crate::name::Name;
use crate::time::{Monotonic, StoreTime};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Place of a schedule in memory.
pub(super) type Place = usize;

#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    names: BTreeMap<(Name, Name), Place>,
    places: Vec<Option<Entry>>,
    free: Vec<Place>,
    due: BTreeSet<(StoreTime, Place)>,
    releases: BTreeSet<(Monotonic, Place)>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    live: Box<Live>,
    /// As entered in the sets.
    due: Option<StoreTime>,
    release: Option<Monotonic>,
    bytes: usize,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Bytes of all definitions, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn find(&self, name: &(Name, Name)) -> Option<Place> {
        self.names.get(name).copied()
    }

    pub(super) fn get(&self, place: Place) -> Option<&Live> {
        self.places.get(place)?.as_ref().map(|entry| &*entry.live)
    }

    /// The first schedule whose name comes after this one, or the first of all.
    pub(super) fn after(&self, name: Option<&(Name, Name)>) -> Option<&Live> {
        let bound = name.map_or(Bound::Unbounded, Bound::Excluded);
        let (_, place) = self.names.range((bound, Bound::Unbounded)).next()?;
        self.get(*place)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Live> {
        self.places.iter().flatten().map(|entry| &*entry.live)
    }

    pub(super) fn quarantined(&self) -> usize {
        self.all().filter(|live| live.quarantined.is_some()).count()
    }

    pub(super) fn insert(&mut self, live: Live) {
        let name = (live.cursor.tenant.clone(), live.cursor.name.clone());
        let mut entry = Entry {
            live: Box::new(live),
            due: None,
            release: None,
            bytes: 0,
        };
        let place = self.free.pop().unwrap_or(self.places.len());
        self.enter(place, &mut entry);
        match self.places.get_mut(place) {
            Some(free) => *free = Some(entry),
            None => self.places.push(Some(entry)),
        }
        let before = self.names.insert(name, place);
        assert!(before.is_none(), "one live schedule per name");
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Live> {
        let entry = self.places.get_mut(place)?.take()?;
        self.leave(place, &entry);
        self.names
            .remove(&(entry.live.cursor.tenant.clone(), entry.live.cursor.name.clone()));
        self.free.push(place);
        Some(*entry.live)
    }

    /// Lets `change` work on a schedule and enters it anew where it is due afterwards.
    pub(super) fn with<T>(&mut self, place: Place, change: impl FnOnce(&mut Live) -> T) -> Option<T> {
        let mut entry = self.places.get_mut(place)?.take()?;
        self.leave(place, &entry);
        let answer = change(&mut entry.live);
        self.enter(place, &mut entry);
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Some(entry);
        }
        Some(answer)
    }

    /// The schedule that is due first, if that is by `now`.
    pub(super) fn first_due(&self, now: StoreTime) -> Option<Place> {
        self.due.first().filter(|(due, _)| *due <= now).map(|(_, place)| *place)
    }

    /// The schedule whose backlog may release first, if that is by `now`.
    pub(super) fn first_release(&self, now: Monotonic) -> Option<Place> {
        self.releases
            .first()
            .filter(|(at, _)| *at <= now)
            .map(|(_, place)| *place)
    }

    pub(super) fn next_due(&self) -> Option<StoreTime> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn next_release(&self) -> Option<Monotonic> {
        self.releases.first().map(|(at, _)| *at)
    }

    /// Panics if a schedule is not where its plan says.
    pub(super) fn check(&self) {
        let entries = || {
            self.places
                .iter()
                .enumerate()
                .filter_map(|(place, entry)| Some((place, entry.as_ref()?)))
        };
        assert_eq!(entries().count(), self.names.len(), "every schedule has a name");
        let bytes: usize = entries().map(|(_, entry)| entry.live.weight()).sum();
        assert_eq!(bytes, self.bytes, "bytes are counted");
        for (place, entry) in entries() {
            assert_eq!(
                entry.due,
                entry.live.plan.map(|plan| plan.due),
                "entered where it is due"
            );
            assert_eq!(entry.release, entry.live.next_release(), "entered where it releases");
            let name = (entry.live.cursor.tenant.clone(), entry.live.cursor.name.clone());
            assert_eq!(self.find(&name), Some(place), "found by its name");
        }
        let due = entries().filter_map(|(place, entry)| Some((entry.due?, place)));
        assert!(
            self.due.iter().copied().eq(due.collect::<BTreeSet<_>>()),
            "nothing else is due"
        );
        let releases = entries().filter_map(|(place, entry)| Some((entry.release?, place)));
        assert!(
            self.releases.iter().copied().eq(releases.collect::<BTreeSet<_>>()),
            "nothing else releases"
        );
    }

    fn enter(&mut self, place: Place, entry: &mut Entry) {
        entry.due = entry.live.plan.map(|plan| plan.due);
        entry.release = entry.live.next_release();
        entry.bytes = entry.live.weight();
        self.bytes += entry.bytes;
        self.due.extend(entry.due.map(|due| (due, place)));
        self.releases.extend(entry.release.map(|at| (at, place)));
    }

    fn leave(&mut self, place: Place, entry: &Entry) {
        self.bytes -= entry.bytes;
        if let Some(due) = entry.due {
            self.due.remove(&(due, place));
        }
        if let Some(at) = entry.release {
            self.releases.remove(&(at, place));
        }
    }
}
