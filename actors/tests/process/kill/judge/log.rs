//! Reads the two logs back into what was seen.
//!
//! Owns: the form of the lines. Each is one JSON object with `at`, its place in the one order of both files.
//!
//! Requests: `{"at", "n", "client", "method", "path", "key"?, "wall", "body"?}` as it is sent,
//! `{"at", "n", "status", "body"}` or `{"at", "n", "answer": "none" | "not_sent"}` as it is settled,
//! `{"at", "kill": PID}` before a kill. Sink: `{"at", "call", "path", "token", "scheduled_for", "body"}` as it
//! arrives, `{"at", "call", "guard": "applied" | "already" | "stale"}` after the guard spoke.
//! Must never: forgive a line that it does not understand. Next: `verdict.rs`.

use crate::history::{End, EndFate, EndJob, EndSchedule, Event};
use crate::verdict::effect_of;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

type Why = String;

/// Events of both logs in one order, and the last whole answers.
pub fn read(requests: &Path, sink: &Path) -> Result<(Vec<Event>, End), Why> {
    let (mut requests, mut sink) = (Lines::open(requests)?, Lines::open(sink)?);
    let mut reader = Reader::default();
    loop {
        let is_sink = sink.place() < requests.place();
        let Some((at, line)) = (if is_sink { &mut sink } else { &mut requests }).take()? else {
            break;
        };
        let taken = if is_sink {
            reader.take_call(&line)
        } else {
            reader.take_request(&line)
        };
        taken.map_err(|why| format!("line {at}: {why}: {line}"))?;
    }
    let end = reader.end()?;
    Ok((reader.events, end))
}

/// The lines of a log, one ahead.
struct Lines {
    lines: std::io::Lines<BufReader<File>>,
    next: Option<(u64, Value)>,
}

impl Lines {
    fn open(path: &Path) -> Result<Lines, Why> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut lines = Lines {
            lines: BufReader::new(file).lines(),
            next: None,
        };
        lines.take()?;
        Ok(lines)
    }

    /// Of the next line; past all others at the end.
    fn place(&self) -> u64 {
        self.next.as_ref().map_or(u64::MAX, |(at, _)| *at)
    }

    fn take(&mut self) -> Result<Option<(u64, Value)>, Why> {
        let Some(text) = self.lines.next() else {
            return Ok(self.next.take());
        };
        let text = text.map_err(|error| error.to_string())?;
        let line: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        let at = line["at"].as_u64().ok_or_else(|| format!("no place: {text}"))?;
        let taken = self.next.replace((at, line));
        if taken.as_ref().is_some_and(|(before, _)| *before >= at) {
            return Err(format!("out of order: {text}"));
        }
        Ok(taken)
    }
}

/// A request that was sent.
struct Asked {
    client: usize,
    method: String,
    path: String,
    key: String,
    body: Value,
    wall: i64,
}

#[derive(Default)]
struct Reader {
    events: Vec<Event>,
    /// By number.
    asked: BTreeMap<u64, Asked>,
    /// Key by the id that its creation was acknowledged with.
    keys: BTreeMap<String, String>,
    /// Effect by call.
    calls: BTreeMap<u64, String>,
    /// Spacing by name of a schedule that was made.
    schedules: BTreeMap<String, i64>,
    /// When its pause was first asked for.
    paused: BTreeMap<String, i64>,
    /// The last answer about a schedule.
    facts: BTreeMap<String, Value>,
    /// Items of the last reading of a list, whether the reading came to its end.
    lists: BTreeMap<String, (Vec<Value>, bool)>,
}

