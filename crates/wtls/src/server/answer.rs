//! The server's first flight.

use super::ServerState;
use super::exchange::{ExpectCertificate, ExpectKeyExchange, ServerPrivate};
use super::finish::{ExpectChangeCipherSpec, Order};
use super::plan::{Method, Plan};
use crate::codec::Codec;
use crate::config::{ClientAuthentication, ServerConfig};
use crate::context::Context;
use crate::crypto::{Group, KeyKind, Provider};
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::key_schedule::{Direction, HelloRandom, KeyRefresh, PreMasterSecret, Randoms};
use crate::link::{Link, Place, Transcript};
use crate::message::{
    CertificateList, CertificateRequest, ServerHello, ServerKey, ServerKeyExchange, VERSION,
};
use crate::numbers::{
    CipherSuite, HandshakeType, HashAlgorithm, KeyExchangeFamily, KeyExchangeSuite, SequenceNumberMode,
};
use crate::parameters::{Identifier, KeyExchangeId, ParameterSpecifier};
use crate::secured::{Negotiated, Secured, hello_random};
use crate::session::{Session, SessionId};
use std::sync::Arc;

/// A ClientHello has come and it is clear what to do.
pub(crate) struct Answer<P: Provider> {
    pub(super) config: Arc<ServerConfig<P>>,
    pub(super) plan: Plan,
    pub(super) client_random: HelloRandom,
    pub(super) client_version: u8,
    pub(super) refresh: KeyRefresh,
    pub(super) transcript: Transcript,
}

impl<P: Provider> Answer<P> {
    pub fn respond(self, link: &mut Link, cx: &mut Context<'_, P>) -> Result<ServerState<P>, Error> {
        let Self { config, plan, client_random, client_version, refresh, transcript } = self;
        let mut flight = Flight { config, client_random, client_version, refresh, transcript };
        match plan {
            Plan::Resume(session) => flight.resume(link, cx, *session),
            Plan::Begin { client_key_id, suite, cipher_suite, method } => {
                let chosen = Chosen { client_key_id, suite, cipher_suite };
                match method {
                    Method::Null => flight.abbreviated(link, cx, &chosen, PreMasterSecret::null()),
                    Method::SharedSecret { index } => {
                        let secret = PreMasterSecret::shared(&flight.config.shared_secrets[index].secret);
                        flight.abbreviated(link, cx, &chosen, secret)
                    }
                    Method::Certified { identity, known_client } => {
                        let negotiated = flight.new_session(link, cx, &chosen)?;
                        flight.certificate(link, cx, identity)?;
                        match known_client {
                            Some(client) => flight.optimised(link, cx, negotiated, identity, client),
                            None => {
                                let private = ServerPrivate::Certified { identity };
                                flight.full(link, cx, negotiated, private)
                            }
                        }
                    }
                    anonymous => {
                        let negotiated = flight.new_session(link, cx, &chosen)?;
                        let private = flight.temporary_key(link, cx, suite, anonymous)?;
                        flight.full(link, cx, negotiated, private)
                    }
                }
            }
        }
    }
}

/// What ServerHello will say of the client's offers.
struct Chosen {
    client_key_id: u8,
    suite: KeyExchangeSuite,
    cipher_suite: CipherSuite,
}

/// The flight under construction.
struct Flight<P: Provider> {
    config: Arc<ServerConfig<P>>,
    client_random: HelloRandom,
    client_version: u8,
    refresh: KeyRefresh,
    transcript: Transcript,
}

