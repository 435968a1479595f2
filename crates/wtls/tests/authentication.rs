//! Client authentication: the policy is enforced, whatever is offered, negotiated or resumed, and sessions are not
//! valid longer than their certificates.

#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::*;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use support::*;

const CURVE: Curve = Curve::Wtls8;
const EC: [Kind; 2] = [Kind::Ec(CURVE), Kind::Ec(Curve::Secp160r1)];
const RSA: [Kind; 1] = [Kind::Rsa(512)];

const SECRET_NAME: &[u8] = b"subscriber";

fn secret() -> SharedSecret {
    SharedSecret { identifier: Identifier::Binary(SECRET_NAME.to_vec()), secret: vec![7; 16].into() }
}

/// A server with keys for every suite, which serves all of them with every cipher suite.
fn server(authentication: ClientAuthentication, sessions: &Arc<MemorySessions>) -> ServerConfig<OpenSsl> {
    let mut server = ServerConfig::new(KeyExchangeSuite::ALL.to_vec());
    let all = |bulk: &BulkCipher| MacAlgorithm::ALL.iter().map(|mac| (*bulk, *mac)).collect::<Vec<_>>();
    let suites = BulkCipher::ALL.iter().flat_map(all);
    server.cipher_suites = suites.map(|(bulk, mac)| CipherSuite { bulk, mac }).collect();
    for kinds in [&EC[..], &RSA] {
        server.identities.push(Chain::new("server", kinds, 1, false).identity());
        server.anchors.push(Chain::new("client", kinds, 2, false).anchor());
    }
    let key = private_key(Kind::Rsa(512), 7);
    server.temporary_rsa_keys.push(TemporaryRsaKey { public: encoded_rsa(&key), key });
    server.curves = vec![CURVE];
    server.groups = vec![DhGroup::group_1()];
    server.shared_secrets.push(secret());
    server.client_authentication = authentication;
    server.sessions = Arc::clone(sessions) as Arc<dyn SessionStore>;
    server
}

fn offer_of(suite: KeyExchangeSuite) -> KeyExchangeId {
    match suite.family() {
        KeyExchangeFamily::SharedSecret => {
            KeyExchangeId::new(suite, ParameterSpecifier::NONE, secret().identifier)
        }
        KeyExchangeFamily::EcdhAnon | KeyExchangeFamily::EcdhEcdsa => {
            offer(suite, ParameterSpecifier::of_curve(CURVE, false))
        }
        _ => offer(suite, ParameterSpecifier::NONE),
    }
}

/// The certificate of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Ec,
    Rsa,
    /// A certificate of an authority that the server does not trust.
    Foreign,
}

fn client(holds: Holds, suites: &[KeyExchangeSuite], ciphers: &[CipherSuite]) -> ClientConfig<OpenSsl> {
    let mut client = ClientConfig::new(suites.iter().map(|suite| offer_of(*suite)).collect());
    client.cipher_suites = ciphers.to_vec();
    for kinds in [&EC[..], &RSA] {
        client.anchors.push(Chain::new("server", kinds, 1, false).anchor());
    }
    client.shared_secrets.push(secret());
    client.identity = match holds {
        Holds::Nothing => None,
        Holds::Ec => Some(Chain::new("client", &EC, 2, false).identity()),
        Holds::Rsa => Some(Chain::new("client", &RSA, 2, false).identity()),
        Holds::Foreign => Some(Chain::new("foreign", &EC, 3, false).identity()),
    };
    client
}

type Configs = (Arc<ServerConfig<OpenSsl>>, Arc<ServerConfig<OpenSsl>>);

/// A server that requires certificates and one that does not, with the same sessions.
static SERVERS: LazyLock<Configs> = LazyLock::new(|| {
    let sessions = Arc::new(MemorySessions::new(100_000));
    let required = server(ClientAuthentication::Required, &sessions);
    (Arc::new(required), Arc::new(server(ClientAuthentication::None, &sessions)))
});

