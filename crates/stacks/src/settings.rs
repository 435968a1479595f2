//! What the user may ask of a handshake besides its suite.

use crate::registry::Registry;
use crate::stack::{Exposure, Identities, KeyLog, Setup, SetupError, Stack};
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::{PkiError, Profile, Store};
use shakedown_trace::endpoint::DEFAULT_LARGEST_DATAGRAM_BYTES;
use shakedown_trace::suite::{Authentication, KeyExchange};
use shakedown_trace::{Carrier, Counter, Credentials, Side, Suite};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Remarks that a user should read, gathered while stacks are set up.
pub type Notices = Arc<Mutex<Vec<String>>>;

/// What handshakes are to be like, besides their suite.
#[derive(Clone, Debug)]
pub struct Settings {
    pub registry: Registry,
    /// Name of the client's stack; `None`: the first that can.
    pub client_stack: Option<String>,
    pub server_stack: Option<String>,
    /// Time at which certificates must be valid, in seconds since 1970-01-01 00:00 UTC.
    pub now_unix_s: i64,
    /// Tickets that the server issues after full handshakes.
    pub tickets: u32,
    /// What is in generated certificates besides keys.
    pub profile: Profile,
    /// Where keys and certificates are kept between runs; `None`: where the store puts them by itself.
    pub cache: Option<PathBuf>,
    /// From what endpoints draw all randomness; `None`: the system's.
    pub seed: Option<u64>,
    /// What is counted while endpoints work.
    pub counter: Counter,
    /// Times primitives and tells the recorder of messages; without, stacks run unobserved.
    pub instrumented: bool,
    /// Whom a server's connections come from.
    pub exposure: Exposure,
    /// How long a handshake may take over datagrams; `None`: the stack's own limit.
    pub handshake_timeout: Option<Duration>,
    /// The largest datagram that endpoints make: that of a path, where one is known.
    pub largest_datagram_bytes: usize,
    /// Where to put what was found damaged among kept keys and certificates, and generated again.
    pub notices: Notices,
    /// Where the client logs secrets for captures.
    pub key_log: Option<KeyLog>,
    pub carrier: Carrier,
    /// TLS bytes in an EAP packet, where that carries them.
    pub fragment_bytes: usize,
    /// What the server presents instead of what the store has.
    pub server_identity: Option<AnyIdentity>,
    /// What the client presents instead.
    pub client_identity: Option<AnyIdentity>,
}

impl Settings {
    pub fn store(&self) -> Result<Store, PkiError> {
        Ok(match &self.cache {
            Some(folder) => Store::open(folder),
            None => Store::open(&Store::default_dir()?),
        })
    }

    /// Keeps what the store has to say.
    pub fn collect_notices(&self, store: &Store) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(store.take_notices());
    }

    /// What a stack is told, once it is known what both sides present.
    pub fn setup(&self, suite: &Suite, identities: Identities) -> Setup {
        Setup {
            suite: suite.clone(),
            identities,
            now_unix_s: self.now_unix_s,
            tickets: self.tickets,
            instrumented: self.instrumented,
            exposure: self.exposure,
            handshake_timeout: self.handshake_timeout,
            largest_datagram_bytes: self.largest_datagram_bytes,
            key_log: self.key_log.clone(),
            carrier: self.carrier,
            session_cache: None,
        }
    }

    /// What both sides present in a suite: the user's, else what each side's stack generates.
    pub fn identities(
        &self,
        suite: &Suite,
        client: &dyn Stack,
        server: &dyn Stack,
    ) -> Result<Identities, SetupError> {
        let mut identities = Identities::default();
        let temporary = suite.key_exchange == KeyExchange::RsaAnon;
        if !suite.has_certificates() && !temporary {
            return Ok(identities);
        }
        let store = self.store()?;
        let generate =
            |stack: &dyn Stack, side| stack.generate(suite, side, &self.profile, self.now_unix_s, &store);
        if suite.has_certificates() {
            identities.server = Some(match &self.server_identity {
                Some(supplied) => supplied.clone(),
                None => generate(server, Side::Server)?,
            });
        }
        if matches!(suite.authentication, Some(Authentication::Requested | Authentication::Mutual)) {
            identities.client = Some(match &self.client_identity {
                Some(supplied) => supplied.clone(),
                None => generate(client, Side::Client)?,
            });
        }
        if let (true, Some(kind)) = (temporary, suite.keys.first()) {
            identities.temporary_key = Some(store.temporary_key(*kind)?);
        }
        self.collect_notices(&store);
        Ok(identities)
    }

    pub fn credentials(&self, suite: &Suite) -> Credentials {
        let used = |side: Side, supplied: &Option<AnyIdentity>| {
            let presents = side == Side::Server || suite.authentication == Some(Authentication::Mutual);
            supplied.as_ref().filter(|_| presents && suite.has_certificates()).map(fingerprint)
        };
        let supplied = [used(Side::Server, &self.server_identity), used(Side::Client, &self.client_identity)];
        let supplied: Vec<String> = supplied.into_iter().flatten().collect();
        if !supplied.is_empty() {
            return Credentials::UserSupplied(supplied.join("-"));
        }
        let usual = Profile::default().name;
        if !suite.has_certificates() || self.profile.name == usual {
            Credentials::Generated
        } else {
            Credentials::GeneratedBy(self.profile.name.clone())
        }
    }
}

/// Tells one chain from another: the beginning of SHA-256 over what is presented.
fn fingerprint(identity: &AnyIdentity) -> String {
    let mut hash = openssl::sha::Sha256::new();
    match identity {
        AnyIdentity::X509(identity) => identity.chain.iter().for_each(|der| hash.update(der)),
        AnyIdentity::Wtls(identity) => {
            identity.chain.iter().for_each(|certificate| hash.update(certificate.as_bytes()));
        }
    }
    hash.finish()[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Default for Settings {
    /// 2026-01-01, no tickets, instrumented.
    fn default() -> Self {
        Self {
            registry: Registry::default(),
            client_stack: None,
            server_stack: None,
            now_unix_s: 1_767_225_600,
            tickets: 0,
            profile: Profile::default(),
            cache: None,
            seed: None,
            counter: Counter::NANOSECONDS,
            instrumented: true,
            exposure: Exposure::default(),
            handshake_timeout: None,
            largest_datagram_bytes: DEFAULT_LARGEST_DATAGRAM_BYTES,
            notices: Notices::default(),
            key_log: None,
            carrier: Carrier::Bare,
            fragment_bytes: shakedown_eap::tls::DEFAULT_FRAGMENT_BYTES,
            server_identity: None,
            client_identity: None,
        }
    }
}
