//! Client and server configurations of a suite.

use super::sessions::{KeptSessions, OneSession, TimedTickets};
use super::verifier::Observed;
use super::{NAME, names, provider};
use crate::stack::{Exposure, Setup, SetupError};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, Tls12Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{ClientConfig, KeyLog, RootCertStore, ServerConfig, SupportedProtocolVersion};
use shakedown_pki::Identity;
use shakedown_trace::Side;
use shakedown_trace::suite::{Authentication, Mode, Protocol};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Tickets of one full handshake before TLS 1.3 resumptions: each ticket resumes once.
const TICKETS_OF_A_SESSION: usize = 256;

/// Maximum number of sessions of a server on a network; beyond it the oldest are removed.
const MAX_SESSIONS: usize = 16_384;

pub struct Configs {
    pub usual: Arc<ServerConfig>,
    /// For the full handshake before a resumption: with tickets in TLS 1.3.
    pub issuing: Arc<ServerConfig>,
}

fn refused<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> SetupError {
    move |error| SetupError::Stack { stack: NAME, what, reason: error.to_string() }
}

/// The time at which certificates must be valid.
#[derive(Debug)]
struct Fixed(UnixTime);

impl TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

fn time(setup: &Setup) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(setup.now_unix_s).unwrap_or(0)))
}

/// The provider with only the suite's cipher and group.
///
/// Up to TLS 1.2 a client's list of groups also states the permitted curves of the server's certificates (RFC 8422
/// section 5.1): a client lists them after the group of the exchange, and a server has only that group.
fn provider(setup: &Setup, side: Side) -> Result<Arc<CryptoProvider>, SetupError> {
    let suite = &setup.suite;
    let mut provider = if setup.instrumented { provider::timed() } else { provider::bare() };
    let cipher = names::cipher_suite(suite);
    provider.cipher_suites.retain(|known| Some(known.suite()) == cipher);
    let wanted =
        suite.group.into_iter().chain(names::certificate_groups(suite, side)).filter_map(names::group);
    let known = std::mem::take(&mut provider.kx_groups);
    for group in wanted {
        let chosen = |candidate: &&&dyn SupportedKxGroup| candidate.name() == group;
        let listed = provider.kx_groups.iter().any(|listed| listed.name() == group);
        provider.kx_groups.extend(known.iter().find(chosen).filter(|_| !listed));
    }
    if provider.cipher_suites.is_empty() || provider.kx_groups.is_empty() {
        let reason = format!("it does not offer {suite}");
        return Err(SetupError::Stack { stack: NAME, what: "choose cipher and group", reason });
    }
    Ok(Arc::new(provider))
}

static TLS12: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
static TLS13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

fn versions(setup: &Setup) -> &'static [&'static SupportedProtocolVersion] {
    match setup.suite.protocol {
        Protocol::Tls12 => &TLS12,
        _ => &TLS13,
    }
}

fn roots(identity: &Identity) -> Result<Arc<RootCertStore>, SetupError> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(identity.root.clone())).map_err(refused("trust the peer's root"))?;
    Ok(Arc::new(roots))
}

fn chain(identity: &Identity) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = identity.chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
    (chain, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.key.clone())))
}

/// The state that clients of a suite share, and the name that they verify.
pub fn client(setup: &Setup) -> Result<(ClientConfig, ServerName<'static>), SetupError> {
    let provider = provider(setup, Side::Client)?;
    let server = setup.x509(Side::Server, NAME)?;
    let server = server.ok_or_else(|| SetupError::Stack {
        stack: NAME,
        what: "check the server",
        reason: "the suite has no server certificate".into(),
    })?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots(server)?, Arc::clone(&provider))
        .build()
        .map_err(refused("make a verifier of servers"))?;
    let builder = ClientConfig::builder_with_details(provider, Arc::new(Fixed(time(setup))))
        .with_protocol_versions(versions(setup))
        .map_err(refused("set the protocol"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Observed::new(verifier as Arc<dyn ServerCertVerifier>)));
    let own = setup.x509(Side::Client, NAME)?;
    let mutual = setup.suite.authentication == Some(Authentication::Mutual);
    let mut config = match own.filter(|_| mutual) {
        Some(own) => {
            let (chain, key) = chain(own);
            builder.with_client_auth_cert(chain, key).map_err(refused("take the client's certificate"))?
        }
        None => builder.with_no_client_auth(),
    };
    if let Some(log) = &setup.key_log {
        config.key_log = Arc::new(Lines(Arc::clone(log)));
    }
    let name = ServerName::try_from(server.subject.clone()).map_err(refused("check the server's name"))?;
    Ok((config, name))
}