const SHA: CipherSuite = CipherSuite::RC5_SHA;
const MD5: CipherSuite = CipherSuite { bulk: BulkCipher::Rc5Cbc, mac: MacAlgorithm::Md5 };

/// Runs a handshake with the server that requires certificates. Checks that a connection has a client
/// certificate.
fn connects(config: ClientConfig<OpenSsl>, session: Option<Session>, seed: u64) -> Option<Established> {
    let mut pair = Pair::new(&Arc::new(config), &SERVERS.0, session, seed);
    pair.run();
    let found = established(&pair.server_events).cloned();
    assert_eq!(pair.server.is_open(), found.is_some());
    if let Some(found) = &found {
        assert!(found.key_exchange.family().is_certified(), "{found:?}");
        let name = peer_certificates(found).first().and_then(|leaf| leaf.subject().as_text());
        assert_eq!(name, Some("client; Test; US; client.test"), "{found:?}");
        assert!(established(&pair.client_events).is_some());
    } else {
        assert!(!pair.client.is_open() || pair.client.session().is_none());
    }
    found
}

/// Whether one of the offers authenticates such a client.
fn should_connect(holds: Holds, suites: &[KeyExchangeSuite], ciphers: &[CipherSuite]) -> bool {
    // The server selects the first offer that could authenticate a client; this client must be able to do so.
    let first = suites.iter().find_map(|suite| match suite.family() {
        KeyExchangeFamily::EcdhEcdsa => Some(Holds::Ec),
        KeyExchangeFamily::Rsa => {
            ciphers.iter().any(|cipher| cipher.hash() == HashAlgorithm::Sha1).then_some(Holds::Rsa)
        }
        _ => None,
    });
    !ciphers.is_empty() && first == Some(holds)
}

#[test]
fn no_pair_of_offers_evades_a_required_certificate() {
    let orders = [&[SHA][..], &[MD5], &[SHA, MD5], &[MD5, SHA]];
    let (mut connected, mut tried) = (0, 0);
    for &first in KeyExchangeSuite::ALL {
        for &second in KeyExchangeSuite::ALL {
            for (index, order) in orders.iter().enumerate() {
                for holds in [Holds::Nothing, Holds::Ec, Holds::Rsa] {
                    let suites = [first, second];
                    let found = connects(client(holds, &suites, order), None, index as u64);
                    let expected = should_connect(holds, &suites, order);
                    assert_eq!(found.is_some(), expected, "{holds:?} {suites:?} {order:?}");
                    connected += u32::from(expected);
                    tried += 1;
                }
            }
        }
    }
    println!("{connected} of {tried} clients connected");
    assert!(connected > tried / 20);
}

fn ciphers() -> impl Strategy<Value = Vec<CipherSuite>> {
    let all: Vec<_> = BulkCipher::ALL
        .iter()
        .flat_map(|bulk| MacAlgorithm::ALL.iter().map(|mac| CipherSuite { bulk: *bulk, mac: *mac }))
        .collect();
    prop::sample::subsequence(all, 0..12).prop_shuffle()
}

fn suites() -> impl Strategy<Value = Vec<KeyExchangeSuite>> {
    prop::sample::subsequence(KeyExchangeSuite::ALL.to_vec(), 0..=KeyExchangeSuite::ALL.len()).prop_shuffle()
}

/// A session of the server that requires no certificates, for these offers.
fn lax_session(suites: &[KeyExchangeSuite], ciphers: &[CipherSuite], seed: u64) -> Option<Session> {
    let config = client(Holds::Nothing, suites, ciphers);
    let mut pair = Pair::new(&Arc::new(config), &SERVERS.1, None, seed);
    pair.run();
    pair.client.session().cloned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_offers_evades_a_required_certificate(
        suites in suites(),
        ciphers in ciphers(),
        holds in prop::sample::select(vec![Holds::Nothing, Holds::Ec, Holds::Rsa, Holds::Foreign]),
        resumes in any::<bool>(),
        seed in any::<u32>(),
    ) {
        let session = if resumes { lax_session(&suites, &ciphers, seed.into()) } else { None };
        let config = client(holds, &suites, &ciphers);
        let found = connects(config, session, u64::from(seed) + 1);
        prop_assert_eq!(found.is_some(), should_connect(holds, &suites, &ciphers));
    }
}

