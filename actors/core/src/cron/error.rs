//! Why an expression is refused.
//!
//! Owns: the stable codes and the wording. Must never: be shown as Debug text.

use super::CronField;
use crate::refusal::{Refusal, RefusalKind};

/// The reason, without its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CronErrorKind {
    /// Longer than an expression may be.
    TooLong,
    /// Something else than printable ASCII, blanks and tabs.
    Character,
    /// Not 5, 6 or 7 fields.
    FieldCount,
    /// An `@word` we do not know.
    Macro,
    /// Nothing between two commas, or before or after them.
    EmptyItem,
    /// Not a value of this field.
    Value,
    /// A number outside the range of this field.
    Range,
    /// A range whose end lies before its start.
    Backward,
    /// A step behind a single value.
    StepBase,
    /// A `+` with nothing behind it.
    LonelyPlus,
    /// No date ever fits.
    Never,
    /// The date matcher did not take the dates; a fault of ours.
    Matcher,
}

impl CronErrorKind {
    /// The stable code that API and command line show.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLong => "cron_too_long",
            Self::Character => "cron_character",
            Self::FieldCount => "cron_field_count",
            Self::Macro => "cron_macro_unknown",
            Self::EmptyItem => "cron_item_empty",
            Self::Value => "cron_value",
            Self::Range => "cron_range",
            Self::Backward => "cron_range_backward",
            Self::StepBase => "cron_step_base",
            Self::LonelyPlus => "cron_plus_alone",
            Self::Never => "cron_never",
            Self::Matcher => "cron_matcher",
        }
    }
}

/// A refused expression: what, where and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CronError {
    /// The reason.
    pub kind: CronErrorKind,
    /// The field at fault.
    pub field: CronField,
    /// The first byte at fault, counted from 0 in the text as given.
    pub position: usize,
    /// The reason in words; begins with the name of the field.
    pub message: String,
    /// What would be accepted.
    pub hint: String,
}

impl CronError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// As a refusal; `place` names the expression, such as `schedule.cron[0]`.
    pub fn refusal(&self, place: &str) -> Refusal {
        let field = match self.field {
            CronField::Expression => place.to_owned(),
            field => format!("{place}.{}", field.name()),
        };
        Refusal::new(
            RefusalKind::Invalid,
            self.code(),
            self.message.clone(),
            self.hint.clone(),
        )
        .at(field)
    }
}
