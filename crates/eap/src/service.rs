//! A RADIUS server that authenticates peers by EAP-TLS. The State attribute identifies a session; responses are stored
//! for duplicate requests.
//!
//! The number and lifetime of sessions, stored responses and stored initial requests are limited. When the table of
//! sessions is full, a new session replaces one of the client with the most sessions. Packets without a valid
//! Message-Authenticator are dropped without a response and leave no state.

use crate::eap::{self, Code};
use crate::radius::{Authenticator, BuildError, Builder, Packet, Secret, add_msk, attribute, code};
use crate::server::{Output, Server, ServerFailure};
use crate::tls::MAX_OVERHEAD_BYTES;
use serde::Serialize;
use shakedown_trace::Endpoint;
use shakedown_trace::endpoint::Time;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Limits of a service's state.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub sessions: usize,
    /// Concurrent authentications per client (an access point, identified by its address).
    pub sessions_per_client: usize,
    pub session_time: Time,
    /// Responses that are stored for duplicate requests.
    pub replies: usize,
    /// The time for which a response is stored.
    pub reply_time: Time,
}

impl Default for Limits {
    /// 4096 sessions of one minute, at most three quarters of them for one client; responses are stored for five
    /// seconds (RFC 5080, section 2.2.2).
    fn default() -> Self {
        Self {
            sessions: 4096,
            sessions_per_client: 3072,
            session_time: Time::from_secs(60),
            replies: 65_536,
            reply_time: Time::from_secs(5),
        }
    }
}

/// Counts of events since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub accepted: u64,
    pub resumed: u64,
    pub rejected: BTreeMap<String, u64>,
    pub duplicates: u64,
    /// Datagrams that are not valid requests, and replayed requests.
    pub discarded: u64,
    /// Authentications that were not begun because of a limit.
    pub turned_away: u64,
    /// Authentications that timed out or were replaced.
    pub abandoned: u64,
}

/// Bytes of a State attribute: the session's identifier, and its number of answered requests.
const SESSION_BYTES: usize = 16;
const STATE_BYTES: usize = SESSION_BYTES + 4;

type SessionId = [u8; SESSION_BYTES];
/// The part of a request that identifies its content: the Request Authenticator and the Message-Authenticator.
type Content = (Authenticator, [u8; 16]);
/// Without the port, because a client may repeat a request from another port.
type RequestId = (IpAddr, Content);

struct Session<E> {
    server: Server<E>,
    client: IpAddr,
    answered: u32,
    expires: Time,
}

/// Provides endpoints and random numbers to the service.
pub trait Environment {
    type Endpoint: Endpoint;

    /// A new server endpoint; `None` if none can be created.
    fn endpoint(&mut self) -> Option<Self::Endpoint>;

    /// Fills `bytes` with unpredictable random numbers.
    fn random(&mut self, bytes: &mut [u8]);
}

pub struct Service<V: Environment> {
    environment: V,
    secret: Secret,
    fragment_bytes: usize,
    limits: Limits,
    sessions: HashMap<SessionId, Session<V::Endpoint>>,
    per_client: HashMap<IpAddr, usize>,
    /// Sessions in the order of expiry, including some ended ones; at most twice the limit of sessions.
    expiring: VecDeque<(Time, SessionId)>,
    replies: HashMap<RequestId, Vec<u8>>,
    forgetting: VecDeque<(Time, RequestId)>,
    /// Initial requests of authentications. A repetition starts no other one, even from another address.
    begun: HashSet<Content>,
    outdating: VecDeque<(Time, Content)>,
    closing: bool,
    tally: Tally,
}

impl<V: Environment> Service<V> {
    pub fn new(environment: V, secret: Secret, fragment_bytes: usize, limits: Limits) -> Self {
        Self {
            environment,
            secret,
            fragment_bytes,
            limits,
            sessions: HashMap::new(),
            per_client: HashMap::new(),
            expiring: VecDeque::new(),
            replies: HashMap::new(),
            forgetting: VecDeque::new(),
            begun: HashSet::new(),
            outdating: VecDeque::new(),
            closing: false,
            tally: Tally::default(),
        }
    }

    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Starts no more authentications. An initial request gets no response, so the client repeats it, possibly to the
    /// next server at this address.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Number of authentications in progress.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The time of the next call of [`handle_timeout`](Self::handle_timeout); `None`: no timeout is pending.
    pub fn poll_timeout(&self) -> Option<Time> {
        let first = self.expiring.front().map(|entry| entry.0);
        let other = self.forgetting.front().map(|entry| entry.0);
        let third = self.outdating.front().map(|entry| entry.0);
        [first, other, third].into_iter().flatten().min()
    }