/// The configuration with a separate session store for one connection. rustls resumes only if verifier and credentials
/// are the same objects as when the session was established; clones share them.
pub fn with_sessions(config: &ClientConfig, setup: &Setup, sessions: Arc<OneSession>) -> ClientConfig {
    let by_id = match setup.suite.mode {
        Mode::Resumed => Tls12Resumption::SessionIdOnly,
        Mode::Ticket => Tls12Resumption::SessionIdOrTickets,
        _ if setup.tickets > 0 => Tls12Resumption::SessionIdOrTickets,
        _ => Tls12Resumption::Disabled,
    };
    let mut config = config.clone();
    config.resumption = Resumption::store(sessions).tls12_resumption(by_id);
    config
}

/// The state that a server's connections share.
pub fn server(setup: &Setup) -> Result<Configs, SetupError> {
    let provider = provider(setup, Side::Server)?;
    let own = setup.x509(Side::Server, NAME)?;
    let own = own.ok_or_else(|| SetupError::Stack {
        stack: NAME,
        what: "present a certificate",
        reason: "the suite has none".into(),
    })?;
    let network = setup.exposure == Exposure::Network;
    let clock: Arc<dyn TimeProvider> =
        if network { Arc::new(DefaultTimeProvider) } else { Arc::new(Fixed(time(setup))) };
    let builder = ServerConfig::builder_with_details(Arc::clone(&provider), clock)
        .with_protocol_versions(versions(setup))
        .map_err(refused("set the protocol"))?;
    let builder = match (setup.suite.authentication, setup.x509(Side::Client, NAME)?) {
        (Some(Authentication::Requested | Authentication::Mutual), Some(peer)) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(peer)?, provider);
            let asks = setup.suite.authentication == Some(Authentication::Requested);
            let verifier = if asks { verifier.allow_unauthenticated() } else { verifier };
            let verifier = verifier.build().map_err(refused("make a verifier of clients"))?;
            builder.with_client_cert_verifier(Arc::new(Observed::new(verifier)))
        }
        _ => builder.with_no_client_auth(),
    };
    let (chain, key) = chain(own);
    let mut config =
        builder.with_single_cert(chain, key).map_err(refused("take the server's certificate"))?;
    let tls13 = setup.suite.protocol == Protocol::Tls13;
    let resumes = setup.suite.is_resumption();
    let by_ticket = setup.tickets > 0 || setup.suite.mode == Mode::Ticket || resumes && tls13;
    config.session_storage = match resumes && !by_ticket {
        true if network => ServerSessionMemoryCache::new(MAX_SESSIONS),
        true => Arc::new(KeptSessions::default()),
        false => Arc::new(NoServerSessionStorage {}),
    };
    if by_ticket {
        let inner = aws_lc_rs::Ticketer::new().map_err(refused("make keys for tickets"))?;
        config.ticketer = Arc::new(TimedTickets { inner });
    }
    // On a network, a new ticket replaces the one that was used.
    config.send_tls13_tickets = setup.tickets.max(u32::from(resumes && network)) as usize;
    let mut issuing = config.clone();
    issuing.send_tls13_tickets = TICKETS_OF_A_SESSION;
    Ok(Configs { usual: Arc::new(config), issuing: Arc::new(issuing) })
}

/// Collects the lines of a key log.
#[derive(Debug)]
struct Lines(crate::stack::KeyLog);

impl KeyLog for Lines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}", hex(client_random), hex(secret));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}
