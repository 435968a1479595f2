//! Unencrypted records of every form, at every step of every handshake and after it: an attacker who observes all
//! datagrams, but can neither alter nor suppress them, changes nothing.
//!
//! `hostile` injects random forgeries; this test injects all of them.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::record::Records;
use shakedown_wtls::*;
use std::time::Duration;
use support::flows::*;
use support::network::*;
use support::*;

/// Messages that begin a concurrent handshake. An address may have eight.
const BEGINNINGS: [HandshakeType; 2] = [HandshakeType::ClientHello, HandshakeType::ServerHello];

fn begins(number: u8) -> bool {
    BEGINNINGS.iter().any(|kind| kind.number() == number)
}

const SEQUENCES: [u16; 3] = [0, 2, u16::MAX];

/// Every content type, known or not, with every form of header.
fn of_every_content(random: &mut Seeded, all: &mut Vec<Vec<u8>>) {
    let mut junk = vec![0; 40];
    crypto::Random::fill(random, &mut junk);
    // One bit of the first byte marks protected records. It is not set here.
    for first in (0..=u8::MAX).filter(|first| first & 0x20 == 0) {
        for sequence in SEQUENCES {
            for fragment in [&[][..], &[1], &junk] {
                let mut raw = vec![first];
                if first & 0x40 != 0 {
                    raw.extend(sequence.to_be_bytes());
                }
                if first & 0x80 != 0 {
                    raw.extend((fragment.len() as u16).to_be_bytes());
                }
                raw.extend(fragment);
                all.push(raw);
            }
        }
    }
}

/// Every handshake message, known or not: with an empty body, a random one, and those that were observed.
fn of_every_message(random: &mut Seeded, seen: &[Vec<u8>], all: &mut Vec<Vec<u8>>) {
    let mut junk = vec![0; 70];
    crypto::Random::fill(random, &mut junk);
    let bodies: Vec<&[u8]> =
        seen.iter().filter(|message| message.len() > 3).map(|message| &message[3..]).collect();
    for number in 0..=u8::MAX {
        let begins = begins(number);
        for sequence in SEQUENCES.into_iter().take(if begins { 1 } else { SEQUENCES.len() }) {
            for body in [&[][..], &junk].into_iter().chain(bodies.iter().copied().filter(|_| !begins)) {
                let mut message = vec![number];
                message.extend((body.len() as u16).to_be_bytes());
                message.extend(body);
                all.push(plain(ContentType::Handshake, sequence, &message));
            }
        }
    }
}

/// Every alert, known or not, with the checksum of nothing, of an unknown record, and of each observed record.
fn of_every_alert(records: &[Vec<u8>], all: &mut Vec<Vec<u8>>) {
    let known = records.iter().map(|record| Checksum::of(record));
    let checksums: Vec<Checksum> = [Checksum::NOTHING, Checksum([9; 4])].into_iter().chain(known).collect();
    for description in 0..=u8::MAX {
        for level in [0, 1, 2, 3, u8::MAX] {
            for (number, checksum) in checksums.iter().enumerate() {
                let body = [&[level, description][..], &checksum.0].concat();
                all.push(plain(ContentType::Alert, SEQUENCES[number % SEQUENCES.len()], &body));
            }
        }
    }
}

/// The observed unencrypted records with other numbers. Messages that begin a handshake are unchanged.
fn again(records: &[Vec<u8>], messages: &[Vec<u8>], all: &mut Vec<Vec<u8>>) {
    for (record, message) in records.iter().zip(messages) {
        if message.first().is_some_and(|number| begins(*number)) {
            all.push(record.clone());
            continue;
        }
        for sequence in 0..8u16 {
            let mut again = record.clone();
            if again[0] & 0x40 != 0 && again.len() > 3 {
                again[1..3].copy_from_slice(&sequence.to_be_bytes());
            }
            all.push(again);
        }
    }
}

/// All records to inject at one step, given the observed datagrams.
fn everything(network: &Network, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Seeded::new(seed);
    let (mut records, mut messages) = (Vec::new(), Vec::new());
    for (_, datagram) in &network.sent {
        for record in Records::new(datagram).flatten().filter(|record| !record.record_type.is_protected()) {
            if !records.contains(&record.raw.to_vec()) {
                records.push(record.raw.to_vec());
                messages.push(record.fragment.to_vec());
            }
        }
    }
    let mut all = Vec::new();
    of_every_content(&mut random, &mut all);
    of_every_message(&mut random, &messages, &mut all);
    of_every_alert(&records, &mut all);
    again(&records, &messages, &mut all);
    all
}

/// A handshake and data in both directions. Calls `before` with the number of each step; returns the number of steps.
fn conversation(flow: &Flow, before: &mut dyn FnMut(&mut Network, usize)) -> usize {
    let limits = Limits::default();
    let mut network = Network::new(&flow.client, &flow.server, flow.session.clone(), limits, 1);
    let give_up = network.now + Duration::from_secs(100);
    let mut step = 0;
    let mut next = |network: &mut Network| {
        before(network, step);
        step += 1;
        step
    };
    let mut asked = false;
    let connection = loop {
        next(&mut network);
        if network.client.is_open() && !asked {
            network.client_write(b"question");
            asked = true;
        }
        if let Some(id) = network.connection().filter(|id| !network.received(*id).is_empty()) {
            break id;
        }
        let (client, server) = (&network.client_events, &network.server_events);
        let what = format!("{}: client {client:?} server {server:?}", flow.name);
        assert!(network.step(give_up), "{what}");
        assert_eq!(closed(&network.client_events), None, "{}", flow.name);
    };
    for round in 1..=2u8 {
        next(&mut network);
        network.server_write(connection, &[round]);
        network.pass(DELAY * 2);
        assert_eq!(data(&network.client_events).last(), Some(&&[round][..]), "{}", flow.name);
        next(&mut network);
        network.client_write(&[round, round]);
        network.pass(DELAY * 2);
        assert_eq!(network.received(connection).last(), Some(&&[round, round][..]), "{}", flow.name);
    }
    // Nothing else has arrived on the connection.
    assert_eq!(network.received(connection).len(), 3, "{}", flow.name);
    assert_eq!(data(&network.client_events).len(), 2, "{}", flow.name);
    next(&mut network)
}

#[test]
fn injected_clear_text_records_change_nothing_at_any_step() {
    let (mut injected, mut runs) = (0, 0);
    for flow in FLOWS.iter() {
        let steps = conversation(flow, &mut |_, _| ());
        assert!(steps > 6, "{}: {steps}", flow.name);
        for at in 0..steps {
            for to_server in [true, false] {
                println!(
                    "{} step {at} {}",
                    flow.name,
                    if to_server { "to the server" } else { "to the client" }
                );
                conversation(flow, &mut |network, step| {
                    if step != at {
                        return;
                    }
                    for record in everything(network, at as u64) {
                        network.deliver(to_server, &record);
                        injected += 1;
                    }
                });
                runs += 1;
            }
        }
    }
    println!("{injected} forged records in {runs} conversations");
    assert!(injected > 1000 * runs);
}
