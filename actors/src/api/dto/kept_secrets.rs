//! A mask that an edit sends back stands for the secret that is stored.
//!
//! Owns: which masks of an edit are put back. Must never: let a secret go to another address than the one it was given
//! for, or to another command, one in other surroundings, or one that is told something else (a shell runs what it
//! reads); there the mask stays, and is refused as everywhere else. Next: `target.rs`.

use super::target::{MASK, is_secret};
use crate::api::json::Json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::job::JobSpec;
use fencepost_core::target::{CommandTarget, Payload, Target};

/// Whether any text of a body is the mask.
pub fn holds_mask(json: &Json) -> bool {
    match json {
        Json::Text(_) => is_mask(json),
        Json::List(items) => items.iter().any(holds_mask),
        Json::Object(items) => items.iter().any(|(_, value)| holds_mask(value)),
        Json::Null | Json::Bool(_) | Json::Whole(_) | Json::Fraction(_) | Json::Raw(_) => false,
    }
}

fn is_mask(json: &Json) -> bool {
    matches!(json, Json::Text(text) if text == MASK)
}

/// Puts the stored secrets in place of their masks; says whether there were any.
pub fn put_back(body: &mut Json, stored: &JobSpec) -> bool {
    let Some(job) = field_mut(body, "job") else {
        return false;
    };
    let is_told_the_same = is_payload(job, &stored.payload);
    let Some(target) = field_mut(job, "target") else {
        return false;
    };
    let (map, pairs) = match &stored.target {
        Target::Http(http) if is_text(target, "type", "http") && is_text(target, "url", &http.url) => {
            ("headers", &http.headers)
        }
        Target::Command(command)
            if is_told_the_same && is_text(target, "type", "command") && runs_the_same(target, command) =>
        {
            ("env", &command.env)
        }
        Target::Http(_) | Target::Command(_) | Target::Handler(_) | Target::Remote(_) => return false,
    };
    let Some(Json::Object(sent)) = field_mut(target, map) else {
        return false;
    };
    let mut is_put_back = false;
    for (name, value) in sent.iter_mut().filter(|(name, _)| is_secret(name)) {
        let known = pairs.iter().find(|(known, _)| known == name);
        match known {
            Some((_, secret)) if is_mask(value) => {
                *value = Json::Text(secret.clone());
                is_put_back = true;
            }
            Some(_) | None => {}
        }
    }
    is_put_back
}

fn is_payload(job: &Json, payload: &Payload) -> bool {
    let coded = field(job, "payload_base64").filter(|coded| **coded != Json::Null);
    match (field(job, "payload"), coded) {
        (None, None) => payload.bytes.is_empty(),
        (Some(Json::Raw(raw)), None) => raw.as_bytes() == &*payload.bytes,
        (None, Some(Json::Text(coded))) => *coded == STANDARD.encode(&payload.bytes),
        _ => false,
    }
}

fn runs_the_same(target: &Json, command: &CommandTarget) -> bool {
    let argv = Json::List(command.argv.iter().cloned().map(Json::Text).collect());
    let directory = command.directory.clone().map_or(Json::Null, Json::Text);
    let given = |name: &str| field(target, name).unwrap_or(&Json::Null);
    let is_shell = *given("shell") == Json::Bool(true);
    let is_same = *given("argv") == argv && *given("directory") == directory && is_shell == command.shell;
    is_same && is_env(given("env"), &command.env)
}

/// Whether these are the stored variables, secrets by their masks or as they are.
fn is_env(sent: &Json, stored: &[(String, String)]) -> bool {
    let count = match sent {
        Json::Object(items) => items.len(),
        _ => 0,
    };
    let stands = |(name, text): &(String, String)| {
        is_text(sent, name, text) || (is_secret(name) && field(sent, name).is_some_and(is_mask))
    };
    count == stored.len() && stored.iter().all(stands)
}

fn is_text(json: &Json, name: &str, text: &str) -> bool {
    matches!(field(json, name), Some(Json::Text(given)) if given == text)
}

fn field<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    let Json::Object(items) = json else {
        return None;
    };
    items.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn field_mut<'a>(json: &'a mut Json, name: &str) -> Option<&'a mut Json> {
    let Json::Object(items) = json else {
        return None;
    };
    items.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
}
