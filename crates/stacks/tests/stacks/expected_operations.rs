//! The table of expected operations compared with the stacks' operations: every suite of the catalogue, and every
//! protocol and key exchange in every authentication, mode and depth of chain.

use super::common;
use shakedown_stacks::{Registry, catalogue};
use shakedown_trace::suite::{Authentication, KeyExchange, LeafKind, Mode, Protocol};
use shakedown_trace::{Operation, Primitive, Side, Suite};
use std::collections::BTreeSet;
use std::fmt::Display;

/// An operation and the message to which it is attributed, in one line.
fn line(side: Side, primitive: Primitive, place: impl Display) -> String {
    let Primitive { operation, algorithm, parameters } = primitive;
    format!("{side} {} {algorithm} {parameters}, in {place}", operation.as_str())
}

/// One handshake's public-key calls, sorted.
fn recorded(suite: &Suite) -> Result<Vec<String>, String> {
    let trace = common::trace(suite, &common::settings())?;
    let calls = trace.operations.iter().filter(|one| {
        !one.primitive.operation.is_symmetric() && one.primitive.operation != Operation::Import
    });
    let mut lines: Vec<_> = calls
        .map(|one| match one.message.and_then(|index| trace.messages.get(index)) {
            Some(message) => line(one.side, one.primitive, format!("{}'s {}", message.from, message.name)),
            None => line(one.side, one.primitive, "no message"),
        })
        .collect();
    lines.sort();
    Ok(lines)
}

fn expected(suite: &Suite) -> Vec<String> {
    let rows = suite.operations();
    let mut lines: Vec<_> = rows
        .iter()
        .map(|one| line(one.side, one.primitive, format!("{}'s {}", one.from, one.message)))
        .collect();
    lines.sort();
    lines
}

fn compare(suites: impl Iterator<Item = Suite>) -> usize {
    let mut compared = 0;
    let mut failures = Vec::new();
    for suite in suites {
        compared += 1;
        match recorded(&suite) {
            Err(error) => failures.push(format!("{suite}: {error}")),
            Ok(done) => {
                let expected = expected(&suite);
                if done != expected {
                    failures.push(format!("{suite}\n  table {expected:#?}\n  ran   {done:#?}"));
                }
            }
        }
    }
    let first = failures.iter().take(8).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {compared}:\n{first}", failures.len());
    compared
}

#[test]
fn every_catalogue_suite_performs_the_expected_operations() {
    let offers = catalogue::suites(&Registry::default(), false);
    let compared = compare(offers.iter().map(|offer| offer.suite.parse().expect("offered suites parse")));
    assert!(compared > 1000, "only {compared} suites are offered");
}

/// The catalogue varies one part at a time; here authentication, mode and the chain vary together.
#[test]
fn combined_suite_parts_perform_the_expected_operations() {
    let mut names = BTreeSet::new();
    for (protocol, protocol_name) in Protocol::ALL {
        for &exchange in KeyExchange::of(protocol) {
            let word = if exchange == KeyExchange::Ephemeral { "x25519" } else { exchange.as_str() };
            let chains = match leaf(protocol, exchange) {
                Some(leaf) => (1..=3).map(|depth| format!("/{}", vec![leaf; depth + 1].join("@"))).collect(),
                None => vec![String::new()],
            };
            let authentications = match exchange.has_authentication() {
                true => Authentication::ALL.map(|(_, name)| format!("/{name}")).to_vec(),
                false => vec![String::new()],
            };
            for chain in &chains {
                for authentication in &authentications {
                    let modes = Mode::ALL.iter().map(|(_, mode)| mode);
                    names.extend(
                        modes.map(|mode| format!("{protocol_name}/{word}{chain}{authentication}/{mode}")),
                    );
                }
            }
        }
    }
    let suites = names.iter().filter_map(|name| name.parse::<Suite>().ok());
    let registry = Registry::default();
    let compared = compare(suites.filter(|suite| registry.supports(suite).is_ok()));
    assert!(compared > 400, "only {compared}");
}

/// A usual key of the type that a key exchange's certificates have.
fn leaf(protocol: Protocol, exchange: KeyExchange) -> Option<&'static str> {
    match exchange.leaf_kind()? {
        LeafKind::Rsa if exchange == KeyExchange::RsaAnon => None,
        LeafKind::Rsa => Some("rsa1024"),
        LeafKind::Dsa => Some("dsa1024"),
        LeafKind::Ec if protocol == Protocol::Wtls => Some("160p"),
        LeafKind::Ec | LeafKind::EcOrEdwards | LeafKind::Tls13 => Some("p256"),
    }
}
