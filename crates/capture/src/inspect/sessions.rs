//! Which handshake made a session, so that the suite of one that takes it up again can be told: it shows no
//! certificates of its own.

use super::table::Table;
use crate::message::Seen;
use crate::packet::Endpoint;
use crate::suite;
use crate::tls::{Negotiation, SessionName};
use crate::wtls::WtlsConnection;
use shakedown_trace::Suite;
use std::collections::VecDeque;
use std::sync::Arc;

/// Sessions remembered; beyond it, the one unused for longest is forgotten.
const MOST_SESSIONS: usize = 1 << 16;

/// Captures hold few suites beside each other.
const MOST_MET: usize = 64;

/// Suites by a session's identifier or ticket.
#[derive(Default)]
pub(super) struct Sessions {
    suites: Table<u64, Arc<Suite>>,
    /// Suites met lately, so that each is kept once.
    met: VecDeque<Arc<Suite>>,
}

impl Sessions {
    /// The one copy of a suite.
    fn one(&mut self, suite: Suite) -> Arc<Suite> {
        if let Some(known) = self.met.iter().find(|known| ***known == suite) {
            return Arc::clone(known);
        }
        if self.met.len() >= MOST_MET {
            self.met.pop_front();
        }
        let suite = Arc::new(suite);
        self.met.push_back(Arc::clone(&suite));
        suite
    }

    /// Remembers what made a session.
    pub(super) fn learn(&mut self, session: u64, origin: &Arc<Suite>) {
        if let Some(known) = self.suites.touch(&session) {
            known.clone_from(origin);
            return;
        }
        while self.suites.len() >= MOST_SESSIONS
            && let Some(oldest) = self.suites.oldest()
        {
            self.suites.remove(&oldest);
        }
        self.suites.insert(session, Arc::clone(origin));
    }

    /// What made a session.
    pub(super) fn origin(&mut self, session: u64) -> Option<Arc<Suite>> {
        self.suites.touch(&session).map(|origin| Arc::clone(origin))
    }

    /// Works out the suite of a TLS or DTLS handshake that is over, once, and remembers the session that it
    /// made and the tickets that were issued since.
    pub(super) fn settle(
        &mut self,
        negotiation: &mut Negotiation,
        seen: &[Seen],
        client: usize,
        resumed: Option<bool>,
    ) {
        if !negotiation.settled {
            negotiation.settled = true;
            negotiation.suite =
                suite::tls_suite(negotiation, seen, client, resumed).map(|suite| self.one(suite));
            negotiation.origin = match resumed {
                Some(true) => self.take_up(negotiation),
                Some(false) => negotiation.suite.clone(),
                None => None,
            };
            if let (Some(false), Some(origin), Some(session)) =
                (resumed, &negotiation.origin, negotiation.session_made())
            {
                self.learn(session, origin);
            }
            negotiation.forget_what_was_shown();
        }
        if let Some(origin) = &negotiation.origin {
            for ticket in std::mem::take(&mut negotiation.issued) {
                self.learn(ticket, origin);
            }
        }
    }

    /// The same of a WTLS handshake with the server at that end.
    pub(super) fn settle_wtls(&mut self, connection: &mut WtlsConnection, client: usize, server: Endpoint) {
        if std::mem::replace(&mut connection.settled, true) {
            return;
        }
        connection.suite =
            suite::wtls_suite(connection, &connection.seen, client).map(|suite| self.one(suite));
        let name = |id| SessionName::Local(server.address, server.port, id).digest();
        let session = connection.session_id().map(name);
        if connection.is_resumed() == Some(true) {
            let origin = session.and_then(|session| self.origin(session));
            connection.suite =
                origin.and_then(|origin| suite::wtls_resumption(&origin)).map(|suite| self.one(suite));
        } else if let (Some(session), Some(suite)) = (session, &connection.suite) {
            self.learn(session, suite);
        }
        connection.forget_what_was_shown();
    }

    /// Finds what made the session that was taken up, and names the suite after it.
    fn take_up(&mut self, negotiation: &mut Negotiation) -> Option<Arc<Suite>> {
        let (ticket, session) = negotiation.sessions_taken_up();
        let by_ticket = ticket.and_then(|ticket| self.origin(ticket));
        let is_ticket = by_ticket.is_some();
        let origin = by_ticket.or_else(|| self.origin(session?))?;
        if let Some(suite) = suite::tls_resumption(&origin, negotiation, is_ticket) {
            negotiation.suite = Some(self.one(suite));
        }
        Some(origin)
    }
}
