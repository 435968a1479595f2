//! ClientHello, and the processing of the server's first flight.

use super::candidate::{Candidate, Opened};
use super::exchange::Exchange;
use crate::certificate::TrustAnchor;
use crate::codec::Codec;
use crate::config::ClientConfig;
use crate::connection::{Connection, Ending};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::flight::{FlightReader, FlightWriter, Outbound, Place, Transcript};
use crate::key_schedule::{Direction, HelloRandom, PreMasterSecret, Randoms};
use crate::message::{ClientHello, ServerHello, VERSION};
use crate::numbers::{
    CipherSuite, HandshakeType, KeyExchangeFamily, KeyExchangeSuite, SequenceNumberMode, SignatureAlgorithm,
};
use crate::observer::Message;
use crate::parameters::{KeyExchangeId, ParameterSpecifier};
use crate::protection::RecordDecryptor;
use crate::secured::{Negotiated, Secured, hello_random};
use crate::session::{Session, SessionId};
use crate::timer::Timer;
use std::sync::Arc;

/// The state after ClientHello.
pub(super) struct HelloSent<P: Provider> {
    pub config: Arc<ClientConfig<P>>,
    session: Option<Session>,
    transcript: Transcript,
    random: HelloRandom,
}

/// The result of the server's first flight.
#[allow(clippy::large_enum_variant)] // returned once per flight
pub(super) enum Answer {
    /// The client's second flight. The server's Finished follows.
    Candidate(Candidate),
    /// The server has finished: the connection, and the client's last flight.
    Opened { opened: Opened, flight: Vec<u8> },
}

/// The messages that follow ServerHello.
enum Next {
    /// Only ChangeCipherSpec and Finished.
    Finished(Secured),
    Certificate(KeyExchangeId, Negotiated),
    TemporaryKey(KeyExchangeId, Negotiated),
}

impl<P: Provider> HelloSent<P> {
    /// Generates ClientHello. Returns the state after it, the datagram, and the write state.
    pub fn start(
        config: Arc<ClientConfig<P>>,
        session: Option<Session>,
        cx: &mut Context<'_, P>,
    ) -> Result<(Self, Vec<u8>, Outbound), Error> {
        // A resumed handshake verifies neither the chain nor the server's name, so the policy must be the same.
        let session = session.filter(|session| {
            session.policy == config.policy()
                && !session.is_over(config.settings.session_lifetime, cx.now.unix_s)
        });
        let mut transcript = Transcript::with_capacity(256);
        let mut flight = FlightWriter::new(Outbound::new(&config.settings));
        let kind = HandshakeType::ClientHello;
        let random = flight.message(cx, &mut transcript, kind, Place::Last, |cx, _, to| {
            let random = hello_random(cx);
            client_hello(&config, session.as_ref(), random).encode(to)?;
            Ok(random)
        })?;
        let (datagram, outbound) = flight.finish();
        Ok((Self { config, session, transcript, random }, datagram, outbound))
    }

    /// Reads the server's first flight and generates the client's response.
    pub fn answer(
        &self,
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        outbound: Outbound,
    ) -> Result<Answer, Error> {
        let mut transcript = self.transcript.continued(1024);
        let hello = HandshakeType::ServerHello;
        let next = reader.message(cx, &mut transcript, hello, |cx, _, frame| {
            let hello = ServerHello::from_bytes("ServerHello", frame.body)?;
            self.check(&hello)?;
            let session = self.session.as_ref();
            match session.filter(|session| !session.id.is_none() && session.id == hello.session_id) {
                Some(session) => self.resume(session, &hello),
                None => self.begin(cx, &hello),
            }
        })?;
        let exchange = match next {
            Next::Finished(secured) => {
                let decryptor = reader.change_cipher_spec(cx, |cx| Ok(self.decryptor(cx, &secured)))?;
                return self.finish(cx, reader, outbound, secured, transcript, decryptor);
            }
            Next::Certificate(offer, negotiated) => {
                Exchange::certified(cx, reader, &self.config, offer, negotiated, &mut transcript)?
            }
            Next::TemporaryKey(offer, negotiated) => {
                Exchange::anonymous(cx, reader, &self.config, offer, negotiated, &mut transcript)?
            }
        };
        if exchange.is_certified() && reader.peek_message() == Some(Message::ChangeCipherSpec) {
            let (secured, decryptor) = reader.change_cipher_spec(cx, |cx| {
                let secured = exchange.optimised(cx)?;
                let decryptor = self.decryptor(cx, &secured);
                Ok((secured, decryptor))
            })?;
            return self.finish(cx, reader, outbound, secured, transcript, decryptor);
        }
        exchange.answer(cx, reader, outbound, transcript).map(Answer::Candidate)
    }

