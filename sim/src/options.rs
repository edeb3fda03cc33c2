//! What a seed draws: size, faults, modes. Printed first in every run.
//!
//! Owns: the swarm (each family of faults is off with probability one half). Must never: draw from
//! the streams of workload or faults. Next: `world/`.

use crate::bugs::PlantedBug;
use crate::runtime::Stream;
use crate::scenario::Plan;
use crate::without::Without;
use fencepost_core::limits::{CLOCK_OFFSET_MS, CLOCK_OFFSET_MS_MAX};
use fencepost_core::time::Span;
use fencepost_history::setting::Setting;
use fencepost_history::zones::{CHANGES, STEADY};
use std::fmt;
use std::sync::Arc;

/// Further than a clock is waited for below store time (`CLOCK_DOUBT_MAX_MS`), and so little further that
/// what is still due comes within the bound of settling.
const SET_BACK: (u64, u64) = (345_000_000, 420_000_000);

/// Everything a seed decides before its run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// Date, microseconds since the Unix epoch.
    pub starts_at: i64,
    /// Shards of the cell.
    pub shards: u16,
    /// Attempts at once.
    pub slots: u32,
    /// Client machines.
    pub clients: u64,
    /// Jobs that each client makes.
    pub jobs: u64,
    /// Schedules.
    pub schedules: u64,
    /// How long faults and work go on.
    pub active: Span,
    /// Lease of an attempt.
    pub lease: Span,
    /// Interval of heartbeats.
    pub heartbeat: Span,
    /// Longest latency of a packet, in microseconds.
    pub latency: u64,
    /// Which families of faults are on.
    pub faults: Families,
    /// Which clock change of a zone the run begins just before, by number.
    pub change: Option<usize>,
    /// How far the node's wall clock is set off at most, in microseconds.
    pub lie: u64,
    /// After everything has settled the node stays down for a day, and keys come back.
    pub next_day: bool,
    /// The store is on a machine of its own, reached over the mesh.
    pub apart: bool,
    /// Nodes beside the server that own shards too.
    pub others: u64,
    /// Nodes that only work.
    pub far_workers: u64,
    /// Workers over HTTP.
    pub remotes: u64,
    /// Nodes that own shards run jobs, too.
    pub owners_work: bool,
    /// At the healing the node's wall clock is set back by so many microseconds and stays there: store time
    /// is held, and lowered in the end.
    pub set_back: Option<u64>,
    /// What a scenario makes of this run; none in the swarm.
    pub plan: Option<Arc<Plan>>,
    /// A bug planted for this run.
    pub bug: Option<PlantedBug>,
    /// What of all this is left out.
    pub without: Without,
}

/// Families of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    /// The node's process is killed.
    pub crash: bool,
    /// The node's power fails: unsynced commits are gone.
    pub power: bool,
    /// The node freezes.
    pub pause: bool,
    /// The node's wall clock steps.
    pub clock: bool,
    /// The store is away for a while.
    pub away: bool,
    /// The disk is full for a while.
    pub full: bool,
    /// The node, or the target, is cut off for a while.
    pub net: bool,
    /// Schedules are worked on by hand: edits, pauses, run-nows, backfills, deletes.
    pub hands: bool,
    /// Syncs are slow.
    pub slow: bool,
    /// Commits have unknown outcomes.
    pub unknown: bool,
    /// Syncs fail: the process ends.
    pub sick: bool,
    /// The target is slow, fails, and loses answers after the effect.
    pub target: bool,
}

