//! Matching times of day, as bits: the next one, the one before, how many.
//!
//! Owns: the arithmetic within one day. Must never: know a date.

/// Matching times of day, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub seconds: u64,
    pub minutes: u64,
    pub hours: u64,
}

impl Times {
    pub(super) fn first(self) -> u32 {
        self.next(0).unwrap_or(0)
    }

    pub(super) fn last(self) -> u32 {
        self.previous(86_399).unwrap_or(0)
    }

    pub(super) fn per_day(self) -> u64 {
        let ones = |bits: u64| u64::from(bits.count_ones());
        ones(self.hours) * ones(self.minutes) * ones(self.seconds)
    }

    /// The first matching second of the day at or after one.
    pub(super) fn next(self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = bit_at_or_after(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = bit_at_or_after(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + self.seconds.trailing_zeros());
            }
        }
        let hour = bit_at_or_after(self.hours, hour + 1)?;
        Some(hour * 3600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros())
    }

    /// The last matching second of the day at or before one.
    pub(super) fn previous(self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let last_second = bit_before(self.seconds, 64)?;
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = bit_before(self.seconds, second + 1)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = bit_before(self.minutes, minute) {
                return Some(hour * 3600 + minute * 60 + last_second);
            }
        }
        let hour = bit_before(self.hours, hour)?;
        Some(hour * 3600 + bit_before(self.minutes, 64)? * 60 + last_second)
    }

    /// How many matching seconds of the day lie before one.
    pub(super) fn count_before(self, second_of_day: u32) -> u64 {
        let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        let below = |bits: u64, end: u32| u64::from((bits & ((1_u64 << end) - 1)).count_ones());
        let ones = |bits: u64| u64::from(bits.count_ones());
        let mut count = below(self.hours, hour) * ones(self.minutes) * ones(self.seconds);
        if self.hours >> hour & 1 == 1 {
            count += below(self.minutes, minute) * ones(self.seconds);
            if self.minutes >> minute & 1 == 1 {
                count += below(self.seconds, second);
            }
        }
        count
    }
}

fn bit_at_or_after(bits: u64, from: u32) -> Option<u32> {
    let rest = bits.checked_shr(from)?;
    (rest != 0).then(|| from + rest.trailing_zeros())
}

pub(super) fn bit_before(bits: u64, end: u32) -> Option<u32> {
    let rest = if end >= 64 { bits } else { bits & ((1 << end) - 1) };
    (rest != 0).then(|| 63 - rest.leading_zeros())
}