#[test]
fn offer_that_cannot_authenticate_gets_insufficient_security_alert() {
    let config = Arc::new(client(Holds::Rsa, &[KeyExchangeSuite::Rsa], &[MD5]));
    let mut pair = Pair::new(&config, &SERVERS.0, None, 1);
    pair.run_out();
    assert_eq!(rejected(&pair.server_events), Some(&Error::CannotAuthenticate));
    let alert = Alert::fatal(AlertDescription::InsufficientSecurity);
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::Alert(alert)));
}

/// Runs a handshake at a time; returns its mode.
fn mode_at(
    now: Duration,
    client: &Arc<ClientConfig<OpenSsl>>,
    server: &Arc<ServerConfig<OpenSsl>>,
    session: Option<Session>,
) -> HandshakeMode {
    let mut pair = Pair::starting_at(now, client, server, session, now.as_secs());
    pair.run();
    established(&pair.server_events).unwrap().mode
}

const START: Duration = Duration::from_secs(10);

#[test]
fn session_is_resumed_only_under_its_original_policy() {
    use ClientAuthentication::{None, Requested, Required};
    let sessions = Arc::new(MemorySessions::new(100));
    let config = Arc::new(client(Holds::Ec, &[KeyExchangeSuite::EcdhEcdsa], &[SHA]));
    let mut seed = 100;
    for made_under in [None, Requested, Required] {
        for resumed_under in [None, Requested, Required] {
            let made = Arc::new(server(made_under, &sessions));
            // Another seed each time, because otherwise the sessions would have the same identifiers.
            seed += 1;
            let mut first = Pair::new(&config, &made, Option::None, seed);
            first.run();
            let session = first.client.session().cloned();
            assert!(session.is_some());
            let resumed = Arc::new(server(resumed_under, &sessions));
            let expected =
                if made_under == resumed_under { HandshakeMode::Resumed } else { HandshakeMode::Full };
            assert_eq!(
                mode_at(START, &config, &resumed, session),
                expected,
                "{made_under:?} {resumed_under:?}"
            );
        }
    }
    // The trusted roots are part of the policy.
    let made = Arc::new(server(Required, &sessions));
    let mut first = Pair::new(&config, &made, Option::None, 1);
    first.run();
    let mut other = server(Required, &sessions);
    other.anchors.pop();
    let session = first.client.session().cloned();
    assert_eq!(mode_at(START, &config, &Arc::new(other), session), HandshakeMode::Full);
}

#[test]
fn resuming_does_not_extend_the_session_lifetime() {
    let lifetime = Duration::from_secs(24 * 60 * 60);
    assert_eq!(Settings::default().session_lifetime, lifetime);
    let sessions = Arc::new(MemorySessions::new(100));
    // The client's limit is higher, so that the server's is tested.
    let mut config = client(Holds::Ec, &[KeyExchangeSuite::EcdhEcdsa], &[SHA]);
    config.settings.session_lifetime = Duration::MAX;
    let config = Arc::new(config);
    let server = Arc::new(server(ClientAuthentication::Required, &sessions));
    let mut first = Pair::new(&config, &server, None, 1);
    first.run();
    let session = first.client.session().cloned().unwrap();
    let resumed = |after: Duration| mode_at(START + after, &config, &server, Some(session.clone()));
    assert_eq!(resumed(lifetime / 2), HandshakeMode::Resumed);
    assert_eq!(resumed(lifetime), HandshakeMode::Resumed);
    assert_eq!(resumed(lifetime + Duration::from_secs(1)), HandshakeMode::Full);
    assert!(sessions.find(&session.id).is_none(), "it is forgotten");
}

