//! Remembers the suites of sessions, because a handshake that resumes a session contains no certificates from which
//! its suite could be determined.

use super::summary::is_resumed;
use super::table::{Table, bounded};
use crate::message::Seen;
use crate::packet::Endpoint;
use crate::suite;
use crate::tls::{Negotiation, SessionName};
use crate::wtls::WtlsConnection;
use shakedown_trace::Suite;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Limit of remembered sessions; beyond it, the least recently used one is forgotten.
const MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("above 0");

/// Captures contain few different suites.
const MAX_MET: usize = 64;

/// Suites by the digest of a session's identifier or ticket.
pub(super) struct Sessions {
    suites: Table<u64, Arc<Suite>>,
    /// Recent suites, so that equal ones share memory.
    met: VecDeque<Arc<Suite>>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { suites: bounded(MAX_SESSIONS), met: VecDeque::new() }
    }
}

impl Sessions {
    fn one(&mut self, suite: Suite) -> Arc<Suite> {
        if let Some(known) = self.met.iter().find(|known| ***known == suite) {
            return Arc::clone(known);
        }
        if self.met.len() >= MAX_MET {
            self.met.pop_front();
        }
        let suite = Arc::new(suite);
        self.met.push_back(Arc::clone(&suite));
        suite
    }

    /// Remembers the suite of the handshake that created a session.
    pub(super) fn learn(&mut self, session: u64, origin: &Arc<Suite>) {
        self.suites.put(session, Arc::clone(origin));
    }

    pub(super) fn origin(&mut self, session: u64) -> Option<Arc<Suite>> {
        self.suites.get(&session).map(Arc::clone)
    }

    /// Determines the suite of a TLS or DTLS handshake that is over (only once), and remembers the session that it
    /// created and the tickets that were issued since.
    pub(super) fn settle(&mut self, negotiation: &mut Negotiation, seen: &[Seen], client: usize) {
        if !negotiation.settled {
            let resumed = is_resumed(negotiation, seen, 1 - client);
            negotiation.settled = true;
            if let Some(identified) = suite::tls_suite(negotiation, seen, client, resumed) {
                negotiation.suite = Some(self.one(identified.suite));
                negotiation.remark = identified.remark.map(String::into_boxed_str);
            }
            negotiation.origin = match resumed {
                Some(true) => self.resume(negotiation),
                Some(false) => negotiation.suite.clone(),
                None => None,
            };
            if let (Some(false), Some(origin), Some(session)) =
                (resumed, &negotiation.origin, negotiation.session_made())
            {
                self.learn(session, origin);
            }
            negotiation.forget_presented();
        }
        if let Some(origin) = &negotiation.origin {
            for ticket in std::mem::take(&mut negotiation.issued) {
                self.learn(ticket, origin);
            }
        }
    }

    /// The same for a WTLS handshake with this server.
    pub(super) fn settle_wtls(&mut self, connection: &mut WtlsConnection, client: usize, server: Endpoint) {
        if std::mem::replace(&mut connection.settled, true) {
            return;
        }
        if let Some(identified) = suite::wtls_suite(connection, &connection.seen, client) {
            connection.suite = Some(self.one(identified.suite));
            if let Some(remark) = identified.remark {
                connection.problems.add(remark);
            }
        }
        let name = |id| SessionName::Local(server.address, server.port, id).digest();
        let session = connection.session_id().map(name);
        if connection.is_resumed() == Some(true) {
            let origin = session.and_then(|session| self.origin(session));
            connection.suite =
                origin.and_then(|origin| suite::wtls_resumption(&origin)).map(|suite| self.one(suite));
        } else if let (Some(session), Some(suite)) = (session, &connection.suite) {
            self.learn(session, suite);
        }
        connection.forget_presented();
    }

