//! The server's decision about a ClientHello.

use crate::config::{ClientAuthentication, Identity, KnownClient, ServerConfig};
use crate::crypto::{Group, Key, KeyKind, Provider};
use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::error::Error;
use crate::message::{ClientHello, VERSION};
use crate::numbers::{CipherSuite, HashAlgorithm, KeyExchangeFamily, KeyExchangeSuite, OfferedCipherSuite};
use crate::parameters::{Identifier, KeyExchangeId, ParameterError};
use crate::session::Session;
use std::sync::Arc;

/// The planned handshake. Keys are identified by their index in the configuration.
pub(super) enum Plan {
    Resume(Box<Session>),
    Begin(Chosen, Method),
}

/// The selected offer of the client, for ServerHello.
pub(super) struct Chosen {
    /// Which offer, counted from 1; 0 when resuming.
    pub client_key_id: u8,
    pub suite: KeyExchangeSuite,
    pub cipher_suite: CipherSuite,
}

/// The method that establishes the secret of a new session.
pub(super) enum Method {
    Null,
    SharedSecret {
        index: usize,
    },
    Certified {
        identity: usize,
        /// A client whose certificate is stored, for the optimised handshake.
        known_client: Option<usize>,
    },
    RsaAnon {
        index: usize,
    },
    DhAnon {
        group: Arc<DhGroup>,
        /// Whether the server chose the parameters and must send them.
        ours: bool,
    },
    EcdhAnon {
        curve: Curve,
        ours: bool,
    },
}

impl Plan {
    /// Whether a public-key operation is needed before the client's Finished: for a temporary key, or for the
    /// secret that is shared with a known client.
    pub fn is_costly(&self) -> bool {
        match self {
            Self::Resume(_) => false,
            Self::Begin(_, method) => match method {
                Method::DhAnon { .. } | Method::EcdhAnon { .. } => true,
                Method::Certified { known_client, .. } => known_client.is_some(),
                Method::Null | Method::SharedSecret { .. } | Method::RsaAnon { .. } => false,
            },
        }
    }

    /// Decides what to do with a ClientHello.
    pub fn of<P: Provider>(
        config: &ServerConfig<P>,
        hello: &ClientHello,
        now_unix_s: u64,
    ) -> Result<Self, Error> {
        // The response to a higher version has the server's version.
        if hello.version < VERSION {
            return Err(Error::Version { version: hello.version });
        }
        if !hello.offers_null_compression() {
            return Err(Error::NoCommonCompression);
        }
        match resumable(config, hello, now_unix_s) {
            Some(session) => Ok(Self::Resume(Box::new(session))),
            None => choose(config, hello, now_unix_s),
        }
    }
}

/// The session that the client wants to resume, if it is stored and usable: its suites are accepted, it was created
/// under the current policy, and neither the session nor the peer's chain has expired.
fn resumable<P: Provider>(config: &ServerConfig<P>, hello: &ClientHello, now_unix_s: u64) -> Option<Session> {
    if hello.session_id.is_none() {
        return None;
    }
    let session = config.sessions.find(&hello.session_id)?;
    if session.is_over(config.settings.session_lifetime, now_unix_s) {
        // A session with a time in the future is kept: the clock may be wrong now, and corrected later.
        if now_unix_s >= session.made_unix_s {
            config.sessions.remove(&session.id);
        }
        return None;
    }
    let suite = session.cipher_suite;
    let offered = hello.cipher_suites.contains(&OfferedCipherSuite::from(suite));
    let served = config.suites.contains(&session.key_exchange) && config.cipher_suites.contains(&suite);
    let permitted = session.policy == config.policy() && config.permits(session.peer.as_ref());
    (offered && served && permitted).then_some(session)
}

/// Whether a client can authenticate. For RSA it signs a hash, which the structure of the signature limits to
/// 20 bytes, so its certificate is requested only if the hash is SHA-1.
pub(super) fn can_authenticate(family: KeyExchangeFamily, hash: HashAlgorithm) -> bool {
    match family {
        KeyExchangeFamily::Rsa => hash == HashAlgorithm::Sha1,
        other => other.is_certified(),
    }
}

/// Selects the first of the client's offers that can be served, with the first common cipher suite. If clients must
/// authenticate, offers without client authentication are ignored.
fn choose<P: Provider>(
    config: &ServerConfig<P>,
    hello: &ClientHello,
    now_unix_s: u64,
) -> Result<Plan, Error> {
    let required = config.client_authentication == ClientAuthentication::Required;
    let common = || {
        let known = hello.cipher_suites.iter().filter_map(|offered| CipherSuite::try_from(*offered).ok());
        known.filter(|suite| config.cipher_suites.contains(suite))
    };
    let mut error = Error::NoCommonKeyExchange;
    for (client_key_id, offer) in (1..=u8::MAX).zip(&hello.client_key_ids) {
        let suite = offer.known_suite().filter(|suite| config.suites.contains(suite));
        let Some(suite) = suite else { continue };
        let acceptable = |other: &CipherSuite| !required || can_authenticate(suite.family(), other.hash());
        let found = match method(config, hello, offer, suite, now_unix_s) {
            Ok(method) => match common().find(acceptable) {
                Some(cipher_suite) => {
                    return Ok(Plan::Begin(Chosen { client_key_id, suite, cipher_suite }, method));
                }
                None if common().next().is_some() => Error::CannotAuthenticate,
                None => Error::NoCommonCipherSuite,
            },
            Err(error) => error,
        };
        // The error of the most preferred offer is reported.
        if error == Error::NoCommonKeyExchange {
            error = found;
        }
    }
    Err(error)
}