    fn decryptor(&self, cx: &Context<'_, P>, secured: &Secured) -> RecordDecryptor {
        secured.decryptor(cx, &self.config.settings, Direction::ServerToClient)
    }

    /// Reads the Finished of a server that finishes first, and generates the client's.
    fn finish(
        &self,
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        outbound: Outbound,
        secured: Secured,
        mut transcript: Transcript,
        mut decryptor: RecordDecryptor,
    ) -> Result<Answer, Error> {
        let server = Direction::ServerToClient;
        secured.check_finished(cx, reader, &mut transcript, &mut decryptor, server)?;
        // These records are later sent in front of data, so they have length fields.
        let mut flight = FlightWriter::new(outbound);
        let client = Direction::ClientToServer;
        secured.write_finished(cx, &mut flight, &mut transcript, client, Place::Middle)?;
        let (flight, outbound) = flight.finish();
        let settings = self.config.settings;
        let timer = Timer::start(settings.retransmission, cx.now.elapsed);
        let ending = Ending::ClientLast { flight: flight.clone(), timer };
        let session = secured.session();
        let opened = Opened {
            connection: Connection::new(settings, outbound, decryptor, session, ending, cx.now.elapsed),
            established: secured.established(transcript),
            rest: reader.rest().to_vec(),
            early: Vec::new(),
        };
        Ok(Answer::Opened { opened, flight })
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

    fn negotiated(
        &self,
        hello: &ServerHello,
        key_exchange: KeyExchangeSuite,
        cipher_suite: CipherSuite,
    ) -> Negotiated {
        Negotiated {
            key_exchange,
            cipher_suite,
            refresh: hello.key_refresh,
            randoms: Randoms { client: self.random, server: hello.random },
            session_id: hello.session_id,
            policy: self.config.policy(),
        }
    }

    fn resume(&self, session: &Session, hello: &ServerHello) -> Result<Next, Error> {
        if hello.cipher_suite != session.cipher_suite.into() {
            return Err(Error::NotOffered { what: "cipher suite for the session" });
        }
        let negotiated = self.negotiated(hello, session.key_exchange, session.cipher_suite);
        Ok(Next::Finished(negotiated.resume(session)))
    }

    fn begin(&self, cx: &Context<'_, P>, hello: &ServerHello) -> Result<Next, Error> {
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
        let negotiated = self.negotiated(hello, key_exchange, cipher_suite);
        let pre_master = match key_exchange.family() {
            KeyExchangeFamily::Null => PreMasterSecret::null(),
            KeyExchangeFamily::SharedSecret => self.shared_secret(&offer)?,
            KeyExchangeFamily::Rsa | KeyExchangeFamily::EcdhEcdsa => {
                return Ok(Next::Certificate(offer, negotiated));
            }
            KeyExchangeFamily::DhAnon | KeyExchangeFamily::RsaAnon | KeyExchangeFamily::EcdhAnon => {
                return Ok(Next::TemporaryKey(offer, negotiated));
            }
        };
        Ok(Next::Finished(negotiated.secure(cx, pre_master, HandshakeMode::Abbreviated)))
    }

    fn shared_secret(&self, offer: &KeyExchangeId) -> Result<PreMasterSecret, Error> {
        let mut secrets = self.config.shared_secrets.iter();
        secrets
            .find(|known| known.identifier == offer.identifier)
            .map(|known| PreMasterSecret::shared(&known.secret))
            .ok_or(Error::Configuration { what: "the shared secret that was offered" })
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
    ClientHello {
        version: VERSION,
        random,
        session_id: session.map_or(SessionId::NONE, |session| session.id),
        client_key_ids: config.key_exchanges.clone(),
        trusted_key_ids: config.anchors.iter().map(trusted_key_id).collect(),
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