    /// Finds the suite that created the resumed session, and derives the suite of the resumption from it.
    fn resume(&mut self, negotiation: &mut Negotiation) -> Option<Arc<Suite>> {
        let (ticket, session) = negotiation.sessions_offered();
        let by_ticket = ticket.and_then(|ticket| self.origin(ticket));
        let is_ticket = by_ticket.is_some();
        let origin = by_ticket.or_else(|| self.origin(session?))?;
        if let Some(suite) = suite::tls_resumption(&origin, negotiation, is_ticket) {
            negotiation.suite = Some(self.one(suite));
        }
        Some(origin)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::message::Mark;

    const SESSION: [u8; 5] = [4, 0x5e, 0x55, 0x10, 0x4e];

    /// A WTLS record with one message.
    fn message(number: u8, kind: u8, body: &[u8]) -> Vec<u8> {
        let length = body.len() as u8;
        [&[0xc3, 0, number, 0, length + 3, kind, 0, length][..], body].concat()
    }

    /// ChangeCipherSpec and the record after it.
    fn finish(number: u8) -> Vec<u8> {
        vec![0xc1, 0, number, 0, 1, 1, 0xe3, 0, 0, 0, 4, 9, 9, 9, 9]
    }

    fn hello(session: &[u8], rest: &[u8]) -> Vec<u8> {
        [&[1][..], &[7; 16], session, rest].concat()
    }

    fn spoken(said: &[(usize, Vec<u8>)]) -> WtlsConnection {
        let mut connection = WtlsConnection::default();
        for (packet, (direction, datagram)) in (1..).zip(said) {
            let mark = Mark { packet, time_ns: packet, peer_acknowledged: 0 };
            connection.read(*direction, datagram, 0, mark);
        }
        assert!(connection.is_over());
        connection
    }

    fn at(address: u128) -> Endpoint {
        Endpoint { address, port: 9203 }
    }

    #[test]
    fn wtls_sessions_are_identified_by_their_server() {
        // Anonymous Diffie-Hellman in the second group, which the server proposes.
        // It trusts no keys, and offers RC5 and SHA, no compression and numbered records.
        let offer = [0, 3, 4, 2, 0, 0, 0, 2, 3, 3, 1, 0, 2, 0];
        let full = [
            (0, message(0, 1, &hello(&[0], &offer))),
            (1, message(0, 2, &hello(&SESSION, &[1, 3, 3, 0, 2, 0]))),
            (1, [message(1, 12, &[2, 0, 0]), message(2, 14, &[])].concat()),
            (0, [message(1, 16, &[5]), finish(2)].concat()),
            (1, finish(3)),
        ];
        let short = [
            (0, message(0, 1, &hello(&SESSION, &offer))),
            (1, [message(0, 2, &hello(&SESSION, &[1, 3, 3, 0, 2, 0])), finish(1)].concat()),
            (0, finish(1)),
        ];
        let mut sessions = Sessions::default();
        let (mut origin, mut resumed, mut elsewhere) = (spoken(&full), spoken(&short), spoken(&short));
        sessions.settle_wtls(&mut origin, 0, at(1));
        sessions.settle_wtls(&mut resumed, 0, at(1));
        sessions.settle_wtls(&mut elsewhere, 0, at(2));
        let name = |connection: &WtlsConnection| connection.suite.as_ref().map(ToString::to_string);
        assert_eq!(name(&origin).as_deref(), Some("wtls/dh_anon+dh768"));
        assert_eq!(name(&resumed).as_deref(), Some("wtls/dh_anon+dh768/resumed"));
        assert_eq!(name(&elsewhere), None);
    }

    #[test]
    fn least_recently_used_sessions_are_evicted() {
        let suite: Arc<Suite> = Arc::new("tls1.2/psk".parse().unwrap());
        let mut sessions = Sessions::default();
        for session in 0..MAX_SESSIONS.get() as u64 {
            sessions.learn(session, &suite);
        }
        assert!(sessions.origin(0).is_some());
        sessions.learn(u64::MAX, &suite);
        assert_eq!(sessions.suites.len(), MAX_SESSIONS.get());
        assert!(sessions.origin(0).is_some() && sessions.origin(1).is_none());
    }
}
