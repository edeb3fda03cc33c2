//! How machines fared: down, starting, frozen, cut off, with a wrong clock, without room; from the trace.
//!
//! Owns: which events begin and end a state. Must never: guess: what no event ended lasts to the end of the run. Next:
//! `data.rs`.

use crate::trace::Event;
use serde::Serialize;
use std::collections::BTreeMap;

/// A stretch of a machine's life that is not plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// The machine.
    pub lane: String,
    /// `down`, `starting`, `paused`, `cut`, `clock`, `away`, `full`.
    pub kind: &'static str,
    /// From, in simulated microseconds since the run began.
    pub from: u64,
    /// To.
    pub to: u64,
    /// In words, for a person.
    pub label: String,
}

/// What an event does: states that end, and one that begins.
type Effect = (&'static [&'static str], Option<&'static str>);

/// Event and effect; `clock set` is apart.
const EFFECTS: &[(&str, Effect)] = &[
    ("killed", (&["paused", "starting"], Some("down"))),
    ("restarted", (&["down", "paused"], Some("starting"))),
    ("ready", (&["starting"], None)),
    ("works", (&["starting"], None)),
    ("paused", (&[], Some("paused"))),
    ("resumed", (&["paused"], None)),
    ("cut off", (&[], Some("cut"))),
    ("reachable", (&["cut"], None)),
    ("cut off from", (&[], Some("cut"))),
    ("reaches", (&["cut"], None)),
    ("away", (&[], Some("away"))),
    ("back", (&["away"], None)),
    ("full", (&[], Some("full"))),
    ("has room", (&["full"], None)),
    ("serves again", (&["away", "full"], None)),
];

/// What the names of machines begin with that say when they are ready: of others a start has no length.
const SAY_READY: &[&str] = &["server", "second", "third", "worker"];

/// Every state, up to the end of the run.
pub fn states(trace: &[Event], end: u64) -> Vec<State> {
    let mut open: BTreeMap<(String, &'static str), State> = BTreeMap::new();
    let mut done = Vec::new();
    for event in trace.iter().filter(|event| event.at <= end) {
        let (ends, begins) = effect(event);
        for kind in ends {
            if let Some(mut state) = open.remove(&(event.node.clone(), *kind)) {
                state.to = event.at;
                done.push(state);
            }
        }
        let says = begins != Some("starting") || SAY_READY.iter().any(|name| event.node.starts_with(name));
        if let Some(kind) = begins.filter(|_| says) {
            open.entry((event.node.clone(), kind)).or_insert_with(|| State {
                lane: event.node.clone(),
                kind,
                from: event.at,
                to: end,
                label: label(kind, event),
            });
        }
    }
    done.extend(open.into_values());
    done.retain(|state| state.from < state.to);
    done.sort_by_key(|state| (state.from, state.to));
    done
}

fn effect(event: &Event) -> Effect {
    if event.kind == "clock set" {
        let is_true = event.payload == "0";
        return (&["clock"], Some("clock").filter(|_| !is_true));
    }
    let found = EFFECTS.iter().find(|(kind, _)| *kind == event.kind);
    found.map_or((&[], None), |(_, effect)| *effect)
}

fn label(kind: &str, event: &Event) -> String {
    match kind {
        "down" => "process dead".to_owned(),
        "starting" => "starting".to_owned(),
        "paused" => "frozen".to_owned(),
        "cut" if event.kind == "cut off from" => format!("cut off from {}", event.payload),
        "cut" => format!("cut off from the network {}", event.payload)
            .trim_end()
            .to_owned(),
        "clock" => {
            let micros = event.payload.parse::<i64>().unwrap_or(0);
            let sign = if micros < 0 { "behind" } else { "ahead" };
            let tenths = micros.unsigned_abs() / 100_000;
            format!("wall clock {}.{} s {sign}", tenths / 10, tenths % 10)
        }
        "away" => "store does not answer".to_owned(),
        _ => "disk full".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(events: &[(u64, &str, &str, &str)]) -> Vec<(String, &'static str, u64, u64)> {
        let event = |(at, node, kind, payload): &(u64, &str, &str, &str)| {
            Event::from((*at, (*node).to_owned(), (*kind).to_owned(), (*payload).to_owned()))
        };
        let trace: Vec<Event> = events.iter().map(event).collect();
        let states = states(&trace, 100).into_iter();
        states
            .map(|state| (state.lane, state.kind, state.from, state.to))
            .collect()
    }

    #[test]
    fn a_kill_ends_a_freeze_and_lasts_until_the_restart() {
        let found = told(&[
            (1, "server", "restarted", ""),
            (2, "server", "ready", ""),
            (10, "server", "paused", ""),
            (20, "server", "killed", ""),
            (30, "server", "restarted", ""),
            (200, "server", "killed", ""),
        ]);
        let server = |kind, from, to| ("server".to_owned(), kind, from, to);
        assert_eq!(
            found,
            [
                server("starting", 1, 2),
                server("paused", 10, 20),
                server("down", 20, 30),
                server("starting", 30, 100)
            ]
        );
    }

    #[test]
    fn what_befalls_in_a_scenario_ends_by_its_own_words() {
        let found = told(&[
            (5, "third", "cut off from", "store in true out false"),
            (6, "store", "away", ""),
            (8, "third", "reaches", "store"),
            (9, "store", "serves again", ""),
            (10, "worker-2", "restarted", ""),
            (12, "worker-2", "works", ""),
        ]);
        let named: Vec<_> = found
            .iter()
            .map(|(lane, kind, from, to)| (lane.as_str(), *kind, *from, *to))
            .collect();
        assert_eq!(
            named,
            [
                ("third", "cut", 5, 8),
                ("store", "away", 6, 9),
                ("worker-2", "starting", 10, 12)
            ]
        );
    }

    #[test]
    fn a_clock_is_wrong_until_it_is_set_right() {
        let found = told(&[
            (5, "store", "clock set", "-1500000"),
            (7, "store", "clock set", "2000000"),
            (9, "store", "clock set", "0"),
        ]);
        let store = |from, to| ("store".to_owned(), "clock", from, to);
        assert_eq!(found, [store(5, 7), store(7, 9)]);
    }
}
