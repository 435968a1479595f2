//! The server's first flight.

use super::exchange::{FullHandshake, ServerPrivate};
use super::finish::ServerFinished;
use super::plan::{Chosen, Method, Plan, can_authenticate};
use crate::certificate::PeerIdentity;
use crate::codec::Codec;
use crate::config::{ClientAuthentication, ServerConfig};
use crate::context::Context;
use crate::crypto::{Group, KeyKind, Provider};
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::flight::{FlightReader, FlightWriter, Outbound, Place, Transcript};
use crate::key_schedule::{Direction, HelloRandom, KeyRefresh, PreMasterSecret, Randoms};
use crate::message::{
    CertificateList, CertificateRequest, ClientHello, ServerHello, ServerKey, ServerKeyExchange, VERSION,
};
use crate::numbers::{HandshakeType, KeyExchangeSuite, SequenceNumberMode};
use crate::parameters::{Identifier, KeyExchangeId, ParameterSpecifier};
use crate::secured::{Negotiated, Secured, hello_random};
use crate::session::{Session, SessionId};
use std::sync::Arc;

/// The state after the server's first flight, and the expected response.
pub(super) enum Stage<P: Provider> {
    Full(Box<FullHandshake<P>>),
    /// The client's ChangeCipherSpec and Finished; the server has already sent its own.
    Finished(Box<ServerFinished<P>>),
    /// None: the client has finished.
    Over,
}

/// The server's first flight, and the state after it.
pub(super) struct Answer<P: Provider> {
    pub stage: Stage<P>,
    pub flight: Vec<u8>,
    pub outbound: Outbound,
    /// Whether it needed a public-key operation.
    pub costly: bool,
}