impl Options {
    /// What this seed draws.
    pub fn draw(seed: u64, bug: Option<PlantedBug>) -> Options {
        let mut stream = Stream::new(seed, "options");
        let (starts_at, change) = draw_date(&mut stream);
        let lease = stream.between(5_000, 15_000);
        let worker = draw_worker(seed);
        let mut options = Options {
            seed,
            starts_at,
            shards: u16::try_from(stream.between(1, 5)).unwrap_or(1),
            slots: u32::try_from(stream.between(1, 24)).unwrap_or(1),
            clients: stream.between(1, 4),
            jobs: stream.between(4, 40),
            schedules: stream.between(1, 6),
            active: Span::from_secs(stream.between(40, 90)),
            lease: Span::from_millis(lease),
            heartbeat: Span::from_millis(lease / 4),
            latency: stream.between(1_000, 20_000),
            faults: Families::draw(&mut stream),
            change,
            lie: draw_lie(&mut stream),
            next_day: stream.percent(6),
            apart: Stream::new(seed, "apart").percent(40),
            others: u64::from(Stream::new(seed, "apart").percent(40) && Stream::new(seed, "second").percent(50)),
            far_workers: u64::from(worker.is_some()),
            remotes: 0,
            owners_work: worker.unwrap_or(true),
            set_back: None,
            plan: None,
            bug,
            without: Without::default(),
        };
        let back = stream.between(SET_BACK.0, SET_BACK.1);
        let may_go_back = options.faults.clock && !options.next_day;
        options.set_back = (stream.percent(20) && may_go_back).then_some(back);
        options
    }

    /// The same, less what is left out.
    pub fn leaving_out(mut self, without: Without) -> Options {
        for family in without.families() {
            match family {
                "slow" => self.faults.slow = false,
                "unknown" => self.faults.unknown = false,
                "sick" => self.faults.sick = false,
                "target" => self.faults.target = false,
                _ => self.faults.hands = false,
            }
        }
        self.without = without;
        self
    }

    /// As the checkers know them.
    pub fn setting(&self) -> Setting {
        let faults = self.faults;
        Setting {
            starts_at: self.starts_at,
            lies_max: self.lies_max(),
            clocks_lie: faults.clock,
            store_is_unsure: faults.slow || faults.unknown || faults.sick,
            words_are_late: faults.net || faults.pause || faults.slow || faults.away,
        }
    }

    /// Whether the healing ends every lie of a clock.
    pub fn ends_true(&self) -> bool {
        self.plan.is_some() || (self.set_back.is_none() && self.seed.is_multiple_of(2))
    }

    /// How far a node's clock may be from the store's before it takes and gives no work. Where a lie may stay for
    /// ever there is no such bound, or nothing would ever settle.
    pub fn clock_bound(&self) -> Span {
        match (self.faults.clock, self.apart && self.ends_true()) {
            (false, _) => Span::from_millis(CLOCK_OFFSET_MS),
            (true, true) => Span::from_secs(1 + self.seed % 20),
            (true, false) => Span::from_millis(CLOCK_OFFSET_MS_MAX),
        }
    }

    /// How far a clock of this run may be from the truth, with a little for the way.
    pub fn lies_max(&self) -> i64 {
        let lie = if self.faults.clock { self.lie } else { 0 };
        lie.max(self.set_back.unwrap_or(0)).cast_signed() + 2_000_000
    }
}

/// Only where the store is on a machine of its own, in half of these.
fn draw_worker(seed: u64) -> Option<bool> {
    let mut stream = Stream::new(seed, "worker");
    let is_there = Stream::new(seed, "apart").percent(40) && stream.percent(50);
    is_there.then(|| stream.percent(50))
}

const DAY: u64 = 86_400_000_000;
const YEAR_2026: i64 = 1_767_225_600_000_000;

/// Any day, or any midnight of a zone whose clocks never change, less `before`.
pub fn draw_day(stream: &mut Stream, before: i64, is_midnight: bool) -> i64 {
    let day = stream.between(1, 364) * DAY;
    let at = match is_midnight {
        true => -stream.pick(&STEADY).map_or(0, |zone| zone.before) * 1_000_000,
        false => stream.between(0, DAY - 1).cast_signed(),
    };
    YEAR_2026 + day.cast_signed() + at - before
}

