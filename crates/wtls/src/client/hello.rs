//! ClientHello and what the server makes of it.

use super::ClientState;
use super::exchange::{ExpectCertificate, ExpectServerKeyExchange};
use super::finish::{ExpectChangeCipherSpec, Order};
use crate::certificate::TrustAnchor;
use crate::codec::Codec;
use crate::config::ClientConfig;
use crate::connection::Input;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::key_schedule::{HelloRandom, PreMasterSecret, Randoms};
use crate::link::{Link, Place, Transcript};
use crate::message::{ClientHello, ServerHello, VERSION};
use crate::numbers::{
    CipherSuite, HandshakeType, KeyExchangeFamily, KeyExchangeSuite, PublicKeyType, SequenceNumberMode,
    SignatureAlgorithm,
};
use crate::parameters::{KeyExchangeId, ParameterSpecifier};
use crate::secured::{Negotiated, hello_random};
use crate::session::{Session, SessionId};
use std::sync::Arc;

/// Nothing has been sent.
pub(crate) struct Start<P: Provider> {
    pub config: Arc<ClientConfig<P>>,
    pub session: Option<Session>,
}

impl<P: Provider> Start<P> {
    pub fn respond(self, link: &mut Link, cx: &mut Context<'_, P>) -> Result<ClientState<P>, Error> {
        let Self { config, session } = self;
        let mut transcript = Transcript::default();
        let mut random = HelloRandom::default();
        link.generate(cx, &mut transcript, HandshakeType::ClientHello, Place::Last, |cx, _, to| {
            random = hello_random(cx);
            Ok(client_hello(&config, session.as_ref(), random).encode(to)?)
        })?;
        link.end_flight();
        Ok(ClientState::ExpectServerHello(Box::new(ExpectServerHello {
            config,
            session,
            transcript,
            random,
        })))
    }
}

fn client_hello<P: Provider>(
    config: &ClientConfig<P>,
    session: Option<&Session>,
    random: HelloRandom,
) -> ClientHello {
    let mut cipher_suites = config.cipher_suites.clone();
    // A resumed session keeps its suite, so it has to be among those offered.
    if let Some(suite) = session.map(|session| session.cipher_suite)
        && !cipher_suites.contains(&suite)
    {
        cipher_suites.push(suite);
    }
    let trusted_key_ids = match config.announce_anchors {
        true => config.anchors.iter().map(trusted_key_id).collect(),
        false => Vec::new(),
    };
    ClientHello {
        version: VERSION,
        random,
        session_id: session.map_or(SessionId::NONE, |session| session.id),
        client_key_ids: config.key_exchanges.clone(),
        trusted_key_ids,
        cipher_suites: cipher_suites.into_iter().map(Into::into).collect(),
        compression_methods: vec![0],
        sequence_number_mode: SequenceNumberMode::Explicit,
        key_refresh: config.key_refresh,
    }
}

fn trusted_key_id<P: Provider>(anchor: &TrustAnchor<P>) -> KeyExchangeId {
    let suite = match anchor.signature_algorithm {
        SignatureAlgorithm::EcdsaSha => KeyExchangeSuite::EcdhEcdsa,
        _ => KeyExchangeSuite::Rsa,
    };
    KeyExchangeId::new(suite, ParameterSpecifier::NONE, anchor.identifier())
}

/// ClientHello is on its way.
pub(crate) struct ExpectServerHello<P: Provider> {
    config: Arc<ClientConfig<P>>,
    session: Option<Session>,
    transcript: Transcript,
    random: HelloRandom,
}