/// Reads ClientHello and generates the first flight. `None` if this needs a public-key operation and `admit`
/// returns false.
pub(super) fn answer<P: Provider>(
    cx: &mut Context<'_, P>,
    config: &Arc<ServerConfig<P>>,
    reader: &mut FlightReader<'_>,
    outbound: &mut Outbound,
    admit: impl FnOnce(&mut Context<'_, P>) -> bool,
) -> Result<Option<Answer<P>>, Error> {
    let mut transcript = Transcript::with_capacity(1024);
    let (plan, hello) = reader.message(cx, &mut transcript, HandshakeType::ClientHello, |cx, _, frame| {
        let hello = ClientHello::from_bytes("ClientHello", frame.body)?;
        Ok((Plan::of(config, &hello, cx.now.unix_s)?, hello))
    })?;
    let costly = plan.is_costly();
    if costly && !admit(cx) {
        return Ok(None);
    }
    let flight = Flight {
        config: Arc::clone(config),
        client_random: hello.random,
        client_version: hello.version,
        refresh: hello.key_refresh.min(config.key_refresh),
        transcript,
        writer: FlightWriter::new(outbound.clone()),
    };
    let (stage, writer) = flight.answer(cx, plan)?;
    let (flight, outbound) = writer.finish();
    Ok(Some(Answer { stage, flight, outbound, costly }))
}

/// The flight under construction.
struct Flight<P: Provider> {
    config: Arc<ServerConfig<P>>,
    client_random: HelloRandom,
    client_version: u8,
    refresh: KeyRefresh,
    transcript: Transcript,
    writer: FlightWriter,
}

type Answered<P> = Result<(Stage<P>, FlightWriter), Error>;

impl<P: Provider> Flight<P> {
    fn answer(mut self, cx: &mut Context<'_, P>, plan: Plan) -> Answered<P> {
        let (chosen, method) = match plan {
            Plan::Resume(session) => return self.resume(cx, &session),
            Plan::Begin(chosen, method) => (chosen, method),
        };
        match method {
            Method::Null => self.abbreviated(cx, &chosen, PreMasterSecret::null()),
            Method::SharedSecret { index } => {
                let secret = PreMasterSecret::shared(&self.config.shared_secrets[index].secret);
                self.abbreviated(cx, &chosen, secret)
            }
            Method::Certified { identity, known_client } => {
                let negotiated = self.new_session(cx, &chosen)?;
                self.certificate(cx, identity)?;
                match known_client {
                    Some(client) => self.optimised(cx, negotiated, identity, client),
                    None => self.full(cx, negotiated, ServerPrivate::Certified { identity }),
                }
            }
            anonymous => {
                let negotiated = self.new_session(cx, &chosen)?;
                let private = self.temporary_key(cx, chosen.suite, anonymous)?;
                self.full(cx, negotiated, private)
            }
        }
    }

    /// Writes ServerHello. Within the message, `then` does the work that depends only on the two hellos.
    fn hello<T>(
        &mut self,
        cx: &mut Context<'_, P>,
        session_id: SessionId,
        chosen: &Chosen,
        then: impl FnOnce(Negotiated, &mut Context<'_, P>) -> T,
    ) -> Result<T, Error> {
        let (refresh, client) = (self.refresh, self.client_random);
        let policy = self.config.policy();
        let kind = HandshakeType::ServerHello;
        self.writer.message(cx, &mut self.transcript, kind, Place::Middle, |cx, _, to| {
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
                policy,
            };
            Ok(then(negotiated, cx))
        })
    }

    /// Writes ServerHello of a new session.
    fn new_session(&mut self, cx: &mut Context<'_, P>, chosen: &Chosen) -> Result<Negotiated, Error> {
        let session_id = self.new_session_id(cx);
        self.hello(cx, session_id, chosen, |negotiated, _| negotiated)
    }

    /// A random session identifier; empty if sessions are not stored.
    fn new_session_id(&self, cx: &mut Context<'_, P>) -> SessionId {
        if !self.config.sessions.keeps_sessions() {
            return SessionId::NONE;
        }
        let mut bytes = [0; 8];
        cx.random.fill(&mut bytes);
        SessionId::new(bytes)
    }

    fn resume(mut self, cx: &mut Context<'_, P>, session: &Session) -> Answered<P> {
        let chosen =
            Chosen { client_key_id: 0, suite: session.key_exchange, cipher_suite: session.cipher_suite };
        let secured = self.hello(cx, session.id, &chosen, |negotiated, _| negotiated.resume(session))?;
        self.finish_first(cx, secured)
    }

    fn abbreviated(
        mut self,
        cx: &mut Context<'_, P>,
        chosen: &Chosen,
        pre_master: PreMasterSecret,
    ) -> Answered<P> {
        let session_id = self.new_session_id(cx);
        let secured = self.hello(cx, session_id, chosen, |negotiated, cx| {
            negotiated.secure(cx, pre_master, HandshakeMode::Abbreviated)
        })?;
        self.finish_first(cx, secured)
    }

    fn certificate(&mut self, cx: &mut Context<'_, P>, identity: usize) -> Result<(), Error> {
        let identity = &self.config.identities[identity];
        let kind = HandshakeType::Certificate;
        self.writer.message(cx, &mut self.transcript, kind, Place::Middle, |_, _, to| {
            Ok(CertificateList::encode_entries(&identity.entries, to)?)
        })
    }

    /// Completes the exchange with the client's stored certificate. ChangeCipherSpec follows immediately.
    fn optimised(
        self,
        cx: &mut Context<'_, P>,
        negotiated: Negotiated,
        identity: usize,
        client: usize,
    ) -> Answered<P> {
        let identity = &self.config.identities[identity];
        let client = &self.config.known_clients[client];
        let secret = cx.provider.derive(&identity.key, &client.key)?;
        let pre_master = PreMasterSecret::agreed(secret);
        let mut secured = negotiated.secure(cx, pre_master, HandshakeMode::Optimised);
        secured.exchanged = Some(identity.kind());
        let validity = client.certificate.validity_unix_s();
        secured.peer = Some(PeerIdentity::new(vec![client.certificate.clone()], validity));
        self.finish_first(cx, secured)
    }

    /// Writes ServerKeyExchange, with a key generated for this handshake or, for RSA, a configured one.
    fn temporary_key(
        &mut self,
        cx: &mut Context<'_, P>,
        suite: KeyExchangeSuite,
        method: Method,
    ) -> Result<ServerPrivate<P>, Error> {
        let config = &self.config;
        let kind = HandshakeType::ServerKeyExchange;
        self.writer.message(cx, &mut self.transcript, kind, Place::Middle, |cx, _, to| {
            let specified = |ours: bool, parameters| {
                if ours { parameters } else { ParameterSpecifier::NONE }
            };
            let (parameters, key, private) = match method {
                Method::RsaAnon { index } => {
                    let public = config.temporary_rsa_keys[index].public.clone();
                    let private = ServerPrivate::Temporary { index };
                    (ParameterSpecifier::NONE, ServerKey::Rsa(public), private)
                }
                Method::DhAnon { group, ours } => {
                    let own = cx.provider.generate(Group::Dh(&group), cx.random)?;
                    let value = cx.provider.public_value(&own, suite.point_form())?;
                    let parameters = specified(ours, ParameterSpecifier::of_group(&group)?);
                    (parameters, ServerKey::Dh(value), ServerPrivate::Dh { key: own, group })
                }
                Method::EcdhAnon { curve, ours } => {
                    let own = cx.provider.generate(Group::Ec(curve), cx.random)?;
                    let point = cx.provider.public_value(&own, suite.point_form())?;
                    let private_curves = config.settings.private_curves;
                    let parameters = specified(ours, ParameterSpecifier::of_curve(curve, private_curves));
                    (parameters, ServerKey::Ec(point), ServerPrivate::Ec { key: own, curve })
                }
                Method::Null | Method::SharedSecret { .. } | Method::Certified { .. } => {
                    return Err(Error::Configuration { what: "a temporary key" });
                }
            };
            ServerKeyExchange { parameters, key }.encode(to)?;
            Ok(private)
        })
    }

    /// Writes CertificateRequest if clients are asked for certificates, then ServerHelloDone.
    fn full(
        mut self,
        cx: &mut Context<'_, P>,
        negotiated: Negotiated,
        private: ServerPrivate<P>,
    ) -> Answered<P> {
        let asks = self.config.client_authentication != ClientAuthentication::None
            && can_authenticate(negotiated.key_exchange.family(), negotiated.hash());
        if asks {
            let private_curves = self.config.settings.private_curves;
            let parameters = match private.kind(&self.config) {
                KeyKind::Ec(curve) => ParameterSpecifier::of_curve(curve, private_curves),
                _ => ParameterSpecifier::NONE,
            };
            let anybody = KeyExchangeId::new(negotiated.key_exchange, parameters, Identifier::Null);
            let kind = HandshakeType::CertificateRequest;
            self.writer.message(cx, &mut self.transcript, kind, Place::Middle, |_, _, to| {
                let request = CertificateRequest { trusted_authorities: vec![anybody] };
                Ok(request.encode(to)?)
            })?;
        }
        let kind = HandshakeType::ServerHelloDone;
        self.writer.message(cx, &mut self.transcript, kind, Place::Last, |_, _, _| Ok(()))?;
        let Self { config, client_version, mut transcript, writer, .. } = self;
        transcript.shrink();
        let handshake = FullHandshake { config, client_version, negotiated, transcript, private, asks };
        Ok((Stage::Full(Box::new(handshake)), writer))
    }

    /// Writes ChangeCipherSpec and Finished before the client's.
    fn finish_first(self, cx: &mut Context<'_, P>, secured: Secured) -> Answered<P> {
        let Self { config, mut transcript, mut writer, .. } = self;
        let server = Direction::ServerToClient;
        secured.write_finished(cx, &mut writer, &mut transcript, server, Place::Last)?;
        transcript.shrink();
        Ok((Stage::Finished(Box::new(ServerFinished { config, secured, transcript })), writer))
    }
}