fn method<P: Provider>(
    config: &ServerConfig<P>,
    hello: &ClientHello,
    offer: &KeyExchangeId,
    suite: KeyExchangeSuite,
    now_unix_s: u64,
) -> Result<Method, Error> {
    let fits = |kind: KeyKind| suite.limit_bits().is_none_or(|limit| kind.size_bits() <= limit);
    match suite.family() {
        KeyExchangeFamily::Null => Ok(Method::Null),
        KeyExchangeFamily::SharedSecret => shared_secret(config, hello, offer),
        KeyExchangeFamily::Rsa | KeyExchangeFamily::EcdhEcdsa => {
            certified(config, hello, offer, suite, now_unix_s)
        }
        KeyExchangeFamily::RsaAnon => config
            .temporary_rsa_keys
            .iter()
            .position(|temporary| fits(temporary.key.kind()))
            .map(|index| Method::RsaAnon { index })
            .ok_or(Error::NoCommonKeyExchange),
        KeyExchangeFamily::DhAnon => {
            let fits = |group: &Arc<DhGroup>| fits(Group::Dh(group).kind());
            let ours = offer.parameters.is_none();
            let group = match ours {
                true => config.groups.iter().find(|group| fits(group)).cloned(),
                false => Some(offer.parameters.group()?)
                    .filter(|group| fits(group) && config.groups.contains(group)),
            };
            group.map(|group| Method::DhAnon { group, ours }).ok_or(UNKNOWN_PARAMETERS)
        }
        KeyExchangeFamily::EcdhAnon => {
            let fits = |curve: &Curve| fits(KeyKind::Ec(*curve));
            let ours = offer.parameters.is_none();
            let curve = match ours {
                true => config.curves.iter().copied().find(fits),
                false => Some(offer.parameters.curve(config.settings.private_curves)?)
                    .filter(|curve| fits(curve) && config.curves.contains(curve)),
            };
            curve.map(|curve| Method::EcdhAnon { curve, ours }).ok_or(UNKNOWN_PARAMETERS)
        }
    }
}

/// Parameters that are known but not accepted.
const UNKNOWN_PARAMETERS: Error = Error::Parameters(ParameterError::UnknownExplicit);

/// §10.3: the identifier names the secret, and the client does not resume a session.
fn shared_secret<P: Provider>(
    config: &ServerConfig<P>,
    hello: &ClientHello,
    offer: &KeyExchangeId,
) -> Result<Method, Error> {
    let named = offer.identifier != Identifier::Null && hello.session_id.is_none();
    config
        .shared_secrets
        .iter()
        .position(|known| named && known.identifier == offer.identifier)
        .map(|index| Method::SharedSecret { index })
        .ok_or(Error::NoCommonKeyExchange)
}

fn certified<P: Provider>(
    config: &ServerConfig<P>,
    hello: &ClientHello,
    offer: &KeyExchangeId,
    suite: KeyExchangeSuite,
    now_unix_s: u64,
) -> Result<Method, Error> {
    let curve = match (suite.family(), offer.parameters.is_none()) {
        (KeyExchangeFamily::EcdhEcdsa, false) => {
            Some(offer.parameters.curve(config.settings.private_curves)?)
        }
        _ => None,
    };
    let suits = |identity: &Identity<P>| {
        let kind = identity.kind();
        identity.family() == suite.family()
            && suite.limit_bits().is_none_or(|limit| kind.size_bits() <= limit)
            && curve.is_none_or(|curve| kind == KeyKind::Ec(curve))
    };
    let mut suitable = (0..).zip(&config.identities).filter(|(_, own)| suits(own)).peekable();
    if suitable.peek().is_none() {
        return Err(if curve.is_some() { UNKNOWN_PARAMETERS } else { Error::NoCommonKeyExchange });
    }
    // SIN 100: an authority that the client trusts must have issued the certificate.
    let trusted = suitable.find(|(_, own)| own.is_trusted_by(&hello.trusted_key_ids));
    let (identity, own) = trusted.ok_or(Error::NotTrustedByClient)?;
    let known = |client: &KnownClient<P>| {
        let (from_unix_s, to_unix_s) = client.certificate.validity_unix_s();
        let named = match &offer.identifier {
            Identifier::Null => false,
            Identifier::KeyHash(hash) => *hash == client.key_hash,
            name => name == client.certificate.subject(),
        };
        named && own.kind() == KeyKind::Ec(client.curve) && (from_unix_s..=to_unix_s).contains(&now_unix_s)
    };
    let known_client = config.known_clients.iter().position(known);
    Ok(Method::Certified { identity, known_client })
}
