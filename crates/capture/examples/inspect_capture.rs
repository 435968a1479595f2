//! Prints the connections of a capture as JSON: `inspect_capture FILE [KEYLOG]`.

use shakedown_capture::inspect::{Inspector, Limits};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let file = paths.next().ok_or("usage: inspect_capture FILE [KEYLOG]")?;
    let mut inspector = Inspector::open(&file, paths.next().as_deref(), Limits::default())?;
    let mut connections: Vec<_> = inspector.by_ref().collect();
    connections.sort_by_key(|connection| connection.index);
    println!("{}", serde_json::to_string_pretty(&connections)?);
    eprintln!("{:?}", inspector.summary());
    Ok(())
}