impl<P: Provider> ExpectServerHello<P> {
    pub fn handle(mut self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ClientState<P>, Error> {
        let Input::Handshake(frame) = input else { return Err(input.unexpected("ServerHello")) };
        if frame.handshake_type != HandshakeType::ServerHello {
            return Err(input.unexpected("ServerHello"));
        }
        let hello = ServerHello::from_bytes("ServerHello", frame.body)?;
        self.transcript.push(frame.raw);
        self.check(&hello)?;
        let resumed =
            self.session.take().filter(|session| !session.id.is_none() && session.id == hello.session_id);
        match resumed {
            Some(session) => self.resume(session, &hello),
            None => self.begin(cx, &hello),
        }
    }

    fn check(&self, hello: &ServerHello) -> Result<(), Error> {
        if hello.version != VERSION {
            return Err(Error::Version { version: hello.version });
        }
        if hello.compression_method != 0 {
            return Err(Error::NotOffered { what: "compression method" });
        }
        if hello.sequence_number_mode != SequenceNumberMode::Explicit {
            return Err(Error::SequenceMode);
        }
        if hello.key_refresh > self.config.key_refresh {
            return Err(Error::NotOffered { what: "key refresh" });
        }
        Ok(())
    }

    fn randoms(&self, hello: &ServerHello) -> Randoms {
        Randoms { client: self.random, server: hello.random }
    }

    fn resume(self, session: Session, hello: &ServerHello) -> Result<ClientState<P>, Error> {
        if hello.cipher_suite != session.cipher_suite.into() {
            return Err(Error::NotOffered { what: "cipher suite for the session" });
        }
        let negotiated = Negotiated {
            key_exchange: session.key_exchange,
            cipher_suite: session.cipher_suite,
            refresh: hello.key_refresh,
            randoms: self.randoms(hello),
            session_id: session.id,
        };
        let mut secured = negotiated.with_master(session.master, HandshakeMode::Resumed);
        secured.peer_certificates = session.peer_certificates;
        let Self { transcript, .. } = self;
        let order = Order::ServerFirst;
        Ok(ExpectChangeCipherSpec::new(secured, transcript, order).into())
    }

    fn begin(self, cx: &Context<'_, P>, hello: &ServerHello) -> Result<ClientState<P>, Error> {
        let not_offered = |what| Error::NotOffered { what };
        let offer = usize::from(hello.client_key_id)
            .checked_sub(1)
            .and_then(|index| self.config.key_exchanges.get(index))
            .cloned()
            .ok_or(not_offered("key exchange"))?;
        let key_exchange = offer.known_suite().ok_or(not_offered("key exchange"))?;
        let cipher_suite = CipherSuite::try_from(hello.cipher_suite)?;
        if !self.config.cipher_suites.contains(&cipher_suite) {
            return Err(not_offered("cipher suite"));
        }
        let negotiated = Negotiated {
            key_exchange,
            cipher_suite,
            refresh: hello.key_refresh,
            randoms: self.randoms(hello),
            session_id: hello.session_id,
        };
        let Self { config, transcript, .. } = self;
        let family = key_exchange.family();
        let pre_master = match family {
            KeyExchangeFamily::Null => PreMasterSecret::null(),
            KeyExchangeFamily::SharedSecret => shared_secret(&config, &offer)?,
            KeyExchangeFamily::Rsa | KeyExchangeFamily::EcdhEcdsa => {
                let state = ExpectCertificate { config, offer, negotiated, transcript };
                return Ok(ClientState::ExpectCertificate(Box::new(state)));
            }
            KeyExchangeFamily::DhAnon | KeyExchangeFamily::RsaAnon | KeyExchangeFamily::EcdhAnon => {
                let state = ExpectServerKeyExchange { config, offer, negotiated, transcript };
                return Ok(ClientState::ExpectServerKeyExchange(Box::new(state)));
            }
        };
        let secured = negotiated.secure(cx, pre_master, HandshakeMode::Abbreviated);
        Ok(ExpectChangeCipherSpec::new(secured, transcript, Order::ServerFirst).into())
    }
}

fn shared_secret<P: Provider>(
    config: &ClientConfig<P>,
    offer: &KeyExchangeId,
) -> Result<PreMasterSecret, Error> {
    config
        .shared_secrets
        .iter()
        .find(|known| known.identifier == offer.identifier)
        .map(|known| PreMasterSecret::shared(&known.secret))
        .ok_or(Error::Configuration { what: "the shared secret that was offered" })
}

/// The public key type that the leaf of a family has.
pub(super) fn leaf_key_type(family: KeyExchangeFamily) -> PublicKeyType {
    match family {
        KeyExchangeFamily::EcdhEcdsa => PublicKeyType::Ecdh,
        _ => PublicKeyType::Rsa,
    }
}
