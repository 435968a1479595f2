//! Attaches without a network, and the bytes that they exchange.

use shakedown_aka::core::{Answer, Query, Unanswered};
use shakedown_aka::message::{Cause, Message};
use shakedown_aka::mobile::{AttachFailure, MobileEvent};
use shakedown_aka::names::Network;
use shakedown_aka::sessions::Policy;
use shakedown_aka::sgsn::{Attach, AttachEvent};
use shakedown_live::aka::{Deployment, SgsnEnvironment};
use shakedown_trace::{Endpoint, Suite};
use std::time::Duration;

pub const SUITE: &str = "tls1.2/ecdhe_ecdsa+p256/p256/mutual";

pub fn suite() -> Suite {
    SUITE.parse().unwrap()
}

/// Bytes on the wire by sender, events of both sides, and queries.
#[derive(Debug, Default)]
pub struct Seen {
    pub up: Vec<u8>,
    pub down: Vec<u8>,
    pub mobile: Vec<MobileEvent>,
    pub sgsn: Vec<AttachEvent>,
    pub queries: Vec<Query>,
}

impl Seen {
    pub fn attached(&self) -> bool {
        self.mobile.iter().any(|event| matches!(event, MobileEvent::Attached(_)))
            && self.sgsn.iter().any(|event| matches!(event, AttachEvent::Attached { .. }))
    }

    pub fn failure(&self) -> Option<&AttachFailure> {
        self.mobile.iter().find_map(|event| match event {
            MobileEvent::Failed(failure) => Some(failure),
            _ => None,
        })
    }

    pub fn cause(&self) -> Option<Cause> {
        self.sgsn.iter().find_map(|event| match event {
            AttachEvent::Rejected { cause, .. } => Some(*cause),
            _ => None,
        })
    }

    /// Session IDs of ClientHello and ServerHello, read from the bytes: a session is resumed if they are equal and not
    /// empty (RFC 5246, 7.4.1.3).
    pub fn session_ids(&self) -> (Vec<u8>, Vec<u8>) {
        (session_id(&self.up, 1), session_id(&self.down, 2))
    }
}

/// The session ID of the first hello of a type. The attach's messages of kind 2 contain TLS records.
pub fn session_id(stream: &[u8], kind: u8) -> Vec<u8> {
    let mut rest = stream;
    while let [message, high, low, tail @ ..] = rest {
        let (body, next) = tail.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        if *message == 2 && body[0] == 22 && body[5] == kind {
            // Record header 5, handshake header 4, version 2, random 32.
            let id = &body[5 + 4 + 2 + 32..];
            return id[1..1 + usize::from(id[0])].to_vec();
        }
        rest = next;
    }
    Vec::new()
}

/// Another node's answer.
pub type Answered = Result<Answer, Unanswered>;

/// The answer of the node to which a query is addressed.
pub fn answer(
    deployment: &mut Deployment,
    attach: &Attach<SgsnEnvironment>,
    network: &Network,
    query: &Query,
) -> Answered {
    let found = if query.is_for_sgsn() {
        let old = &attach.temporary().unwrap().node;
        deployment.nodes.iter_mut().find(|node| node.name() == old).map(|node| node.answer(query).unwrap())
    } else {
        deployment.homes.get_mut(network).map(|hss| hss.answer(query))
    };
    found.ok_or(Unanswered::Unknown)
}

/// An attach without a network; `meddle` may alter the mobile's first output.
pub fn attach(
    deployment: &mut Deployment,
    place: usize,
    node: usize,
    now: Duration,
    meddle: fn(&mut Vec<u8>),
) -> Seen {
    attach_among(deployment, place, node, now, meddle, &mut |_| None)
}

/// The same; `instead` may answer in place of a node.
pub fn attach_among(
    deployment: &mut Deployment,
    place: usize,
    node: usize,
    now: Duration,
    meddle: fn(&mut Vec<u8>),
    instead: &mut dyn FnMut(&Query) -> Option<Answered>,
) -> Seen {
    let mut mobile = deployment.mobile(place).unwrap();
    let mut attach = Attach::default();
    let mut seen = Seen::default();
    for round in 0..40 {
        let mut up = Vec::new();
        mobile.poll_transmit(now, &mut up);
        if round == 0 {
            meddle(&mut up);
        }
        seen.up.extend(&up);
        // In pieces, as a stream may deliver it.
        for piece in up.chunks(700) {
            attach.handle_input(&mut deployment.nodes[node], now, piece);
        }
        while let Some((network, query)) = attach.poll_query() {
            let answer = instead(&query).unwrap_or_else(|| answer(deployment, &attach, &network, &query));
            // Encoded and decoded, as between nodes.
            let bytes = query.to_bytes();
            assert_eq!(Query::read(bytes[0], &bytes[3..]).unwrap(), query);
            seen.queries.push(query);
            if let Ok(answer) = &answer {
                let bytes = answer.to_bytes();
                assert_eq!(Answer::read(bytes[0], &bytes[3..]).unwrap(), *answer);
            }
            attach.handle_answer(&mut deployment.nodes[node], now, answer);
        }
        let mut down = Vec::new();
        attach.poll_transmit(&mut down);
        seen.down.extend(&down);
        if up.is_empty() && down.is_empty() {
            break;
        }
        mobile.handle_input(now, &down);
        while let Some(event) = mobile.poll_event() {
            seen.mobile.push(event);
        }
        while let Some(event) = attach.poll_event() {
            seen.sgsn.push(event);
        }
    }
    if seen.attached() {
        let resumed = mobile.negotiated().unwrap().resumed;
        let session = mobile.endpoint().session().filter(|_| !resumed);
        let given = seen.mobile.iter().find_map(|event| match event {
            MobileEvent::Attached(temporary) => Some(temporary.clone()),
            _ => None,
        });
        deployment.keep(place, given.unwrap(), session);
    }
    seen
}

pub fn untouched(_: &mut Vec<u8>) {}

/// An attacker replays overheard bytes to a node, followed by arbitrary records.
pub fn replay(deployment: &mut Deployment, overheard: &[u8], node: usize, now: Duration) {
    let mut attach = Attach::default();
    attach.handle_input(&mut deployment.nodes[node], now, overheard);
    while let Some((network, query)) = attach.poll_query() {
        let answer = answer(deployment, &attach, &network, &query);
        attach.handle_answer(&mut deployment.nodes[node], now, answer);
    }
    let mut rest = Vec::new();
    Message::Tls(vec![20, 3, 3, 0, 1, 1]).put(&mut rest);
    Message::Tls([&[22, 3, 3, 0, 64][..], &[7; 64]].concat()).put(&mut rest);
    attach.handle_input(&mut deployment.nodes[node], now, &rest);
    assert!(!attach.is_attached());
    attach.handle_close(&mut deployment.nodes[node]);
}

pub fn deployment(mobiles: usize, policy: Policy) -> Deployment {
    Deployment::new(&suite(), mobiles, true, policy).unwrap()
}