#[test]
fn client_does_not_offer_expired_or_other_policy_sessions() {
    let sessions = Arc::new(MemorySessions::new(100));
    let server = Arc::new(server(ClientAuthentication::None, &sessions));
    let base = || client(Holds::Nothing, &[KeyExchangeSuite::EcdhEcdsa], &[SHA]);
    let mut first = Pair::new(&Arc::new(base()), &server, None, 1);
    first.run();
    let session = first.client.session().cloned().unwrap();
    let mode =
        |config: ClientConfig<OpenSsl>, now| mode_at(now, &Arc::new(config), &server, Some(session.clone()));
    assert_eq!(mode(base(), START), HandshakeMode::Resumed);
    assert_eq!(mode(base(), START + Duration::from_secs(24 * 60 * 60 + 1)), HandshakeMode::Full);
    let mut named = base();
    named.server_name = Some("server.test".to_owned());
    assert_eq!(mode(named, START), HandshakeMode::Full, "the name was not verified");
    let mut distrustful = base();
    distrustful.anchors.pop();
    assert_eq!(mode(distrustful, START), HandshakeMode::Full);
}

#[test]
fn session_ends_with_the_validity_of_its_certificates() {
    // Certificates of the tests are valid for 100,000,000 s from now on.
    let (valid, over) = (Duration::from_secs(100_000_000), Duration::from_secs(100_000_001));
    let sessions = Arc::new(MemorySessions::new(100));
    let mut config = client(Holds::Ec, &[KeyExchangeSuite::EcdhEcdsa], &[SHA]);
    config.settings.session_lifetime = Duration::MAX;
    let mut server = server(ClientAuthentication::Required, &sessions);
    server.settings.session_lifetime = Duration::MAX;
    let (config, server) = (Arc::new(config), Arc::new(server));
    let mut first = Pair::new(&config, &server, None, 1);
    first.run();
    let session = first.client.session().cloned();
    assert_eq!(mode_at(valid, &config, &server, session.clone()), HandshakeMode::Resumed);
    // The client no longer offers the session, and rejects the server's certificate, which has expired.
    let mut pair = Pair::starting_at(over, &config, &server, session.clone(), 3);
    pair.run();
    assert!(established(&pair.server_events).is_none());
    let expired = Error::Certificate(certificate::CertificateError::NotValidNow {
        subject: "server; Test; US; server.test".to_owned(),
        from_unix_s: NOW_UNIX_S - 1000,
        to_unix_s: NOW_UNIX_S + 100_000_000,
        now_unix_s: NOW_UNIX_S + 100_000_001,
    });
    assert_eq!(rejected(&pair.client_events), Some(&expired));
    // A client whose clock is slow offers it. The server does not resume it, and rejects the certificate.
    let mut pair = Pair::starting_at(valid, &config, &server, session, 4);
    let hello = pair.client.poll_transmit().unwrap();
    pair.now = over;
    pair.deliver_to_server(&hello);
    let flight = pair.server.poll_transmit().unwrap();
    pair.now = valid;
    pair.deliver_to_client(&flight);
    let last = pair.client.poll_transmit().unwrap();
    pair.now = over;
    pair.deliver_to_server(&last);
    let error = rejected(&pair.server_events);
    assert!(matches!(error, Some(Error::Certificate(certificate::CertificateError::NotValidNow { .. }))));
}

#[test]
fn another_handshake_does_not_replace_a_session_of_equal_id() {
    let sessions = MemorySessions::new(10);
    let config = Arc::new(client(Holds::Nothing, &[KeyExchangeSuite::EcdhEcdsa], &[SHA]));
    let mut pair = Pair::new(&config, &SERVERS.1, None, 1);
    pair.run();
    let session = pair.client.session().cloned().unwrap();
    sessions.insert(session.clone());
    let other = Session { master: key_schedule::MasterSecret::from_bytes([1; 20]), ..session.clone() };
    sessions.insert(other);
    let kept = sessions.find(&session.id).unwrap();
    assert_eq!(kept.master.as_bytes(), session.master.as_bytes());
}