impl<P: Provider> Flight<P> {
    /// ServerHello. What depends on both hellos alone is done by `then`, within the message.
    fn hello<T>(
        &mut self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        session_id: SessionId,
        chosen: &Chosen,
        then: impl FnOnce(Negotiated, &mut Context<'_, P>) -> T,
    ) -> Result<T, Error> {
        let mut result = None;
        let (refresh, client) = (self.refresh, self.client_random);
        let kind = HandshakeType::ServerHello;
        link.generate(cx, &mut self.transcript, kind, Place::Middle, |cx, _, to| {
            let random = hello_random(cx);
            let hello = ServerHello {
                version: VERSION,
                random,
                session_id,
                client_key_id: chosen.client_key_id,
                cipher_suite: chosen.cipher_suite.into(),
                compression_method: 0,
                sequence_number_mode: SequenceNumberMode::Explicit,
                key_refresh: refresh,
            };
            hello.encode(to)?;
            let negotiated = Negotiated {
                key_exchange: chosen.suite,
                cipher_suite: chosen.cipher_suite,
                refresh,
                randoms: Randoms { client, server: random },
                session_id,
            };
            result = Some(then(negotiated, cx));
            Ok(())
        })?;
        result.ok_or(Error::Configuration { what: "a ServerHello" })
    }

    /// ServerHello of a session to come.
    fn new_session(
        &mut self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        chosen: &Chosen,
    ) -> Result<Negotiated, Error> {
        let session_id = self.new_session_id(cx);
        self.hello(link, cx, session_id, chosen, |negotiated, _| negotiated)
    }

    /// A name that is not taken; none if sessions are not kept.
    fn new_session_id(&self, cx: &mut Context<'_, P>) -> SessionId {
        if !self.config.sessions.keeps_sessions() {
            return SessionId::NONE;
        }
        let mut bytes = [0; 8];
        cx.random.fill(&mut bytes);
        SessionId::new(bytes)
    }

    fn resume(
        mut self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        session: Session,
    ) -> Result<ServerState<P>, Error> {
        let chosen =
            Chosen { client_key_id: 0, suite: session.key_exchange, cipher_suite: session.cipher_suite };
        let secured = self.hello(link, cx, session.id, &chosen, |negotiated, _| {
            let mut secured = negotiated.with_master(session.master, HandshakeMode::Resumed);
            secured.peer_certificates = session.peer_certificates;
            secured
        })?;
        self.finish_first(link, cx, secured)
    }

    fn abbreviated(
        mut self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        chosen: &Chosen,
        pre_master: PreMasterSecret,
    ) -> Result<ServerState<P>, Error> {
        let session_id = self.new_session_id(cx);
        let secured = self.hello(link, cx, session_id, chosen, |negotiated, cx| {
            negotiated.secure(cx, pre_master, HandshakeMode::Abbreviated)
        })?;
        self.finish_first(link, cx, secured)
    }

    /// Certificate.
    fn certificate(
        &mut self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        identity: usize,
    ) -> Result<(), Error> {
        let identity = &self.config.identities[identity];
        let kind = HandshakeType::Certificate;
        link.generate(cx, &mut self.transcript, kind, Place::Middle, |_, _, to| {
            Ok(CertificateList(identity.entries.clone()).encode(to)?)
        })
    }

    /// Goes ahead with the certificate of a client that we hold: the exchange is complete, and
    /// ChangeCipherSpec says so.
    fn optimised(
        self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        negotiated: Negotiated,
        identity: usize,
        client: usize,
    ) -> Result<ServerState<P>, Error> {
        let identity = &self.config.identities[identity];
        let client = &self.config.known_clients[client];
        let secret = cx.provider.derive(&identity.key, &client.key)?;
        let pre_master = PreMasterSecret::agreed(secret);
        let mut secured = negotiated.secure(cx, pre_master, HandshakeMode::Optimised);
        secured.exchanged = Some(identity.kind());
        secured.peer_certificates = vec![client.certificate.clone()];
        self.finish_first(link, cx, secured)
    }

    /// ServerKeyExchange, with a key for this handshake or, for RSA, one made beforehand.
    fn temporary_key(
        &mut self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        suite: KeyExchangeSuite,
        method: Method,
    ) -> Result<ServerPrivate<P>, Error> {
        let config = &self.config;
        let mut private = None;
        let kind = HandshakeType::ServerKeyExchange;
        link.generate(cx, &mut self.transcript, kind, Place::Middle, |cx, _, to| {
            let told = |told: bool, parameters| {
                if told { parameters } else { ParameterSpecifier::NONE }
            };
            let (parameters, key, made) = match method {
                Method::RsaAnon { index } => {
                    let public = config.temporary_rsa_keys[index].public.clone();
                    let private = ServerPrivate::Temporary { index };
                    (ParameterSpecifier::NONE, ServerKey::Rsa(public), private)
                }
                Method::DhAnon { group, told: tell } => {
                    let own = cx.provider.generate(Group::Dh(&group), cx.random)?;
                    let value = cx.provider.public_value(&own, suite.point_form())?;
                    let parameters = told(tell, ParameterSpecifier::of_group(&group)?);
                    (parameters, ServerKey::Dh(value), ServerPrivate::Dh { key: own, group })
                }
                Method::EcdhAnon { curve, told: tell } => {
                    let own = cx.provider.generate(Group::Ec(curve), cx.random)?;
                    let point = cx.provider.public_value(&own, suite.point_form())?;
                    let private_curves = config.settings.private_curves;
                    let parameters = told(tell, ParameterSpecifier::of_curve(curve, private_curves));
                    (parameters, ServerKey::Ec(point), ServerPrivate::Ec { key: own, curve })
                }
                Method::Null | Method::SharedSecret { .. } | Method::Certified { .. } => {
                    return Err(Error::Configuration { what: "a temporary key" });
                }
            };
            private = Some(made);
            Ok(ServerKeyExchange { parameters, key }.encode(to)?)
        })?;
        private.ok_or(Error::Configuration { what: "a temporary key" })
    }

    /// CertificateRequest where clients are asked, then ServerHelloDone.
    fn full(
        mut self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        negotiated: Negotiated,
        private: ServerPrivate<P>,
    ) -> Result<ServerState<P>, Error> {
        let asks = self.asks(&negotiated);
        if asks {
            let curve = match private.kind(&self.config) {
                KeyKind::Ec(curve) => Some(curve),
                _ => None,
            };
            let private_curves = self.config.settings.private_curves;
            let anybody = KeyExchangeId::new(
                negotiated.key_exchange,
                curve.map_or(ParameterSpecifier::NONE, |curve| {
                    ParameterSpecifier::of_curve(curve, private_curves)
                }),
                Identifier::Null,
            );
            let kind = HandshakeType::CertificateRequest;
            link.generate(cx, &mut self.transcript, kind, Place::Middle, |_, _, to| {
                let request = CertificateRequest { trusted_authorities: vec![anybody] };
                Ok(request.encode(to)?)
            })?;
        }
        let kind = HandshakeType::ServerHelloDone;
        link.generate(cx, &mut self.transcript, kind, Place::Last, |_, _, _| Ok(()))?;
        link.end_flight();
        let Self { config, client_version, transcript, .. } = self;
        let next =
            ExpectKeyExchange { config, client_version, negotiated, transcript, private, client: None };
        Ok(match asks {
            true => ServerState::ExpectCertificate(Box::new(ExpectCertificate(next))),
            false => ServerState::ExpectKeyExchange(Box::new(next)),
        })
    }

    /// Whether the client is asked for a certificate. An RSA client signs a hash that the structure
    /// of the signature makes 20 bytes long, so it is asked only where the hash is SHA-1.
    fn asks(&self, negotiated: &Negotiated) -> bool {
        let family = negotiated.key_exchange.family();
        let can_answer = match family {
            KeyExchangeFamily::Rsa => negotiated.hash() == HashAlgorithm::Sha1,
            other => other.is_certified(),
        };
        can_answer && self.config.client_authentication != ClientAuthentication::None
    }

    /// ChangeCipherSpec and Finished in front of the client's.
    fn finish_first(
        self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        secured: Secured,
    ) -> Result<ServerState<P>, Error> {
        let Self { config, mut transcript, .. } = self;
        let place = Place::Last;
        secured.finish(link, cx, &mut transcript, Direction::ServerToClient, place)?;
        link.end_flight();
        let order = Order::ServerFirst;
        let state = ExpectChangeCipherSpec { config, secured, transcript, order };
        Ok(ServerState::ExpectChangeCipherSpec(Box::new(state)))
    }
}