impl Reader {
    fn take_request(&mut self, line: &Value) -> Result<(), Why> {
        if line["kill"].is_u64() {
            self.events.push(Event::Kill);
            return Ok(());
        }
        let n = line["n"].as_u64().ok_or("no number")?;
        if line["method"].is_string() {
            return self.take_sent(n, line);
        }
        let asked = self.asked.remove(&n).ok_or("an answer to nothing")?;
        match (line["status"].as_u64(), line["answer"].as_str()) {
            (Some(status), None) => self.take_answer(&asked, status, &line["body"]),
            (None, Some(why @ ("none" | "not_sent"))) => {
                if asked.is_creation() {
                    let (client, key) = (asked.client, asked.key);
                    self.events.push(if why == "none" {
                        Event::Unanswered { client, key }
                    } else {
                        Event::Refused { client, key }
                    });
                }
                Ok(())
            }
            _ => Err("neither an answer nor the lack of one".into()),
        }
    }

    fn take_sent(&mut self, n: u64, line: &Value) -> Result<(), Why> {
        let asked = Asked {
            client: line["client"].as_u64().ok_or("no client")? as usize,
            method: text(&line["method"])?,
            path: text(&line["path"])?,
            key: line["key"].as_str().unwrap_or_default().to_owned(),
            body: line["body"].clone(),
            wall: line["wall"].as_i64().ok_or("no instant")?,
        };
        if asked.is_creation() {
            self.events.push(Event::Sent {
                client: asked.client,
                key: asked.key.clone(),
            });
        }
        if let Some(name) = asked.schedule().and_then(|rest| rest.strip_suffix("/pause")) {
            self.paused.entry(name.to_owned()).or_insert(asked.wall);
        }
        match self.asked.insert(n, asked) {
            None => Ok(()),
            Some(_) => Err("a number used twice".into()),
        }
    }

    fn take_answer(&mut self, asked: &Asked, status: u64, body: &Value) -> Result<(), Why> {
        match asked.method.as_str() {
            "POST" if asked.is_creation() => self.take_creation(asked, status, body),
            "POST" if asked.path == "/v1/schedules" && status == 201 => {
                let every = spacing(&asked.body).ok_or("a rule that this judge cannot walk")?;
                self.schedules.insert(text(&asked.body["name"])?, every);
                Ok(())
            }
            "GET" if asked.path.starts_with("/v1/jobs/") => self.take_state(asked, status, body),
            "GET" if status == 200 => self.take_page(asked, body),
            _ => Ok(()),
        }
    }

    fn take_creation(&mut self, asked: &Asked, status: u64, body: &Value) -> Result<(), Why> {
        let (client, key) = (asked.client, asked.key.clone());
        if status == 200 || status == 201 {
            let id = text(&body["id"])?;
            self.keys.insert(id.clone(), key.clone());
            self.events.push(Event::Acknowledged { client, key, id });
        } else {
            self.events.push(Event::Refused { client, key });
        }
        Ok(())
    }

    fn take_state(&mut self, asked: &Asked, status: u64, body: &Value) -> Result<(), Why> {
        let id = asked.path.trim_start_matches("/v1/jobs/");
        let key = self.keys.get(id).ok_or("a job that nobody was told of")?.clone();
        let state = match status {
            200 => text(&body["state"])?,
            404 => "missing".to_owned(),
            _ => return Ok(()),
        };
        self.events.push(Event::Seen { key, state });
        Ok(())
    }

