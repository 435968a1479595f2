//! Configurations of client and server.

use crate::certificate::{CertificateError, CertifiedKey, ChainCertificate, PeerIdentity, TrustAnchor};
use crate::crypto::{Key, KeyKind, Provider};
use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::key_schedule::KeyRefresh;
use crate::message::CertificateEntry;
use crate::numbers::{CipherSuite, KeyExchangeFamily, KeyExchangeSuite};
use crate::parameters::{EncodedRsaKey, Identifier, KeyExchangeId};
use crate::policy::PolicyId;
use crate::session::{NoSessions, SessionStore};
use core::time::Duration;
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

/// When a datagram without a response is retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// The timeout after the first transmission; each further one is twice the one before.
    pub initial: Duration,
    /// Limit of transmissions of a datagram, including the first.
    pub sends: u32,
}

impl Default for Retransmission {
    fn default() -> Self {
        Self { initial: Duration::from_secs(3), sends: 5 }
    }
}

/// The greatest UDP payload over IPv4.
pub(crate) const MAX_DATAGRAM_BYTES: usize = 65_507;

/// The settings that both sides have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Uses the private numbers 240 to 243 for the four curves without an assigned number. Both sides must do so.
    pub private_curves: bool,
    /// Omits the length field of the last record of a datagram, as the specification does. Off by default, because
    /// deployed gateways cannot read such records.
    pub omit_last_length: bool,
    /// Sends different alerts for a wrong MAC and for wrong padding, as the specification does. Off by default,
    /// because an attacker who sees which alert was sent can decrypt records byte by byte.
    pub distinguish_record_errors: bool,
    pub retransmission: Retransmission,
    /// How long after its creation a session may be resumed, in whole seconds. Default: a day, as TLS recommends
    /// (RFC 5246, section F.1.4).
    pub session_lifetime: Duration,
    /// The maximum size of a datagram with data; more data is rejected. A flight is one datagram of any size
    /// (§10.4), which the layer below fragments if necessary.
    pub max_datagram_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            private_curves: false,
            omit_last_length: false,
            distinguish_record_errors: false,
            retransmission: Retransmission::default(),
            session_lifetime: Duration::from_secs(24 * 60 * 60),
            max_datagram_bytes: MAX_DATAGRAM_BYTES,
        }
    }
}

/// A certificate chain and its private key.
pub struct Identity<P: Provider> {
    /// The chain as sent: leaf first, without the root.
    pub(crate) entries: Vec<CertificateEntry>,
    pub(crate) certified_key: CertifiedKey,
    pub(crate) key: P::PrivateKey,
    pub(crate) kind: KeyKind,
    /// The names of all issuers in the chain.
    authorities: Vec<Identifier>,
}

impl<P: Provider> Identity<P> {
    /// An identity from a chain: leaf first, without the root.
    pub fn new<C: Into<ChainCertificate>>(
        chain: Vec<C>,
        key: P::PrivateKey,
    ) -> Result<Self, CertificateError> {
        let chain: Vec<ChainCertificate> = chain.into_iter().map(Into::into).collect();
        let leaf = chain.first().ok_or(CertificateError::Missing)?;
        let certified_key = leaf.public_key(true).into_owned();
        let authorities = chain.iter().map(|link| link.issuer().clone()).collect();
        let kind = key.kind();
        let entries = chain.into_iter().map(CertificateEntry::from).collect();
        Ok(Self { entries, certified_key, key, kind, authorities })
    }

    /// Adds another name of an authority above this identity, such as the hash of the root's key.
    pub fn with_authority(mut self, name: Identifier) -> Self {
        self.authorities.push(name);
        self
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    pub(crate) fn family(&self) -> KeyExchangeFamily {
        match self.kind {
            KeyKind::Rsa { .. } => KeyExchangeFamily::Rsa,
            _ => KeyExchangeFamily::EcdhEcdsa,
        }
    }

    /// Whether a peer that trusts these authorities accepts the chain. An empty list means any authority. An entry
    /// without a name means any authority for its key exchange.
    pub(crate) fn is_trusted_by(&self, trusted: &[KeyExchangeId]) -> bool {
        trusted.is_empty()
            || trusted.iter().any(|id| match &id.identifier {
                Identifier::Null => id.family() == Some(self.family()),
                name => self.authorities.contains(name),
            })
    }
}

/// A pre-shared secret and its name.
pub struct SharedSecret {
    /// The name; not null.
    pub identifier: Identifier,
    pub secret: Zeroizing<Vec<u8>>,
}

pub struct ClientConfig<P: Provider> {
    /// Key exchanges to offer, best first.
    pub key_exchanges: Vec<KeyExchangeId>,
    /// Cipher suites to offer, best first.
    pub cipher_suites: Vec<CipherSuite>,
    /// Trusted roots. ClientHello names them, so that the server can select one of its certificates.
    pub anchors: Vec<TrustAnchor<P>>,
    /// The client's certificates, for servers that request them.
    pub identity: Option<Identity<P>>,
    pub shared_secrets: Vec<SharedSecret>,
    /// The common name that the server's certificate must have.
    pub server_name: Option<String>,
    /// How often keys are refreshed.
    pub key_refresh: KeyRefresh,
    pub settings: Settings,
    policy: OnceLock<PolicyId>,
}

impl<P: Provider> ClientConfig<P> {
    /// Offers these key exchanges with RC5 and SHA; trusts no root yet.
    pub fn new(key_exchanges: Vec<KeyExchangeId>) -> Self {
        Self {
            key_exchanges,
            cipher_suites: vec![CipherSuite::RC5_SHA],
            anchors: Vec::new(),
            identity: None,
            shared_secrets: Vec::new(),
            server_name: None,
            key_refresh: KeyRefresh(8),
            settings: Settings::default(),
            policy: OnceLock::new(),
        }
    }

