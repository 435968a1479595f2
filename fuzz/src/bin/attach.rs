#![no_main]
//! Attaches of a mobile to an SGSN over a wire that an attacker controls: the protocol's rules hold for any input.
//!
//! Each byte of the input selects the next action on the wire; some actions use more bytes.

use libfuzzer_sys::fuzz_target;
use shakedown_aka::core::{Answer, Query, Unanswered};
use shakedown_aka::frame::Frames;
use shakedown_aka::hss::Hss;
use shakedown_aka::mobile::{Mobile, MobileEvent, Subscription};
use shakedown_aka::names::{Imsi, Network, NodeName, Temporary};
use shakedown_aka::sessions::{MemoryStore, Policy, SessionRecord, Sessions};
use shakedown_aka::sgsn::{Attach, AttachEvent, Node};
use shakedown_fuzz::{AkaEnvironment, Choices, Handshaker};
use shakedown_trace::endpoint::Time;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const IMSI: &str = "202010000000000";
const MAX_RESUMPTIONS: u32 = 2;
const MAX_AGE_S: u64 = 50;
const BASIS: [u8; 32] = [7; 32];
/// ID of a session that another SGSN may have.
const GUEST: [u8; 4] = [9; 4];

/// Returns the bytes that arrive instead of those that were sent.
fn meddle(choices: &mut Choices<'_>, sent: Vec<u8>) -> Vec<u8> {
    let mut arrives = sent;
    match choices.byte().unwrap_or(0) {
        1 => arrives.clear(),
        2 => arrives.extend(arrives.clone()),
        3 => {
            let place = usize::from(choices.byte().unwrap_or(0)) % arrives.len().max(1);
            let flip = choices.byte().unwrap_or(1);
            if let Some(byte) = arrives.get_mut(place) {
                *byte ^= flip;
            }
        }
        4 => arrives.truncate(usize::from(choices.byte().unwrap_or(0))),
        5 => {
            let count = usize::from(choices.byte().unwrap_or(0));
            arrives.extend(choices.take(count));
        }
        6 => {
            let count = usize::from(choices.byte().unwrap_or(0));
            arrives = choices.take(count).to_vec();
        }
        _ => {}
    }
    arrives
}

/// Asserts that the permanent identity occurs only in frames that TLS would encrypt.
fn check_secrecy(sent: &[u8]) {
    let mut frames = Frames::default();
    frames.push(sent);
    while let Some((kind, body)) = frames.next_frame() {
        let clear = kind != 2;
        assert!(!clear || !body.windows(IMSI.len()).any(|window| window == IMSI.as_bytes()));
    }
}

