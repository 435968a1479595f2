//! The environment of the tests: keys and certificates from a seed, a link, a clock.

#![allow(dead_code, clippy::unwrap_used)]

pub mod flows;
pub mod network;
pub mod script;
pub mod vectors;

use shakedown_wtls::certificate::{
    Certificate, CertifiedKey, CertifiedPoint, ChainCertificate, Issuer, PeerIdentity, Subject, TrustAnchor,
    issue, self_signed,
};
use shakedown_wtls::crypto::{Group, Provider};
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey};
use shakedown_wtls::*;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub const NOW_UNIX_S: u64 = 1_000_000_000;

pub static PROVIDER: LazyLock<OpenSsl> = LazyLock::new(|| OpenSsl::new().unwrap());

/// xorshift64*: small, fast, the same everywhere. Not for secrets.
#[derive(Clone)]
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

impl crypto::Random for Seeded {
    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next().to_be_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// Records the calls of the observer.
#[derive(Default, Clone)]
pub struct Log(pub Vec<String>);

impl Observer for Log {
    fn processed(&mut self, message: Message, wire_bytes: usize) {
        self.0.push(format!("< {message} {wire_bytes}"));
    }
    fn generated(&mut self, message: Message, wire_bytes: usize) {
        self.0.push(format!("> {message} {wire_bytes}"));
    }
}

impl Log {
    pub fn messages(&self) -> Vec<&str> {
        self.0.iter().map(|line| line.rsplit_once(' ').unwrap().0).collect()
    }
}

pub struct Environment {
    pub random: Seeded,
    pub log: Log,
}

impl Environment {
    pub fn new(seed: u64) -> Self {
        Self { random: Seeded::new(seed), log: Log::default() }
    }

    pub fn cx(&mut self, now: Duration) -> Context<'_, OpenSsl> {
        Context {
            now: Time { elapsed: now, unix_s: NOW_UNIX_S + now.as_secs() },
            provider: &PROVIDER,
            random: &mut self.random,
            observer: &mut self.log,
        }
    }
}

pub fn random() -> Seeded {
    Seeded::new(42)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Rsa(u32),
    Ec(Curve),
}

/// The generation of RSA keys is slow, so each key is generated once per process.
pub fn rsa_der(bits: u32, index: usize) -> Vec<u8> {
    type Keys = std::collections::HashMap<(u32, usize), Vec<u8>>;
    static KEYS: LazyLock<std::sync::Mutex<Keys>> = LazyLock::new(Default::default);
    let mut keys = KEYS.lock().unwrap();
    keys.entry((bits, index))
        .or_insert_with(|| openssl::rsa::Rsa::generate(bits).unwrap().private_key_to_der().unwrap())
        .clone()
}

pub fn private_key(kind: Kind, index: usize) -> PrivateKey {
    match kind {
        Kind::Rsa(bits) => PROVIDER.rsa_key_from_der(&rsa_der(bits, index)).unwrap(),
        Kind::Ec(curve) => PROVIDER.generate(Group::Ec(curve), &mut Seeded::new(1 + index as u64)).unwrap(),
    }
}

/// The peer's chain, leaf first; empty if it was not authenticated.
pub fn peer_certificates(established: &Established) -> &[ChainCertificate] {
    established.peer.as_ref().map_or(&[], PeerIdentity::certificates)
}

pub fn encoded_rsa(key: &PrivateKey) -> EncodedRsaKey {
    let (exponent, modulus) = PROVIDER.rsa_public(key).unwrap();
    EncodedRsaKey::new(&exponent, &modulus).unwrap()
}

pub fn certified(key: &PrivateKey, kind: Kind, leaf: bool, private: bool) -> CertifiedKey {
    match kind {
        Kind::Rsa(_) => CertifiedKey::Rsa(encoded_rsa(key)),
        Kind::Ec(curve) => {
            let point = CertifiedPoint {
                parameters: ParameterSpecifier::of_curve(curve, private),
                point: PROVIDER.public_value(key, PointForm::Compressed).unwrap(),
            };
            if leaf { CertifiedKey::Ecdh(point) } else { CertifiedKey::Ecdsa(point) }
        }
    }
}

pub fn subject(name: &str, public_key: CertifiedKey) -> Subject {
    Subject {
        name: Identifier::text(name),
        public_key,
        valid_not_before_unix_s: NOW_UNIX_S as u32 - 1000,
        valid_not_after_unix_s: NOW_UNIX_S as u32 + 100_000_000,
    }
}

