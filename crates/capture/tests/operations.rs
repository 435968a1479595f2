//! Compares the operations derived for captured handshakes with those recorded in measured handshakes.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use shakedown_capture::report::{Connection, Message};
use shakedown_capture::trace;
use std::path::Path;

/// A connection with the messages of a recorded trace.
fn connection(recorded: &Value) -> Connection {
    let message = |value: &Value| Message {
        index: value["index"].as_u64().unwrap() as usize,
        from: if value["from"] == "client" { "client" } else { "server" },
        name: value["name"].as_str().unwrap().to_owned(),
        flight: value["flight"].as_u64().map(|flight| flight as u32),
        bytes: value["bytes"].as_f64().unwrap() as u64,
        time_s: 0.0,
        wait_s: 0.0,
        peer_s: None,
        network_s: None,
    };
    Connection {
        suite: recorded["suite"].as_str().map(str::to_owned),
        complete: true,
        messages: recorded["messages"].as_array().unwrap().iter().map(message).collect(),
        ..Connection::default()
    }
}

/// Side, message, operation, algorithm and parameters of public-key calls.
fn public_key(operations: &Value) -> Vec<String> {
    let symmetric = ["digest", "mac", "cipher", "prf", "import"];
    let mut told: Vec<String> = operations
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| !symmetric.contains(&one["operation"].as_str().unwrap()))
        .map(|one| {
            format!(
                "{} {} {} {} {}",
                one["side"], one["message"], one["operation"], one["algorithm"], one["parameters"]
            )
        })
        .collect();
    told.sort();
    told
}

#[test]
fn inferred_operations_match_the_recorded_ones() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/shakedown/data/traces.json");
    let text = std::fs::read_to_string(library).unwrap();
    let mut compared = 0;
    let mut wrong = Vec::new();
    for line in text.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let Some(suite) = recorded["suite"].as_str() else { continue };
        let made = serde_json::to_value(trace::of(&connection(&recorded)).unwrap()).unwrap();
        let (ours, theirs) = (public_key(&made["operations"]), public_key(&recorded["operations"]));
        compared += 1;
        if ours != theirs {
            wrong.push(format!("{suite}\n  rule {ours:?}\n  ran  {theirs:?}"));
        }
    }
    assert!(compared > 500, "{compared}");
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong.iter().take(6).cloned().collect::<Vec<_>>().join("\n")
    );
}
