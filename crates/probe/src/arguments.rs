//! The command line.

use lexopt::prelude::{Long, Short, Value, ValueExt};
use shakedown_pki::date;
use shakedown_stacks::primitives::Options;
use std::ffi::OsString;
use std::path::PathBuf;

/// What `--help` says.
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

#[derive(Debug)]
pub enum Request {
    Help,
    Version,
    List(Vec<String>),
    Measure(Arguments),
}

/// How to measure, and where to put it.
#[derive(Debug, Default)]
pub struct Arguments {
    pub options: Options,
    pub out: Option<PathBuf>,
    pub name: String,
    pub title: Option<String>,
    pub date: Option<String>,
    pub json: bool,
    pub quiet: bool,
    /// How often handshakes are measured; none are where it is 0.
    pub rounds: usize,
}

const DEFAULT_NAME: &str = "this-machine";
const DEFAULT_ROUNDS: usize = 3;
const MAX_ROUNDS: usize = 1000;

/// Reads the command line; what is wrong is said in one line.
pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
    let mut parser = lexopt::Parser::from_iter(arguments);
    let mut read = Arguments::default();
    let mut name = None;
    let mut list = false;
    let (mut handshakes, mut rounds) = (false, None);
    let text = |value: Result<OsString, lexopt::Error>| value.and_then(ValueExt::string).map_err(one_line);
    while let Some(argument) = parser.next().map_err(one_line)? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Short('V') | Long("version") => return Ok(Request::Version),
            Short('o') | Long("out") => read.out = Some(parser.value().map_err(one_line)?.into()),
            Short('q') | Long("quiet") => read.quiet = true,
            Long("name") => name = Some(text(parser.value())?),
            Long("title") => read.title = Some(text(parser.value())?),
            Long("date") => read.date = Some(day(text(parser.value())?)?),
            Long("seconds") => read.options.seconds = seconds(&text(parser.value())?)?,
            Long("cache") => read.options.cache = Some(parser.value().map_err(one_line)?.into()),
            Long("json") => read.json = true,
            Long("list") => list = true,
            Long("handshakes") => handshakes = true,
            Long("rounds") => rounds = Some(self::rounds(&text(parser.value())?)?),
            Long("back-to-back") => read.options.back_to_back = true,
            Value(word) => read.options.filter.push(text(Ok(word))?),
            other => return Err(format!("{}; see --help for what is accepted", other.unexpected())),
        }
    }
    if list {
        return Ok(Request::List(read.options.filter));
    }
    if rounds.is_some() && !handshakes {
        return Err("--rounds requires --handshakes".into());
    }
    if handshakes {
        read.rounds = rounds.unwrap_or(DEFAULT_ROUNDS);
    }
    let of_file = read.out.as_ref().and_then(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    read.name = name.or(of_file).unwrap_or_else(|| DEFAULT_NAME.to_owned());
    Ok(Request::Measure(read))
}

fn one_line(error: lexopt::Error) -> String {
    format!("{error}; see --help for what is accepted")
}

fn day(text: String) -> Result<String, String> {
    if date::parse(&text).is_some() {
        Ok(text)
    } else {
        Err(format!("--date is '{text}'; accepted: a day as YYYY-MM-DD"))
    }
}

fn rounds(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_ROUNDS).contains(number));
    number.ok_or_else(|| format!("--rounds is '{text}'; accepted: 1 to {MAX_ROUNDS}"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    number
        .filter(|seconds| *seconds > 0.0 && *seconds <= 3600.0)
        .ok_or_else(|| format!("--seconds is '{text}'; accepted: more than 0, up to 3600"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(words: &[&str]) -> Result<Request, String> {
        read(std::iter::once("shakedown-probe").chain(words.iter().copied()).map(OsString::from))
    }

    fn measure(words: &[&str]) -> Arguments {
        match of(words) {
            Ok(Request::Measure(arguments)) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    #[allow(clippy::float_cmp)] // exact in binary
    fn options_and_words() {
        let read = measure(&[
            "sign",
            "--seconds=0.25s",
            "-o",
            "out/my-board.toml",
            "rsa",
            "--date",
            "2026-02-28",
            "-q",
        ]);
        assert_eq!(read.options.filter, ["sign", "rsa"]);
        assert_eq!((read.options.seconds, read.name.as_str(), read.quiet), (0.25, "my-board", true));
        assert_eq!(read.date.as_deref(), Some("2026-02-28"));
        assert_eq!(measure(&[]).name, DEFAULT_NAME);
        assert_eq!(measure(&[]).rounds, 0);
        assert_eq!(measure(&["--handshakes"]).rounds, DEFAULT_ROUNDS);
        assert_eq!(measure(&["--rounds", "7", "--handshakes"]).rounds, 7);
        assert_eq!(measure(&["--name", "x", "-o", "y.toml"]).name, "x");
        assert!(matches!(of(&["--list", "sign"]), Ok(Request::List(words)) if words == ["sign"]));
        assert!(matches!(of(&["--version"]), Ok(Request::Version)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, named) in [
            (&["--frobnicate"][..], "--frobnicate"),
            (&["--seconds", "0"][..], "'0'"),
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
