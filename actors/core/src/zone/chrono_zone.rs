//! Our zones as chrono's `TimeZone`, for formatting and for libraries that ask for one.
//!
//! Owns: the adapter, nothing else; every answer comes from `Zone`.

use std::sync::Arc;

use chrono::{FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone};

use super::{LocalInstants, LocalSeconds, UnixSeconds, Zone};

/// A shared zone that chrono can work with.
#[derive(Debug, Clone)]
pub struct ZoneRef(pub Arc<Zone>);

/// An offset of a zone, and the zone it belongs to.
#[derive(Debug, Clone)]
pub struct ZoneOffset {
    zone: Arc<Zone>,
    fixed: FixedOffset,
}

impl std::fmt::Display for ZoneOffset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fixed.fmt(f)
    }
}

impl Offset for ZoneOffset {
    fn fix(&self) -> FixedOffset {
        self.fixed
    }
}

impl ZoneRef {
    fn offset(&self, at: UnixSeconds) -> ZoneOffset {
        let fixed = FixedOffset::east_opt(self.0.offset_at(at));
        // chrono holds offsets below 24 hours; the zone tests show that no zone has more.
        ZoneOffset {
            zone: Arc::clone(&self.0),
            fixed: fixed.unwrap_or(chrono::Utc.fix()),
        }
    }
}

impl TimeZone for ZoneRef {
    type Offset = ZoneOffset;

    fn from_offset(offset: &ZoneOffset) -> Self {
        Self(Arc::clone(&offset.zone))
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> MappedLocalTime<ZoneOffset> {
        self.offset_from_local_datetime(&NaiveDateTime::from(*local))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<ZoneOffset> {
        match self.0.local_to_instants(LocalSeconds::from_naive(*local)) {
            LocalInstants::Gap { .. } => MappedLocalTime::None,
            LocalInstants::One(at) => MappedLocalTime::Single(self.offset(at)),
            LocalInstants::Two(first, second) => MappedLocalTime::Ambiguous(self.offset(first), self.offset(second)),
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> ZoneOffset {
        self.offset_from_utc_datetime(&NaiveDateTime::from(*utc))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> ZoneOffset {
        self.offset(UnixSeconds(utc.and_utc().timestamp()))
    }
}
