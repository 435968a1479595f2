//! Options with their names on the command line of `shakedown`, as the fields that the core reads.

use lexopt::prelude::{Long, Short, Value, ValueExt};
use serde_json::{Map, Value as Json};
use shakedown_pki::date;
use std::ffi::OsString;

/// Type of an option's value.
#[derive(Clone, Copy)]
pub enum Kind {
    Text,
    Number,
    /// A whole number from 1.
    UpTo(u64),
    /// `2026-02-28`.
    Day,
    /// `10`, `10s`, `200ms`, `5min`.
    Seconds,
    /// `10`, `10/s`, `20/min`.
    PerSecond,
    OneOf(&'static [&'static str]),
    /// An option without a value: its presence means this.
    Flag(bool),
}

/// An option: its name or letter, its field and its type.
pub type Named = (&'static str, &'static str, Kind);

/// A parsed command line.
#[derive(Default)]
pub struct Given {
    pub fields: Map<String, Json>,
    pub words: Vec<String>,
    pub help: bool,
}

impl Given {
    pub fn text(&mut self, field: &str) -> Option<String> {
        match self.fields.remove(field) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// Parses a command line. An error is one line.
pub fn read(arguments: impl IntoIterator<Item = OsString>, known: &[Named]) -> Result<Given, String> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut given = Given::default();
    let one_line = |error: lexopt::Error| format!("{error}; see --help for what is accepted");
    while let Some(argument) = parser.next().map_err(one_line)? {
        let (dash, name) = match argument {
            Value(word) => {
                given.words.push(word.string().map_err(one_line)?);
                continue;
            }
            Long(name) => ("--", name.to_owned()),
            Short(letter) => ("-", letter.to_string()),
        };
        if matches!(&name[..], "h" | "help") {
            given.help = true;
            continue;
        }
        let Some(&(_, field, kind)) = known.iter().find(|(one, ..)| *one == name) else {
            return Err(format!("no option {dash}{name}; see --help for what is accepted"));
        };
        let value = match kind {
            Kind::Flag(present) => Json::Bool(present),
            kind => {
                let text = parser.value().and_then(ValueExt::string).map_err(one_line)?;
                value(&text, kind).ok_or_else(|| wrong(&name, &text, kind))?
            }
        };
        given.fields.insert(field.into(), value);
    }
    Ok(given)
}

fn value(text: &str, kind: Kind) -> Option<Json> {
    match kind {
        Kind::Text | Kind::Flag(_) => Some(text.into()),
        Kind::Number => match text.parse::<u64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => Some(number(text)?.into()),
        },
        Kind::UpTo(most) => text.parse().ok().filter(|number| (1..=most).contains(number)).map(Json::from),
        Kind::Day => date::parse(text).map(|_| text.into()),
        Kind::Seconds => scaled(text, &[("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("h", 3600.0)]),
        Kind::PerSecond => scaled(text, &[("/s", 1.0), ("/min", 1.0 / 60.0), ("/h", 1.0 / 3600.0)]),
        Kind::OneOf(words) => words.contains(&text).then(|| text.into()),
    }
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<Json> {
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) = found.unwrap_or((text, &1.0));
    Some((number(digits)? * factor).into())
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn wrong(name: &str, text: &str, kind: Kind) -> String {
    let accepted = match kind {
        Kind::Text | Kind::Flag(_) => "text".into(),
        Kind::Number => "a number from 0 up".into(),
        Kind::UpTo(most) => format!("1 to {most}"),
        Kind::Day => "a day as YYYY-MM-DD".into(),
        Kind::Seconds => "a time such as 10s or 200ms".into(),
        Kind::PerSecond => "a rate such as 300/s or 20/min".into(),
        Kind::OneOf(words) => words.join(", "),
    };
    format!("--{name} is '{text}'; accepted: {accepted}")
}
