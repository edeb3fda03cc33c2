//! Query parameters and path segments, as strict as bodies: unknown and repeated ones are refused.
//!
//! Owns: reading them by name. Must never: guess. Next: `routes/`.

use super::fields::invalid;
use super::json::printable;
use super::text;
use crate::problem::Problem;
use axum::extract::{FromRequestParts, Path, Query};
use fencepost_core::ids::JobId;
use fencepost_core::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::StoreTime;
use hyper::http::request::Parts;

/// Query parameters that were not taken yet.
#[derive(Debug)]
pub struct Params {
    pairs: Vec<(String, String)>,
    asked: Vec<&'static str>,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params, Problem> {
        let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await else {
            let refusal = invalid(
                "query_invalid",
                "The query cannot be read.",
                "Percent-encode it as UTF-8.",
            );
            return Err(refusal.into());
        };
        Ok(Params {
            pairs,
            asked: Vec::new(),
        })
    }
}

impl Params {
    /// Takes a parameter.
    ///
    /// # Errors
    /// It comes twice.
    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, Refusal> {
        self.asked.push(name);
        let Some(at) = self.pairs.iter().position(|(key, _)| key == name) else {
            return Ok(None);
        };
        let (_, value) = self.pairs.swap_remove(at);
        if self.pairs.iter().any(|(key, _)| key == name) {
            let detail = "This parameter comes twice.";
            return Err(invalid("parameter_twice", detail, "Send it once.").at(name));
        }
        Ok(Some(value))
    }

    /// A name.
    ///
    /// # Errors
    /// It is none.
    pub fn name(&mut self, name: &'static str) -> Result<Option<Name>, Refusal> {
        self.text(name)?.map(|value| read_name(&value, name)).transpose()
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// It is none, or out of bounds.
    pub fn whole(&mut self, name: &'static str, low: u64, high: u64) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        let plain = !value.is_empty() && value.len() <= 20 && value.bytes().all(|b| b.is_ascii_digit());
        match value.parse::<u64>() {
            Ok(number) if plain && (low..=high).contains(&number) => Ok(Some(number)),
            _ => {
                let detail = format!("This parameter is a whole number from {low} to {high}.");
                Err(invalid("field_range", detail, "Correct it, or leave it out.").at(name))
            }
        }
    }

    /// `true` or `false`; false when not given.
    ///
    /// # Errors
    /// Another word.
    pub fn flag(&mut self, name: &'static str) -> Result<bool, Refusal> {
        match self.text(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid("field_word", "This parameter is true or false.", "Use true or false.").at(name)),
        }
    }

    /// One of a few words.
    ///
    /// # Errors
    /// Another word.
    pub fn word<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Result<Option<T>, Refusal> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        read_word(&value, words, name).map(Some)
    }

    /// Some of a few words, with commas between them; empty when not given.
    ///
    /// # Errors
    /// Another word.
    pub fn words<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Result<Vec<T>, Refusal> {
        match self.text(name)? {
            None => Ok(Vec::new()),
            Some(value) => value.split(',').map(|word| read_word(word, words, name)).collect(),
        }
    }

    /// An instant.
    ///
    /// # Errors
    /// It is none.
    pub fn instant(&mut self, name: &'static str) -> Result<Option<StoreTime>, Refusal> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        // An unencoded plus sign in an offset arrives as a blank.
        text::parse_instant(&value.replace(' ', "+"))
            .map(Some)
            .map_err(|refusal| refusal.at(name))
    }

    /// Items of a page.
    ///
    /// # Errors
    /// Out of bounds.
    pub fn limit(&mut self) -> Result<usize, Refusal> {
        let limit = self.whole("limit", 1, PAGE_ITEMS_MAX as u64)?;
        Ok(limit.map_or(PAGE_ITEMS_DEFAULT, |limit| limit as usize))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// A parameter that nobody asked for.
    pub fn end(self) -> Result<(), Refusal> {
        let Some((unknown, _)) = self.pairs.first() else {
            return Ok(());
        };
        let hint = match self.asked.as_slice() {
            [] => "This call takes no parameters.".to_owned(),
            asked => format!("Known here: {}.", asked.join(", ")),
        };
        Err(invalid("parameter_unknown", "This parameter is not known.", hint).at(printable(unknown)))
    }
}

fn read_word<T: Copy>(value: &str, words: &[(&str, T)], name: &'static str) -> Result<T, Refusal> {
    if let Some((_, found)) = words.iter().find(|(word, _)| *word == value) {
        return Ok(*found);
    }
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    let detail = format!("\"{}\" is not known here.", printable(value));
    Err(invalid("field_word", detail, format!("Use one of: {}.", known.join(", "))).at(name))
}

fn read_name(value: &str, field: &'static str) -> Result<Name, Refusal> {
    Name::new(value).map_err(|error| {
        let detail = super::fields::sentence(&error.to_string());
        let hint = "Use letters, digits, '.', '_' and '-'; begin with a letter or digit.";
        invalid("name_invalid", detail, hint).at(field)
    })
}

/// A job's id in the path.
#[derive(Clone, Copy, Debug)]
pub struct JobPath(pub JobId);

impl<S: Send + Sync> FromRequestParts<S> for JobPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<JobPath, Problem> {
        let segment = segment(parts, state).await?;
        if segment.is_empty() {
            return Err(empty_id().into());
        }
        let Some(id) = JobId::parse(&segment) else {
            let detail = "No job has this id.";
            let hint = "Use the id as the creation answered it: job_ and 32 lower-case hexadecimal digits.";
            return Err(Refusal::new(RefusalKind::NotFound, "job_not_found", detail, hint)
                .at("id")
                .into());
        };
        Ok(JobPath(id))
    }
}

/// A schedule's name in the path.
#[derive(Clone, Debug)]
pub struct SchedulePath(pub Name);

impl<S: Send + Sync> FromRequestParts<S> for SchedulePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<SchedulePath, Problem> {
        let segment = segment(parts, state).await?;
        if segment.is_empty() {
            return Err(empty_name().into());
        }
        Ok(SchedulePath(read_name(&segment, "name")?))
    }
}

/// What a path without an id is answered with.
pub fn empty_id() -> Refusal {
    let hint = "Name the job by its id, as the creation answered it.";
    invalid("id_missing", "The job's id is empty.", hint).at("id")
}

/// What a path without a name is answered with.
pub fn empty_name() -> Refusal {
    let hint = "Name the schedule; the list of schedules has their names.";
    invalid("name_invalid", "The schedule's name is empty.", hint).at("name")
}

async fn segment<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    let Ok(Path(segment)) = Path::<String>::from_request_parts(parts, state).await else {
        let refusal = invalid(
            "path_invalid",
            "The path cannot be read.",
            "Percent-encode it as UTF-8.",
        );
        return Err(refusal.into());
    };
    Ok(segment)
}