/// When the run begins: any day, just before clocks change somewhere, or just before a midnight.
fn draw_date(stream: &mut Stream) -> (i64, Option<usize>) {
    let before = stream.between(2_000_000, 45_000_000).cast_signed();
    let day = stream.between(1, 364) * DAY;
    match stream.between(0, 99) {
        0..=29 => {
            let number = usize::try_from(stream.between(0, CHANGES.len() as u64 - 1)).unwrap_or(0);
            let changes_at = CHANGES.get(number).map_or(YEAR_2026, |zone| zone.changes_at);
            (changes_at - before, Some(number))
        }
        30..=49 => {
            let zone = stream.pick(&STEADY).map_or(0, |zone| zone.before);
            (YEAR_2026 + day.cast_signed() - zone * 1_000_000 - before, None)
        }
        _ => (
            YEAR_2026 + (day + stream.between(0, DAY - 1)).cast_signed() - before,
            None,
        ),
    }
}

/// Mostly small; sometimes below the limit of doubt, sometimes beyond it.
fn draw_lie(stream: &mut Stream) -> u64 {
    match stream.between(0, 9) {
        0..=5 => 10_000_000,
        6 | 7 => 55_000_000,
        _ => 130_000_000,
    }
}

impl Families {
    fn draw(stream: &mut Stream) -> Families {
        let mut is_on = || stream.percent(50);
        Families {
            crash: is_on(),
            power: is_on(),
            pause: is_on(),
            clock: is_on(),
            away: is_on(),
            slow: is_on(),
            unknown: is_on(),
            sick: is_on(),
            target: is_on(),
            full: is_on(),
            net: is_on(),
            hands: is_on(),
        }
    }

    /// Names of those that are on.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            ("crash", self.crash),
            ("power", self.power),
            ("pause", self.pause),
            ("clock", self.clock),
            ("away", self.away),
            ("slow", self.slow),
            ("unknown", self.unknown),
            ("sick", self.sick),
            ("target", self.target),
            ("full", self.full),
            ("net", self.net),
            ("hands", self.hands),
        ];
        all.into_iter()
            .filter(|(_, is_on)| *is_on)
            .map(|(name, _)| name)
            .collect()
    }

    /// Whether nothing befalls the node or its store.
    pub fn is_calm(self) -> bool {
        let harmless = Families {
            target: false,
            hands: false,
            ..self
        };
        harmless == Families::default()
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "shards={} slots={} clients={} jobs={} schedules={} active={}s lease={}ms latency={}us change={} lie={}s{}{}{}{} faults={}",
            self.shards,
            self.slots,
            self.clients,
            self.jobs,
            self.schedules,
            self.active.as_millis() / 1_000,
            self.lease.as_millis(),
            self.latency,
            self.change.map_or("none".to_owned(), |number| number.to_string()),
            self.lie / 1_000_000,
            self.set_back
                .map_or(String::new(), |back| format!(" back={}s", back / 1_000_000)),
            if self.next_day { " next-day" } else { "" },
            match (self.apart, self.others) {
                (true, 0) => " store-apart".to_owned(),
                (true, 1) => " store-apart second-node".to_owned(),
                (true, others) => format!(" store-apart others={others}"),
                (false, _) => String::new(),
            },
            match (self.far_workers, self.owners_work) {
                (0, _) => String::new(),
                (1, true) => " worker-beside".to_owned(),
                (1, false) => " worker-alone".to_owned(),
                (count, true) => format!(" workers-beside={count}"),
                (count, false) => format!(" workers-alone={count}"),
            },
            self.faults.names().join("+"),
        )?;
        if self.remotes > 0 {
            write!(f, " remotes={}", self.remotes)?;
        }
        if let Some(plan) = &self.plan {
            write!(f, " {plan}")?;
        }
        if let Some(bug) = self.bug {
            write!(f, " bug={}", bug.name())?;
        }
        match self.without.is_empty() {
            true => Ok(()),
            false => write!(f, " without={}", self.without),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_is_off_in_about_half_of_the_seeds_and_all_are_off_in_some() {
        let drawn: Vec<Families> = (0..2_000).map(|seed| Options::draw(seed, None).faults).collect();
        let crashes = drawn.iter().filter(|faults| faults.crash).count();
        assert!((850..1_150).contains(&crashes), "{crashes}");
        assert!(drawn.iter().any(|faults| faults.is_calm()));
    }
}