    /// Deletes expired sessions, responses and initial requests.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some((at, id)) = self.expiring.front().copied().filter(|entry| entry.0 <= now) {
            self.expiring.pop_front();
            if self.sessions.get(&id).is_some_and(|session| session.expires <= at) {
                self.end(&id);
                self.tally.abandoned += 1;
            }
        }
        while let Some((_, id)) = self.forgetting.front().copied().filter(|entry| entry.0 <= now) {
            self.forgetting.pop_front();
            self.replies.remove(&id);
        }
        while let Some((_, content)) = self.outdating.front().copied().filter(|entry| entry.0 <= now) {
            self.outdating.pop_front();
            self.begun.remove(&content);
        }
    }

    /// Processes a datagram and returns the response, if any. Datagrams without a valid authenticator are dropped. A
    /// repeated request gets the same response and changes nothing.
    pub fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        self.handle_timeout(now);
        let Some(packet) = Packet::parse(datagram).ok().filter(|packet| self.is_valid_request(packet)) else {
            self.tally.discarded += 1;
            return None;
        };
        let code = packet.first(attribute::MESSAGE_AUTHENTICATOR).and_then(|code| code.try_into().ok());
        let content = (packet.authenticator(), code?);
        let id = (from.ip(), content);
        if let Some(reply) = self.replies.get(&id) {
            self.tally.duplicates += 1;
            return Some(reply.clone());
        }
        let reply = self.answer(now, from.ip(), content, &packet)?;
        if self.replies.len() >= self.limits.replies
            && let Some((_, oldest)) = self.forgetting.pop_front()
        {
            self.replies.remove(&oldest);
        }
        self.forgetting.push_back((now + self.limits.reply_time, id));
        self.replies.insert(id, reply.clone());
        Some(reply)
    }

    fn is_valid_request(&self, packet: &Packet<'_>) -> bool {
        matches!(packet.code(), code::ACCESS_REQUEST | code::STATUS_SERVER)
            && self.secret.check_request(packet).is_ok()
    }

    fn answer(
        &mut self,
        now: Time,
        client: IpAddr,
        content: Content,
        packet: &Packet<'_>,
    ) -> Option<Vec<u8>> {
        if packet.code() == code::STATUS_SERVER {
            return self.reply(packet, code::ACCESS_ACCEPT, |_, _| Ok(())).ok();
        }
        let Some(eap) = packet.eap_message() else {
            // Requests without EAP, such as passwords, are not supported.
            return self.reject(packet, "no_eap", None);
        };
        match packet.first(attribute::STATE) {
            None if self.begun.contains(&content) => {
                // A replay, or a repetition after its response was deleted.
                self.tally.duplicates += 1;
                None
            }
            None => {
                let reply = self.begin(now, client, packet, &eap)?;
                self.remember(now, content);
                Some(reply)
            }
            Some(state) => self.continue_session(now, packet, state, &eap),
        }
    }

    fn begin(&mut self, now: Time, client: IpAddr, packet: &Packet<'_>, eap: &[u8]) -> Option<Vec<u8>> {
        if self.closing {
            return None;
        }
        let has = self.per_client.get(&client).copied().unwrap_or(0);
        if has >= self.limits.sessions_per_client || !self.make_room(has) {
            self.tally.turned_away += 1;
            return None;
        }
        let endpoint = self.environment.endpoint()?;
        let mut server = Server::new(endpoint, self.fragment_bytes);
        if let Some(mtu) = packet.first(attribute::FRAMED_MTU).and_then(|mtu| <[u8; 4]>::try_from(mtu).ok()) {
            let mtu = usize::try_from(u32::from_be_bytes(mtu)).unwrap_or(usize::MAX);
            server.limit_fragments(mtu.saturating_sub(MAX_OVERHEAD_BYTES));
        }
        let mut id = [0; SESSION_BYTES];
        self.environment.random(&mut id);
        let output = if eap.len() < eap::HEADER_BYTES {
            Output::Request(server.ask_identity())
        } else {
            server.handle(now, eap)
        };
        let expires = now + self.limits.session_time;
        self.sessions.insert(id, Session { server, client, answered: 0, expires });
        *self.per_client.entry(client).or_default() += 1;
        self.expiring.push_back((expires, id));
        self.drop_finished();
        debug_assert!(self.expiring.len() <= 2 * self.limits.sessions.max(1));
        self.respond(packet, id, output)
    }

    /// Whether a client with `has` sessions may start another. If the table is full, the oldest session of the client
    /// with the most sessions is ended, provided that it has at least two more than this client.
    fn make_room(&mut self, has: usize) -> bool {
        if self.sessions.len() < self.limits.sessions {
            return true;
        }
        let most = self.per_client.iter().max_by_key(|(_, count)| **count);
        let Some((&largest, _)) = most.filter(|(_, count)| **count > has + 1) else { return false };
        let of_largest = |id: &SessionId| self.sessions.get(id).is_some_and(|one| one.client == largest);
        let oldest = self.expiring.iter().map(|(_, id)| *id).find(of_largest);
        let ended = oldest.and_then(|id| self.end(&id));
        self.tally.abandoned += u64::from(ended.is_some());
        ended.is_some()
    }

    /// Stores the initial request of an authentication, for the maximum duration of an authentication.
    fn remember(&mut self, now: Time, content: Content) {
        if self.begun.len() >= self.limits.replies
            && let Some((_, oldest)) = self.outdating.pop_front()
        {
            self.begun.remove(&oldest);
        }
        self.outdating.push_back((now + self.limits.session_time, content));
        self.begun.insert(content);
    }

    fn end(&mut self, id: &SessionId) -> Option<Session<V::Endpoint>> {
        let session = self.sessions.remove(id)?;
        if let Entry::Occupied(mut count) = self.per_client.entry(session.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(session)
    }

    /// Removes entries of ended sessions from `expiring` when it exceeds twice the limit of sessions. Otherwise it
    /// would contain all sessions of the last minute.
    fn drop_finished(&mut self) {
        if self.expiring.len() > 2 * self.limits.sessions.max(1) {
            let sessions = &self.sessions;
            self.expiring.retain(|(_, id)| sessions.contains_key(id));
        }
    }

    fn continue_session(
        &mut self,
        now: Time,
        packet: &Packet<'_>,
        state: &[u8],
        eap: &[u8],
    ) -> Option<Vec<u8>> {
        let known = state.split_first_chunk::<SESSION_BYTES>().filter(|_| state.len() == STATE_BYTES);
        let Some((id, answered)) = known else { return self.reject(packet, "unknown_state", Some(eap)) };
        let Some(session) = self.sessions.get_mut(id) else {
            return self.reject(packet, "unknown_state", Some(eap));
        };
        if session.answered.to_be_bytes() != answered {
            // An old request whose response was deleted: a replay.
            self.tally.discarded += 1;
            return None;
        }
        let output = session.server.handle(now, eap);
        self.respond(packet, *id, output)
    }

    /// Builds the RADIUS response for the output of a session's server.
    fn respond(&mut self, packet: &Packet<'_>, id: SessionId, output: Output) -> Option<Vec<u8>> {
        match output {
            Output::Ignored => {
                self.tally.discarded += 1;
                if self.sessions.get(&id).is_some_and(|session| session.answered == 0) {
                    self.end(&id);
                }
                None
            }
            Output::Request(request) => {
                let session = self.sessions.get_mut(&id)?;
                session.answered += 1;
                let mut state = id.to_vec();
                state.extend(session.answered.to_be_bytes());
                let challenge = self.reply(packet, code::ACCESS_CHALLENGE, |builder, _| {
                    builder.add_eap(&request)?.add(attribute::STATE, &state)?;
                    Ok(())
                });
                match challenge {
                    Ok(challenge) => Some(challenge),
                    Err(_) => {
                        self.end(&id);
                        self.reject(packet, "too_large", Some(&request))
                    }
                }
            }
            Output::Success(success) => self.accept(packet, id, &success),
            Output::Failure(failure, reason) => {
                self.end(&id);
                self.rejected(packet, &failure, &reason)
            }
        }
    }

    fn accept(&mut self, packet: &Packet<'_>, id: SessionId, success: &[u8]) -> Option<Vec<u8>> {
        let session = self.end(&id)?;
        let msk = *session.server.tunnel().msk()?;
        let mut salts = [0; 2];
        self.environment.random(&mut salts);
        let authenticator = packet.authenticator();
        let accept = self.reply(packet, code::ACCESS_ACCEPT, |builder, secret| {
            builder.add_eap(success)?;
            add_msk(builder, &msk, secret, &authenticator, salts)
        });
        self.tally.accepted += 1;
        self.tally.resumed +=
            u64::from(session.server.tunnel().negotiated().is_some_and(|negotiated| negotiated.resumed));
        accept.ok()
    }

    fn rejected(&mut self, packet: &Packet<'_>, failure: &[u8], reason: &ServerFailure) -> Option<Vec<u8>> {
        *self.tally.rejected.entry(reason.cause()).or_default() += 1;
        self.reply(packet, code::ACCESS_REJECT, |builder, _| builder.add_eap(failure).map(drop)).ok()
    }

    /// Rejects a request that was not passed to a session's server.
    fn reject(&mut self, packet: &Packet<'_>, cause: &str, eap: Option<&[u8]>) -> Option<Vec<u8>> {
        *self.tally.rejected.entry(cause.to_owned()).or_default() += 1;
        let identifier = eap.and_then(|eap| eap.get(1)).copied();
        let failure = identifier.map(|identifier| eap::result(Code::Failure, identifier));
        self.reply(packet, code::ACCESS_REJECT, |builder, _| match &failure {
            Some(failure) => builder.add_eap(failure).map(drop),
            None => Ok(()),
        })
        .ok()
    }

    /// A response with the proxies' states, in their order and unaltered (RFC 2865 section 5.33).
    fn reply(
        &self,
        packet: &Packet<'_>,
        code: u8,
        fill: impl FnOnce(&mut Builder, &Secret) -> Result<(), BuildError>,
    ) -> Result<Vec<u8>, BuildError> {
        let mut builder = Builder::new(code, packet.identifier());
        fill(&mut builder, &self.secret)?;
        for state in packet.all(attribute::PROXY_STATE) {
            builder.add(attribute::PROXY_STATE, state)?;
        }
        Ok(builder.response(&self.secret, &packet.authenticator()))
    }
}