    fn take_page(&mut self, asked: &Asked, body: &Value) -> Result<(), Why> {
        let Some(items) = body["items"].as_array() else {
            if let Some(name) = asked.schedule() {
                self.facts.insert(name.to_owned(), body.clone());
            }
            return Ok(());
        };
        let (list, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        if query.contains("state=") {
            return Ok(());
        }
        let (all, is_whole) = self.lists.entry(list.to_owned()).or_default();
        if !query.contains("cursor=") {
            all.clear();
        }
        all.extend(items.iter().cloned());
        *is_whole = body["next"].is_null();
        Ok(())
    }

    fn take_call(&mut self, line: &Value) -> Result<(), Why> {
        let call = line["call"].as_u64().ok_or("no call")?;
        if let Some(path) = line["path"].as_str() {
            let effect = match path.strip_prefix("/fired/") {
                Some(schedule) => effect_of(schedule, micros(&line["scheduled_for"])?),
                None => text(&line["body"]["key"])?,
            };
            self.calls.insert(call, effect.clone());
            let token = text(&line["token"])?;
            self.events.push(Event::Arrived { effect, token });
            return Ok(());
        }
        let effect = self.calls.get(&call).ok_or("a word on no call")?.clone();
        self.events.push(match line["guard"].as_str() {
            Some("applied") => Event::Applied { effect },
            Some("already") => Event::Already { effect },
            Some("stale") => Event::Stale { effect },
            _ => return Err("not a word of the guard".into()),
        });
        Ok(())
    }

    /// The last whole reading of everything.
    fn end(&self) -> Result<End, Why> {
        let jobs = self.list("/v1/jobs")?.iter().map(job).collect::<Result<_, Why>>()?;
        let schedules = self.schedules.iter();
        let schedules = schedules.map(|(name, every)| self.schedule(name, *every));
        Ok(End {
            jobs,
            schedules: schedules.collect::<Result<_, Why>>()?,
        })
    }

    fn list(&self, path: &str) -> Result<&[Value], Why> {
        match self.lists.get(path) {
            Some((items, true)) => Ok(items),
            _ => Err(format!("{path} was never read to its end")),
        }
    }

    fn schedule(&self, name: &str, every: i64) -> Result<EndSchedule, Why> {
        let facts = self.facts.get(name).ok_or_else(|| format!("{name} was never read"))?;
        let asked_at = self
            .paused
            .get(name)
            .ok_or_else(|| format!("{name} was never paused"))?;
        let fates = self.list(&format!("/v1/schedules/{name}/fates"))?;
        Ok(EndSchedule {
            name: name.to_owned(),
            every,
            created_at: micros(&facts["created_at"])?,
            asked_at: *asked_at,
            decided_until: micros(&facts["decided_until"])?,
            fates: fates.iter().map(fate).collect::<Result<_, Why>>()?,
        })
    }
}

impl Asked {
    fn is_creation(&self) -> bool {
        self.method == "POST" && self.path == "/v1/jobs"
    }

    /// What follows `/v1/schedules/`.
    fn schedule(&self) -> Option<&str> {
        self.path.strip_prefix("/v1/schedules/")
    }
}

fn text(value: &Value) -> Result<String, Why> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| "a text is missing".into())
}

/// An instant as microseconds since 1970.
fn micros(value: &Value) -> Result<i64, Why> {
    let text = text(value)?;
    let parsed = chrono::DateTime::parse_from_rfc3339(&text).map_err(|error| format!("{text:?}: {error}"))?;
    Ok(parsed.timestamp_micros())
}

/// The rules of these runs: every second by cron, or milliseconds from an anchor on a whole second.
fn spacing(rule: &Value) -> Option<i64> {
    if rule["cron"] == serde_json::json!(["* * * * * *"]) {
        return Some(1_000_000);
    }
    let whole = rule["anchor"].as_str()?.ends_with(":00Z");
    let millis: i64 = rule["every"].as_str()?.strip_suffix("ms")?.parse().ok()?;
    (whole && 1_000 % millis == 0).then_some(millis * 1_000)
}

fn job(item: &Value) -> Result<EndJob, Why> {
    let occurrence = &item["occurrence"];
    let occurrence = match occurrence.is_null() {
        true => None,
        false => Some((text(&occurrence["schedule"])?, micros(&occurrence["nominal_at"])?)),
    };
    Ok(EndJob {
        id: text(&item["id"])?,
        state: text(&item["state"])?,
        occurrence,
    })
}

fn fate(item: &Value) -> Result<EndFate, Why> {
    Ok(EndFate {
        from: micros(&item["from"])?,
        to: micros(&item["to"])?,
        kind: text(&item["fate"])?,
        count: item["count"].as_u64(),
    })
}
