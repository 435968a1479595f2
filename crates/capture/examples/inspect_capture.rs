//! Prints the connections of a capture as JSON: `inspect_capture FILE [KEYLOG]`.
//!
//! With `--count` instead of a key log, only the summary is printed and connections are dropped as they come.

use shakedown_capture::inspect::{Inspector, Limits};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(file), second) = (arguments.first(), arguments.get(1)) else {
        eprintln!("usage: inspect_capture FILE [KEYLOG | --count]");
        return ExitCode::from(2);
    };
    let count = second.is_some_and(|argument| argument == "--count");
    let key_log = second.filter(|_| !count).map(Path::new);
    let mut inspector = match Inspector::open(Path::new(file), key_log, Limits::default()) {
        Ok(inspector) => inspector,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if count {
        let messages: usize = inspector.by_ref().map(|connection| connection.messages.len()).sum();
        println!("{messages} messages, {:?}", inspector.summary());
    } else {
        let mut connections: Vec<_> = inspector.by_ref().collect();
        connections.sort_by_key(|connection| connection.index);
        let text = serde_json::to_string_pretty(&connections).unwrap_or_default();
        let _ = writeln!(std::io::stdout(), "{text}");
        eprintln!("{:?}", inspector.summary());
    }
    ExitCode::SUCCESS
}
