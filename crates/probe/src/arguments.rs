//! The command line that times primitives.

use crate::options::{Given, Kind, Named};
use serde::Deserialize;
use std::path::PathBuf;

/// Text of `--help`.
pub const HELP: &str = "\
Times every cryptographic primitive that Shakedown's suites use on this device, and writes a device profile.

Usage: shakedown-probe [OPTIONS] [WORD]...
       shakedown-probe load TARGET [SUITE] [OPTIONS]     loads a server; load --help tells more
       shakedown-probe serve SUITE... [OPTIONS]          serves suites; serve --help tells more

WORDs narrow the list to primitives of which each word begins the operation, algorithm or parameters,
as in 'sign rsa' or 'ecdh p256'.

Options:
  -o, --out FILE       Write there instead of to standard output
      --name NAME      Name of the profile [default: this-machine, or FILE's name without .toml]
      --title TITLE    The device's name for people [default: the processor's]
      --date DATE      When the figures are taken, as YYYY-MM-DD [default: today]
      --seconds S      Longest time for each key or algorithm [default: 1; all in all under three minutes]
      --cache FOLDER   Where to keep RSA keys, which take long to make [default: ~/.cache/shakedown]
      --json           Write all figures as JSON instead of a profile
      --handshakes     Also measure handshakes of every protocol, for what the TLS stack takes beside primitives, and
                       connections over loopback; the JSON that is written then makes a profile by
                       'shakedown devices import'
      --rounds N       How often each of them is measured [default: 3]
      --list           List the primitives and time nothing
      --back-to-back   Time in loops of nothing else, as libraries' benchmarks do
  -q, --quiet          No progress on standard error
  -h, --help           This text
  -V, --version        Version
";

pub const OPTIONS: &[Named] = &[
    ("o", "out", Kind::Text),
    ("out", "out", Kind::Text),
    ("name", "name", Kind::Text),
    ("title", "title", Kind::Text),
    ("date", "date", Kind::Day),
    ("seconds", "seconds", Kind::Seconds),
    ("cache", "cache", Kind::Text),
    ("json", "json", Kind::Flag(true)),
    ("handshakes", "handshakes", Kind::Flag(true)),
    ("rounds", "rounds", Kind::UpTo(1000)),
    ("list", "list", Kind::Flag(true)),
    ("back-to-back", "back_to_back", Kind::Flag(true)),
    ("q", "quiet", Kind::Flag(true)),
    ("quiet", "quiet", Kind::Flag(true)),
    ("V", "version", Kind::Flag(true)),
    ("version", "version", Kind::Flag(true)),
];

/// Options of a measurement and its output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Arguments {
    pub filter: Vec<String>,
    pub out: Option<PathBuf>,
    name: Option<String>,
    pub title: Option<String>,
    pub date: Option<String>,
    pub seconds: Option<f64>,
    pub cache: Option<PathBuf>,
    pub json: bool,
    handshakes: bool,
    rounds: Option<usize>,
    pub list: bool,
    pub back_to_back: bool,
    pub quiet: bool,
    pub version: bool,
}

impl Arguments {
    pub fn of(given: Given) -> Result<Self, String> {
        let read: Self =
            serde_json::from_value(given.fields.into()).map_err(|error| format!("options: {error}"))?;
        if read.rounds.is_some() && !read.handshakes {
            return Err("--rounds requires --handshakes".into());
        }
        Ok(Self { filter: given.words, ..read })
    }

    /// Number of rounds of handshakes; 0 without `--handshakes`.
    pub fn rounds(&self) -> usize {
        if self.handshakes { self.rounds.unwrap_or(3) } else { 0 }
    }

    /// Name of the profile.
    pub fn name(&self) -> String {
        let of_file = self.out.as_ref().and_then(|path| path.file_stem()?.to_str());
        self.name.as_deref().or(of_file).unwrap_or("this-machine").to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::options;

    fn of(words: &[&str]) -> Result<Arguments, String> {
        Arguments::of(options::read(words.iter().map(Into::into), OPTIONS)?)
    }

    #[test]
    fn options_and_words_are_parsed() {
        let words =
            ["sign", "--seconds=0.25s", "-o", "out/my-board.toml", "rsa", "--date", "2026-02-28", "-q"];
        let read = of(&words).unwrap();
        assert_eq!(read.filter, ["sign", "rsa"]);
        assert_eq!((read.seconds, read.name(), read.quiet), (Some(0.25), "my-board".into(), true));
        assert_eq!(read.date.as_deref(), Some("2026-02-28"));
        assert_eq!(of(&[]).unwrap().name(), "this-machine");
        assert_eq!(of(&["--name", "x", "-o", "y.toml"]).unwrap().name(), "x");
        for (words, rounds) in [(&[][..], 0), (&["--handshakes"], 3), (&["--rounds", "7", "--handshakes"], 7)]
        {
            assert_eq!(of(words).unwrap().rounds(), rounds);
        }
        assert!(of(&["--list", "sign"]).unwrap().list && of(&["-V"]).unwrap().version);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (words, named) in [
            (&["--frobnicate"][..], "--frobnicate"),
            (&["--seconds", "nan"][..], "'nan'"),
            (&["--seconds"][..], "--seconds"),
            (&["--date", "yesterday"][..], "yesterday"),
            (&["--quiet=yes"][..], "yes"),
            (&["--rounds", "0", "--handshakes"][..], "'0'"),
            (&["--rounds", "3"][..], "--handshakes"),
        ] {
            let wrong = of(words).unwrap_err();
            let helps = wrong.contains("accepted") || wrong.contains("requires");
            assert!(wrong.contains(named) && helps && !wrong.contains('\n'), "{wrong}");
        }
    }
}