fuzz_target!(|input: &[u8]| {
    let mut choices = Choices(input);
    let (Ok(home), Ok(serving), Ok(name), Ok(other), Ok(imsi)) = (
        Network::new("20201"),
        Network::new("20801"),
        NodeName::new("sgsn-1"),
        NodeName::new("sgsn-2"),
        Imsi::new(IMSI),
    ) else {
        return;
    };
    let policy = Policy { max_resumptions: MAX_RESUMPTIONS, max_age: Time::from_secs(MAX_AGE_S) };
    let sessions = Arc::new(Mutex::new(Sessions::new(Box::new(MemoryStore::default()), policy, BASIS)));
    let environment = AkaEnvironment::new(Arc::clone(&sessions));
    let mut node = Node::new(name, serving.clone(), environment, sessions);
    let mut hss = Hss::new();
    hss.subscribe(imsi.clone(), b"leaf");
    hss.certify(serving, b"certificate".to_vec());
    let (mut temporary, mut session) = (None, None);
    let mut resumed: HashMap<Vec<u8>, (u32, Time)> = HashMap::new();
    let mut now = Time::from_secs(1000);
    for _ in 0..8 {
        let Some(start) = choices.byte() else { return };
        now += Time::from_secs(u64::from(start >> 2));
        let offered = session.filter(|_| start & 1 == 0).or((start & 3 == 1).then_some(GUEST));
        let elsewhere = Temporary { node: other.clone(), ptmsi: 9 };
        let known = if start & 3 == 1 { Some(elsewhere) } else { temporary.clone() };
        let given = known.filter(|_| start & 2 == 0);
        let subscription = Subscription { imsi: imsi.clone(), home: home.clone(), temporary: given };
        let mut mobile = Mobile::new(Handshaker::client(offered), subscription);
        let mut attach = Attach::default();
        let (mut sent_request, mut seen_request) = (Vec::new(), Vec::new());
        let (mut mobile_attached, mut mobile_over) = (false, false);
        let (mut node_attached, mut node_over) = (false, false);
        let mut claimed = None;
        for round in 0..12 {
            let mut up = Vec::new();
            mobile.poll_transmit(now, &mut up);
            check_secrecy(&up);
            let arrives = meddle(&mut choices, up.clone());
            if round == 0 {
                let request = |stream: &[u8]| {
                    let mut frames = Frames::default();
                    frames.push(stream);
                    frames.next_frame()
                };
                (sent_request, seen_request) = (vec![request(&up)], vec![request(&arrives)]);
            }
            attach.handle_input(&mut node, now, &arrives);
            for _ in 0..4 {
                let Some((_, query)) = attach.poll_query() else { break };
                let answer = match choices.byte().unwrap_or(0) {
                    1 => Err(Unanswered::Unknown),
                    2 => Err(Unanswered::Silent),
                    3 => Ok(Answer::UnknownContext),
                    // The synthetic TLS does not detect an altered identity; a home network only locates subscribers.
                    4 if !matches!(&query, Query::Location { imsi: asked, .. } if *asked != imsi) => {
                        Ok(Answer::Located)
                    }
                    5 => Ok(Answer::CrossCertificate(choices.take(4).to_vec())),
                    6 => Ok(Answer::Context { imsi: imsi.clone(), home: home.clone(), session: None }),
                    7 | 8 => {
                        let resumptions = u32::from(choices.byte().unwrap_or(0)) % (MAX_RESUMPTIONS + 1);
                        let age = Time::from_secs(u64::from(choices.byte().unwrap_or(0)));
                        let ahead = Time::from_secs(u64::from(choices.byte().unwrap_or(0) % 4));
                        let last = now.saturating_sub(age) + ahead;
                        let basis = if choices.byte() == Some(1) { [8; 32] } else { BASIS };
                        let (imsi, home, secret) = (imsi.clone(), home.clone(), b"secret".to_vec());
                        if matches!(query, Query::Claim { .. }) {
                            claimed = Some((resumptions, last, basis));
                        }
                        let record = SessionRecord {
                            secret,
                            imsi: imsi.clone(),
                            home: home.clone(),
                            resumptions,
                            last,
                            basis,
                        };
                        Ok(Answer::Context { imsi, home, session: Some((GUEST.to_vec(), record)) })
                    }
                    _ => Ok(hss.answer(&query)),
                };
                attach.handle_answer(&mut node, now, answer);
            }
            while let Some(event) = attach.poll_event() {
                assert!(!node_over, "an event after the last");
                match event {
                    AttachEvent::Attached { imsi: who, .. } => {
                        assert!(!node_attached && who.as_str() == IMSI);
                        node_attached = true;
                    }
                    AttachEvent::Rejected { .. } => node_over = true,
                    AttachEvent::Data(_) => assert!(node_attached),
                }
            }
            let mut down = Vec::new();
            attach.poll_transmit(&mut down);
            check_secrecy(&down);
            mobile.handle_input(now, &meddle(&mut choices, down));
            while let Some(event) = mobile.poll_event() {
                assert!(!mobile_over, "an event after the last");
                match event {
                    MobileEvent::Attached(next) => {
                        assert!(!mobile_attached);
                        mobile_attached = true;
                        temporary = Some(next);
                        session = mobile.endpoint().script.id();
                    }
                    MobileEvent::Failed(_) => mobile_over = true,
                    MobileEvent::Established { .. } | MobileEvent::Data(_) => {}
                }
            }
        }
        assert!(node_attached || !mobile_attached, "the SGSN has not accepted");
        if node_attached {
            // A mobile is accepted only if the SGSN received the request that the mobile sent.
            assert_eq!(sent_request, seen_request);
        }
        // A session was resumed within the limits of resumptions and age, even if another SGSN had it before.
        if node_attached && attach.negotiated().is_some_and(|negotiated| negotiated.resumed) {
            let Some(offered) = attach.offered() else { panic!("resumed a session that was not offered") };
            if offered.is_guest {
                let Some((count, last, basis)) = claimed else { panic!("resumed what another SGSN holds") };
                assert_eq!(basis, BASIS);
                resumed.insert(offered.id.clone(), (count, last));
            }
            let (count, last) = resumed.entry(offered.id.clone()).or_insert((0, now));
            *count += 1;
            assert!(*count <= MAX_RESUMPTIONS, "resumed {count} times");
            assert!(*last <= now && now.saturating_sub(*last) < Time::from_secs(MAX_AGE_S));
            *last = now;
        }
    }
});
