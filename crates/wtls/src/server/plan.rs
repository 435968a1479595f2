//! ClientHello, and the choice of what is done with it.

use super::ServerState;
use super::answer::Answer;
use crate::codec::Codec;
use crate::config::{Identity, KnownClient, ServerConfig};
use crate::connection::Input;
use crate::context::Context;
use crate::crypto::{Group, Key, KeyKind, Provider};
use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::error::Error;
use crate::link::Transcript;
use crate::message::{ClientHello, VERSION};
use crate::numbers::{CipherSuite, HandshakeType, KeyExchangeFamily, KeyExchangeSuite, OfferedCipherSuite};
use crate::parameters::{Identifier, KeyExchangeId, ParameterError};
use crate::session::Session;
use std::sync::Arc;

/// Nothing has been received.
pub(crate) struct ExpectClientHello<P: Provider> {
    pub config: Arc<ServerConfig<P>>,
}

/// What a handshake will be. Keys are named by their index in the configuration.
pub(super) enum Plan {
    /// Resume a session.
    Resume(Box<Session>),
    /// Begin a new one.
    Begin {
        /// Which offer, counted from 1.
        client_key_id: u8,
        suite: KeyExchangeSuite,
        cipher_suite: CipherSuite,
        method: Method,
    },
}

/// How a new session's secret comes about.
pub(super) enum Method {
    Null,
    SharedSecret {
        index: usize,
    },
    /// With a certificate of ours.
    Certified {
        identity: usize,
        /// A client whose certificate we hold, for the optimised handshake.
        known_client: Option<usize>,
    },
    RsaAnon {
        index: usize,
    },
    DhAnon {
        group: Arc<DhGroup>,
        /// Whether the parameters are of our choice and must be told.
        told: bool,
    },
    EcdhAnon {
        curve: Curve,
        told: bool,
    },
}

impl<P: Provider> ExpectClientHello<P> {
    pub fn handle(self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ServerState<P>, Error> {
        let Input::Handshake(frame) = input else { return Err(input.unexpected("ClientHello")) };
        if frame.handshake_type != HandshakeType::ClientHello {
            return Err(input.unexpected("ClientHello"));
        }
        let hello = ClientHello::from_bytes("ClientHello", frame.body)?;
        // Higher versions are answered with ours.
        if hello.version < VERSION {
            return Err(Error::Version { version: hello.version });
        }
        if !hello.offers_null_compression() {
            return Err(Error::NoCommonCompression);
        }
        let Self { config } = self;
        let plan = match resumable(&config, &hello) {
            Some(session) => Plan::Resume(Box::new(session)),
            None => choose(&config, &hello, cx.now.unix_s)?,
        };
        let mut transcript = Transcript::default();
        transcript.push(frame.raw);
        Ok(ServerState::Answer(Box::new(Answer {
            refresh: hello.key_refresh.min(config.key_refresh),
            client_random: hello.random,
            client_version: hello.version,
            config,
            plan,
            transcript,
        })))
    }
}

/// The session that the client wants to resume, if we still have it and it still suits us.
fn resumable<P: Provider>(config: &ServerConfig<P>, hello: &ClientHello) -> Option<Session> {
    if hello.session_id.is_none() {
        return None;
    }
    let session = config.sessions.find(&hello.session_id)?;
    let suite = session.cipher_suite;
    let offered = hello.cipher_suites.contains(&OfferedCipherSuite::from(suite));
    let served = config.suites.contains(&session.key_exchange);
    (offered && served && config.cipher_suites.contains(&suite)).then_some(session)
}

/// The first of the client's offers that can be served.
fn choose<P: Provider>(
    config: &ServerConfig<P>,
    hello: &ClientHello,
    now_unix_s: u64,
) -> Result<Plan, Error> {
    let mut complaint = Error::NoCommonKeyExchange;
    let mut choice = None;
    for (client_key_id, offer) in (1..=u8::MAX).zip(&hello.client_key_ids) {
        let suite = offer.known_suite().filter(|suite| config.suites.contains(suite));
        let Some(suite) = suite else { continue };
        match method(config, hello, offer, suite, now_unix_s) {
            Ok(method) => {
                choice = Some((client_key_id, suite, method));
                break;
            }
            // What is wrong with the client's first choice says the most.
            Err(error) if complaint == Error::NoCommonKeyExchange => complaint = error,
            Err(_) => {}
        }
    }
    let (client_key_id, suite, method) = choice.ok_or(complaint)?;
    let cipher_suite = hello
        .cipher_suites
        .iter()
        .filter_map(|offered| CipherSuite::try_from(*offered).ok())
        .find(|suite| config.cipher_suites.contains(suite))
        .ok_or(Error::NoCommonCipherSuite)?;
    Ok(Plan::Begin { client_key_id, suite, cipher_suite, method })
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
            let told = offer.parameters.is_none();
            let group = match told {
                true => config.groups.iter().find(|group| fits(group)).cloned(),
                false => Some(offer.parameters.group()?)
                    .filter(|group| fits(group) && config.groups.contains(group)),
            };
            group.map(|group| Method::DhAnon { group, told }).ok_or(UNKNOWN_PARAMETERS)
        }
        KeyExchangeFamily::EcdhAnon => {
            let fits = |curve: &Curve| fits(KeyKind::Ec(*curve));
            let told = offer.parameters.is_none();
            let curve = match told {
                true => config.curves.iter().copied().find(fits),
                false => Some(offer.parameters.curve(config.settings.private_curves)?)
                    .filter(|curve| fits(curve) && config.curves.contains(curve)),
            };
            curve.map(|curve| Method::EcdhAnon { curve, told }).ok_or(UNKNOWN_PARAMETERS)
        }
    }
}

/// Parameters that are understood but not served.
const UNKNOWN_PARAMETERS: Error = Error::Parameters(ParameterError::UnknownExplicit);

/// §10.3: the identifier names the secret, and there is no session to be resumed.
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
    // SIN 100: the certificate must come from somebody whom the client trusts.
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