/// A root, intermediates below it, and a leaf, with the leaf's key. `kinds` is leaf first.
pub struct Chain {
    pub root: Certificate,
    pub certificates: Vec<Certificate>,
    pub kinds: Vec<Kind>,
    pub index: usize,
    pub private: bool,
}

impl Chain {
    pub fn new(who: &str, kinds: &[Kind], index: usize, private: bool) -> Self {
        let root_kind = *kinds.last().unwrap();
        let root_name = format!("{who} root; Test; US");
        let mut signer = private_key(root_kind, 100 * index + 99);
        let mut signer_name = Identifier::text(&root_name);
        let public = certified(&signer, root_kind, false, private);
        let root = self_signed(&*PROVIDER, &signer, subject(&root_name, public), &mut random()).unwrap();
        let mut certificates = Vec::new();
        let below = if kinds.len() == 1 { kinds } else { &kinds[..kinds.len() - 1] };
        for (depth, kind) in below.iter().enumerate().rev() {
            let key = private_key(*kind, 100 * index + depth);
            let name = match depth {
                0 => format!("{who}; Test; US; {who}.test"),
                _ => format!("{who} CA {depth}; Test; US; ; T=ca"),
            };
            let public = certified(&key, *kind, depth == 0, private);
            let issuer = Issuer { name: &signer_name, key: &signer };
            let issued = issue(&*PROVIDER, &issuer, subject(&name, public), &mut random()).unwrap();
            certificates.insert(0, issued);
            signer = key;
            signer_name = Identifier::text(&name);
        }
        Self { root, certificates, kinds: kinds.to_vec(), index, private }
    }

    pub fn identity(&self) -> Identity<OpenSsl> {
        let key = private_key(self.kinds[0], 100 * self.index);
        Identity::new(self.certificates.clone(), key).unwrap()
    }

    pub fn anchor(&self) -> TrustAnchor<OpenSsl> {
        TrustAnchor::from_certificate(&*PROVIDER, &self.root, self.private).unwrap()
    }

    pub fn leaf_hash(&self) -> [u8; 20] {
        let key = &self.certificates[0].fields().public_key;
        key.key_hash(&*PROVIDER, self.private).unwrap()
    }
}

pub fn offer(suite: KeyExchangeSuite, parameters: ParameterSpecifier) -> KeyExchangeId {
    KeyExchangeId::new(suite, parameters, Identifier::Null)
}

pub fn certified_offer(kind: Kind, private: bool) -> KeyExchangeId {
    match kind {
        Kind::Rsa(_) => offer(KeyExchangeSuite::Rsa, ParameterSpecifier::NONE),
        Kind::Ec(curve) => offer(KeyExchangeSuite::EcdhEcdsa, ParameterSpecifier::of_curve(curve, private)),
    }
}

/// Configurations of both sides for a certified key exchange.
pub fn certified_pair(
    kinds: &[Kind],
    authentication: ClientAuthentication,
    client_has_certificate: bool,
    private: bool,
) -> (ClientConfig<OpenSsl>, ServerConfig<OpenSsl>) {
    let server_chain = Chain::new("server", kinds, 1, private);
    let offer = certified_offer(kinds[0], private);
    let mut server = ServerConfig::new(vec![offer.known_suite().unwrap()]);
    server.identities.push(server_chain.identity());
    server.client_authentication = authentication;
    server.sessions = Arc::new(MemorySessions::new(1000));
    server.settings.private_curves = private;
    let mut client = ClientConfig::new(vec![offer]);
    client.anchors.push(server_chain.anchor());
    client.settings.private_curves = private;
    if client_has_certificate {
        let client_chain = Chain::new("client", kinds, 2, private);
        client.identity = Some(client_chain.identity());
        server.anchors.push(client_chain.anchor());
    }
    (client, server)
}

/// Configurations for an anonymous key exchange.
pub fn anonymous_pair(offer: KeyExchangeId) -> (ClientConfig<OpenSsl>, ServerConfig<OpenSsl>) {
    let suite = offer.known_suite().unwrap();
    let mut server = ServerConfig::new(vec![suite]);
    server.sessions = Arc::new(MemorySessions::new(1000));
    server.curves = Curve::ALL.to_vec();
    server.groups = vec![DhGroup::group_2(), DhGroup::group_1()];
    if suite.family() == KeyExchangeFamily::RsaAnon {
        for bits in [1024, 768, 512] {
            let key = private_key(Kind::Rsa(bits), 7);
            server.temporary_rsa_keys.push(TemporaryRsaKey { public: encoded_rsa(&key), key });
        }
    }
    (ClientConfig::new(vec![offer]), server)
}