    /// The identifier of this policy, which sessions store. The first call computes it, so the configuration must not
    /// change afterwards.
    pub fn policy(&self) -> PolicyId {
        *self.policy.get_or_init(|| PolicyId::new(&self.server_name, &self.anchors))
    }
}

/// Whether clients must authenticate. The server enforces this at the end of every handshake, independent of what
/// was offered, negotiated or resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClientAuthentication {
    /// No certificate is requested.
    #[default]
    None,
    /// A certificate is requested if the key exchange permits it. Clients without one are accepted.
    Requested,
    /// Only clients with a verified certificate can connect. Key exchanges and cipher suites without client
    /// authentication are not served.
    Required,
}

/// An RSA key of RSA_anon, used for many handshakes.
pub struct TemporaryRsaKey<P: Provider> {
    pub key: P::PrivateKey,
    /// The public key as sent.
    pub public: EncodedRsaKey,
}

/// A client whose certificate the server has stored, for optimised handshakes. The engine does not verify this
/// certificate; it checks its validity period in each handshake.
pub struct KnownClient<P: Provider> {
    pub(crate) key_hash: [u8; 20],
    pub(crate) certificate: ChainCertificate,
    pub(crate) curve: Curve,
    pub(crate) key: P::PublicKey,
}

impl<P: Provider> KnownClient<P> {
    /// Registers a client's ECDH certificate, which the caller must have verified.
    pub fn new(
        provider: &P,
        certificate: impl Into<ChainCertificate>,
        private_curves: bool,
    ) -> Result<Self, CertificateError> {
        let certificate = certificate.into();
        let public_key = certificate.public_key(true).into_owned();
        let unsuitable = || CertificateError::Unsuitable { subject: certificate.subject().to_string() };
        if !matches!(public_key, CertifiedKey::Ecdh(_)) {
            return Err(unsuitable());
        }
        Ok(Self {
            key_hash: public_key.key_hash(provider, private_curves)?,
            curve: public_key.curve(private_curves).ok_or_else(unsuitable)?,
            key: public_key.import(provider, private_curves)?,
            certificate,
        })
    }
}

pub struct ServerConfig<P: Provider> {
    /// Key exchange suites that are served. Anonymous ones authenticate neither side.
    pub suites: Vec<KeyExchangeSuite>,
    /// Cipher suites that are accepted; the client's order decides.
    pub cipher_suites: Vec<CipherSuite>,
    /// The server's certificates, best first.
    pub identities: Vec<Identity<P>>,
    /// Keys of RSA_anon, best first.
    pub temporary_rsa_keys: Vec<TemporaryRsaKey<P>>,
    /// Curves of ECDH_anon, best first.
    pub curves: Vec<Curve>,
    /// Groups of DH_anon, best first.
    pub groups: Vec<Arc<DhGroup>>,
    pub shared_secrets: Vec<SharedSecret>,
    /// Whether clients must authenticate.
    pub client_authentication: ClientAuthentication,
    pub anchors: Vec<TrustAnchor<P>>,
    pub known_clients: Vec<KnownClient<P>>,
    /// The store of sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// The longest refresh interval that is granted.
    pub key_refresh: KeyRefresh,
    /// How long a handshake is kept before it is dropped.
    pub handshake_timeout: Duration,
    pub settings: Settings,
    policy: OnceLock<PolicyId>,
}

impl<P: Provider> ServerConfig<P> {
    /// Serves these suites with RC5 and SHA; has no keys and keeps no sessions yet.
    pub fn new(suites: Vec<KeyExchangeSuite>) -> Self {
        Self {
            suites,
            cipher_suites: vec![CipherSuite::RC5_SHA],
            identities: Vec::new(),
            temporary_rsa_keys: Vec::new(),
            curves: Vec::new(),
            groups: Vec::new(),
            shared_secrets: Vec::new(),
            client_authentication: ClientAuthentication::None,
            anchors: Vec::new(),
            known_clients: Vec::new(),
            sessions: Arc::new(NoSessions),
            key_refresh: KeyRefresh(8),
            handshake_timeout: Duration::from_secs(120),
            settings: Settings::default(),
            policy: OnceLock::new(),
        }
    }

    /// The identifier of this policy, which sessions store. The first call computes it, so the configuration must not
    /// change afterwards.
    pub fn policy(&self) -> PolicyId {
        *self.policy.get_or_init(|| {
            let known: Vec<_> = self.known_clients.iter().map(|client| client.key_hash).collect();
            PolicyId::new(&(self.client_authentication, known), &self.anchors)
        })
    }

    /// Whether a client with this identity, or without one, may connect.
    pub(crate) fn permits(&self, peer: Option<&PeerIdentity>) -> bool {
        peer.is_some() || self.client_authentication != ClientAuthentication::Required
    }

    /// Length of the longest certificate chain or temporary key.
    pub(crate) fn longest_identity_bytes(&self) -> usize {
        let entry = |entry: &CertificateEntry| match entry {
            CertificateEntry::Wtls(certificate) => certificate.as_bytes().len() + 1,
            CertificateEntry::X509(bytes) | CertificateEntry::X968(bytes) | CertificateEntry::Url(bytes) => {
                bytes.len() + 3
            }
        };
        let chains = self.identities.iter().map(|own| own.entries.iter().map(entry).sum());
        let keys = self.temporary_rsa_keys.iter().map(|temporary| temporary.public.0.len());
        let groups = self.groups.iter().map(|group| 3 * group.prime.len());
        chains.chain(keys).chain(groups).max().unwrap_or(0)
    }
}
