//! One measured figure, and the target it is held against.
//!
//! Owns: the JSON line. Must never: hold a figure that was not measured. Next: `docs/performance.md`.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

/// One measured figure.
#[derive(Debug)]
pub struct Figure {
    /// Which bench.
    pub bench: Cow<'static, str>,
    /// What.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// What it should be, where the design says so.
    pub target: Option<Target>,
}

/// A bound of the design, edge included.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(bound) => value >= bound,
            Target::AtMost(bound) => value <= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Target::AtLeast(bound) => format!(">= {bound}"),
            Target::AtMost(bound) => format!("<= {bound}"),
        }
    }
}

impl Figure {
    /// Without a target.
    pub fn new(bench: impl Into<Cow<'static, str>>, name: &'static str, value: f64, unit: &'static str) -> Figure {
        Figure {
            bench: bench.into(),
            name,
            value,
            unit,
            target: None,
        }
    }

    /// With one.
    pub fn against(mut self, target: Target) -> Figure {
        self.target = Some(target);
        self
    }

    /// Writes it as one line.
    pub fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let (bench, name, value, unit) = (&self.bench, self.name, self.value, self.unit);
        write!(
            out,
            r#"{{"bench":"{bench}","figure":"{name}","value":{value:.3},"unit":"{unit}""#
        )?;
        if let Some(target) = self.target {
            let (text, met) = (target.text(), target.is_met(value));
            write!(out, r#","target":"{text}","met":{met}"#)?;
        }
        writeln!(out, "}}")?;
        out.flush()
    }
}

/// Things per second.
pub fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-6)
}

/// The middle of two measurements.
pub fn mean(first: f64, second: f64) -> f64 {
    f64::midpoint(first, second)
}