/// Both sides and the link between them.
pub struct Pair {
    pub now: Duration,
    pub client: Client<OpenSsl>,
    pub server: ServerConnection<OpenSsl>,
    pub client_environment: Environment,
    pub server_environment: Environment,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    /// Every datagram that was sent: whether by the client, and its bytes.
    pub wire: Vec<(bool, Vec<u8>)>,
}

impl Pair {
    pub fn new(
        client: &Arc<ClientConfig<OpenSsl>>,
        server: &Arc<ServerConfig<OpenSsl>>,
        session: Option<Session>,
        seed: u64,
    ) -> Self {
        Self::starting_at(Duration::from_secs(10), client, server, session, seed)
    }

    /// Like `new`, at another time.
    pub fn starting_at(
        now: Duration,
        client: &Arc<ClientConfig<OpenSsl>>,
        server: &Arc<ServerConfig<OpenSsl>>,
        session: Option<Session>,
        seed: u64,
    ) -> Self {
        let mut client_environment = Environment::new(2 * seed + 1);
        let client = Client::new(Arc::clone(client), session, &mut client_environment.cx(now));
        Self {
            now,
            client,
            server: ServerConnection::new(Arc::clone(server)),
            client_environment,
            server_environment: Environment::new(2 * seed + 2),
            client_events: Vec::new(),
            server_events: Vec::new(),
            wire: Vec::new(),
        }
    }

    /// Runs until neither side sends. Every datagram arrives.
    pub fn run(&mut self) -> &mut Self {
        for _ in 0..100 {
            let mut quiet = true;
            while let Some(datagram) = self.client.poll_transmit() {
                quiet = false;
                self.deliver_to_server(&datagram);
                self.wire.push((true, datagram));
            }
            while let Some(datagram) = self.server.poll_transmit() {
                quiet = false;
                self.deliver_to_client(&datagram);
                self.wire.push((false, datagram));
            }
            if quiet {
                return self;
            }
        }
        panic!("the conversation does not end");
    }

    pub fn deliver_to_server(&mut self, datagram: &[u8]) {
        self.server.handle_input(&mut self.server_environment.cx(self.now), datagram);
        self.collect();
    }

    pub fn deliver_to_client(&mut self, datagram: &[u8]) {
        self.client.handle_input(&mut self.client_environment.cx(self.now), datagram);
        self.collect();
    }

    pub fn collect(&mut self) {
        self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
        self.server_events.extend(std::iter::from_fn(|| self.server.poll_event()));
    }

    pub fn client_write(&mut self, data: &[u8]) {
        self.client.write(&mut self.client_environment.cx(self.now), data).unwrap();
    }

    pub fn server_write(&mut self, data: &[u8]) {
        self.server.write(&mut self.server_environment.cx(self.now), data).unwrap();
    }

    /// Runs until the client's handshake has succeeded or failed. Every datagram arrives.
    pub fn run_out(&mut self) -> &mut Self {
        for _ in 0..20 {
            self.run();
            if closed(&self.client_events).is_some() || self.client.is_open() {
                return self;
            }
            self.advance();
        }
        panic!("the handshake does not end");
    }

    /// Advances the time to the earliest deadline, and handles the timeouts of both sides.
    pub fn advance(&mut self) -> bool {
        let deadlines = [self.client.poll_timeout(), self.server.poll_timeout()];
        let Some(next) = deadlines.into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        self.client.handle_timeout(&mut self.client_environment.cx(self.now));
        self.server.handle_timeout(&mut self.server_environment.cx(self.now));
        self.collect();
        true
    }
}

pub fn established(events: &[Event]) -> Option<&Established> {
    events.iter().find_map(|event| match event {
        Event::Established(established) => Some(&**established),
        _ => None,
    })
}

/// The error of the last rejected flight.
pub fn rejected(events: &[Event]) -> Option<&Error> {
    events.iter().rev().find_map(|event| match event {
        Event::Rejected(error) => Some(error),
        _ => None,
    })
}

pub fn closed(events: &[Event]) -> Option<&CloseReason> {
    events.iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

pub fn data(events: &[Event]) -> Vec<&[u8]> {
    let data = events.iter().filter_map(|event| match event {
        Event::Data(data) => Some(data.as_slice()),
        _ => None,
    });
    data.collect()
}

/// Bytes of a text of hexadecimal digits and white space.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]).collect()
}
