//! What of a seed's story is left out: faults by number, families of faults, clients, jobs, schedules.
//!
//! Owns: the words for it (`fault:3:1500000`, `family:slow`, `client:0`, `job:c0-3`, `schedule:1`), which are an
//! option of a run and part of a bundle. Must never: move what stays: a fault that is left out passes the time that
//! it took, and each fault and each job draws from a stream of its own. Next: `cli/shrink.rs`, `world/faults.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Families that are drawn call by call, whose single faults have no number.
pub const FAMILIES: &[&str] = &["slow", "unknown", "sick", "target", "hands"];

/// What is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without {
    items: BTreeSet<Item>,
    faults: BTreeMap<u64, u64>,
}

/// One thing that can be left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A client with all its jobs.
    Client(u64),
    /// A schedule with all that is done to it.
    Schedule(u64),
    /// A family of `FAMILIES`.
    Family(&'static str),
    /// A fault by its number, and how long it took in simulated microseconds.
    Fault(u64, u64),
    /// A client's job, or batch of jobs, by its name.
    Job(String),
}

impl Without {
    /// What is left out, in all.
    pub fn of(items: impl IntoIterator<Item = Item>) -> Without {
        let items: BTreeSet<Item> = items.into_iter().collect();
        let faults = items.iter().filter_map(|item| match item {
            Item::Fault(number, lasts) => Some((*number, *lasts)),
            Item::Client(_) | Item::Schedule(_) | Item::Family(_) | Item::Job(_) => None,
        });
        let faults = faults.collect();
        Without { items, faults }
    }

    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Everything that is left out.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    /// The time that passes in the place of a fault that is left out.
    pub fn fault(&self, number: u64) -> Option<u64> {
        self.faults.get(&number).copied()
    }

    /// Whether a client is left out.
    pub fn has_client(&self, number: u64) -> bool {
        self.items.contains(&Item::Client(number))
    }

    /// Whether a schedule is left out.
    pub fn has_schedule(&self, number: u64) -> bool {
        self.items.contains(&Item::Schedule(number))
    }

    /// Whether a job is left out.
    pub fn has_job(&self, intent: &str) -> bool {
        self.items.contains(&Item::Job(intent.to_owned()))
    }

    /// Families that are left out.
    pub fn families(&self) -> Vec<&'static str> {
        let families = self.items.iter().filter_map(|item| match item {
            Item::Family(name) => Some(*name),
            Item::Client(_) | Item::Schedule(_) | Item::Fault(..) | Item::Job(_) => None,
        });
        families.collect()
    }
}

impl Item {
    /// Whether only a story that the seed draws whole has such a thing.
    pub fn is_of_the_swarm(&self) -> bool {
        match self {
            Item::Client(_) | Item::Family(_) => true,
            Item::Schedule(_) | Item::Fault(..) | Item::Job(_) => false,
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Client(number) => write!(f, "client:{number}"),
            Item::Schedule(number) => write!(f, "schedule:{number}"),
            Item::Family(name) => write!(f, "family:{name}"),
            Item::Fault(number, lasts) => write!(f, "fault:{number}:{lasts}"),
            Item::Job(intent) => write!(f, "job:{intent}"),
        }
    }
}

impl FromStr for Item {
    type Err = String;

    fn from_str(text: &str) -> Result<Item, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let number = |text: &str| text.parse::<u64>().ok();
        let read = match kind {
            "client" => number(rest).map(Item::Client),
            "schedule" => number(rest).map(Item::Schedule),
            "family" => FAMILIES
                .iter()
                .find(|name| **name == rest)
                .map(|name| Item::Family(name)),
            "fault" => {
                let (no, lasts) = rest.split_once(':').unwrap_or((rest, "0"));
                number(no).zip(number(lasts)).map(|(no, lasts)| Item::Fault(no, lasts))
            }
            "job" if !rest.is_empty() => Some(Item::Job(rest.to_owned())),
            _ => None,
        };
        read.ok_or_else(|| {
            let families = FAMILIES.join(", ");
            format!(
                "{text} cannot be left out; it is fault:NUMBER:MICROSECONDS, family:NAME ({families}), client:N, job:NAME or \
                 schedule:N"
            )
        })
    }
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.items.iter().map(ToString::to_string).collect();
        f.write_str(&items.join(","))
    }
}

impl FromStr for Without {
    type Err = String;

    fn from_str(text: &str) -> Result<Without, String> {
        let items = text.split(',').filter(|item| !item.is_empty()).map(str::parse);
        let items: Vec<Item> = items.collect::<Result<_, String>>()?;
        Ok(Without::of(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_read_back() {
        let text = "client:1,schedule:0,family:slow,fault:3:1500000,job:c0-3";
        let without: Without = text.parse().unwrap();
        assert_eq!(without.to_string(), text);
        assert_eq!(without.fault(3), Some(1_500_000));
        assert_eq!(without.families(), ["slow"]);
        assert!(without.has_client(1) && without.has_schedule(0) && without.has_job("c0-3"));
        assert!(!without.has_client(0) && !without.has_job("c0-4"));
    }

    #[test]
    fn mistakes_say_what_can_be_left_out() {
        for text in ["fault", "fault:x:1", "family:crash", "job:", "client:", "cloud:1"] {
            let why = text.parse::<Without>().expect_err(text);
            assert!(why.contains("cannot be left out"), "{why}");
        }
    }
}
