//! A connection of the engine behind the `Endpoint` trait.

use super::boundaries::Boundaries;
use super::config;
use super::provider::{self, Timed};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::operation::intern;
use shakedown_trace::suite::{Cipher, Group, KeyExchange, Protocol, WtlsBulk, WtlsMac};
use shakedown_trace::{
    CloseReason, Endpoint, Event, Failure, Negotiated, Session, Side, Suite, WriteError, suite,
};
use shakedown_wtls::crypto::KeyKind;
use shakedown_wtls::{
    CipherSuite, Client, ClientConfig, Close, CloseReason as EngineReason, Context, Established,
    Event as EngineEvent, HandshakeMode, KeyExchangeFamily, ServerConfig, ServerConnection,
    WriteError as EngineWriteError,
};
use std::sync::Arc;

/// The state that connections of one suite share.
pub struct Environment {
    pub suite: Suite,
    pub provider: Timed,
    /// The time, in seconds since 1970, at which the driver's time is zero.
    pub epoch_unix_s: u64,
}

impl Environment {
    /// Calls `work` with the context of one call of the engine.
    pub fn call<T>(&self, now: Time, work: impl FnOnce(&mut Context<'_, Timed>) -> T) -> T {
        let mut random = |out: &mut [u8]| {
            // OpenSSL's generator does not fail once it is seeded, which happens before any measurement.
            let _ = shakedown_ossl::random::fill(out);
        };
        let mut context = Context {
            now: shakedown_wtls::Time { elapsed: now, unix_s: self.epoch_unix_s + now.as_secs() },
            provider: &self.provider,
            random: &mut random,
            observer: &mut Boundaries,
        };
        work(&mut context)
    }

    /// Converts an event of the engine; `None` if there is no corresponding event.
    pub fn event(&self, side: Side, open: bool, event: EngineEvent) -> Option<Event> {
        match event {
            EngineEvent::Established(established) => {
                Some(Event::Established(Box::new(self.negotiated(&established))))
            }
            EngineEvent::Data(data) => Some(Event::Data(data)),
            EngineEvent::Rejected(error) => {
                let alert = Some(error.alert().description.to_string());
                Some(Event::Rejected(failure(side, open, alert, error.to_string())))
            }
            EngineEvent::Closed(reason) => {
                let failed =
                    |alert, reason: &str| CloseReason::Failed(failure(side, open, alert, reason.to_owned()));
                Some(Event::Closed(match reason {
                    EngineReason::Local => CloseReason::Local,
                    EngineReason::Peer => CloseReason::Peer,
                    EngineReason::Failed(error) => {
                        failed(Some(error.alert().description.to_string()), &error.to_string())
                    }
                    EngineReason::Alert(alert) => {
                        failed(Some(alert.description.to_string()), "the peer ended the connection")
                    }
                    EngineReason::TimedOut => failed(None, "the peer did not answer"),
                    EngineReason::Idle => failed(None, "nothing was received for too long"),
                    EngineReason::Evicted => failed(None, "displaced by another connection"),
                }))
            }
            _ => None,
        }
    }

    fn negotiated(&self, established: &Established) -> Negotiated {
        let wanted = config::cipher_suite(&self.suite);
        let (cipher, cipher_suite) = if established.cipher_suite == wanted {
            (Some(self.suite.cipher), self.suite.cipher.name())
        } else {
            let cipher = cipher(established.cipher_suite);
            let spelt = || intern(&format!("{:?}", established.cipher_suite));
            (cipher, cipher.map_or_else(spelt, Cipher::name))
        };
        let anonymous = matches!(self.suite.key_exchange, KeyExchange::DhAnon | KeyExchange::EcdhAnon);
        let group = established.exchanged.filter(|_| anonymous).and_then(group);
        Negotiated {
            protocol: Protocol::Wtls,
            key_exchange: key_exchange(established.key_exchange.family()),
            cipher,
            cipher_suite,
            group,
            resumed: established.mode == HandshakeMode::Resumed,
            optimized: established.mode == HandshakeMode::Optimised,
        }
    }
}

fn failure(side: Side, open: bool, alert: Option<String>, reason: String) -> Failure {
    Failure { side, state: state(open).to_owned(), alert, reason }
}

fn state(open: bool) -> &'static str {
    if open { "open" } else { "handshaking" }
}

/// Cipher and MAC as in suite names.
fn cipher(found: CipherSuite) -> Option<Cipher> {
    let bulk = WtlsBulk::ALL.into_iter().find(|row| row.0.number() == found.bulk.number())?.0;
    let mac = WtlsMac::ALL.into_iter().find(|row| row.0.number() == found.mac.number())?.0;
    Some(Cipher::Wtls(bulk, mac))
}

fn key_exchange(family: KeyExchangeFamily) -> Option<KeyExchange> {
    Some(match family {
        KeyExchangeFamily::SharedSecret => KeyExchange::SharedSecret,
        KeyExchangeFamily::DhAnon => KeyExchange::DhAnon,
        KeyExchangeFamily::RsaAnon => KeyExchange::RsaAnon,
        KeyExchangeFamily::Rsa => KeyExchange::Rsa,
        KeyExchangeFamily::EcdhAnon => KeyExchange::EcdhAnon,
        KeyExchangeFamily::EcdhEcdsa => KeyExchange::EcdhEcdsa,
        _ => return None,
    })
}

fn group(kind: KeyKind) -> Option<Group> {
    match kind {
        KeyKind::Dh { bits, .. } => u16::try_from(bits).ok().map(Group::Dh),
        KeyKind::Ec(curve) => suite::Curve::from_name(provider::curve_name(curve)).map(Group::Curve),
        KeyKind::Rsa { .. } => None,
    }
}

/// Converts the engine's error for rejected data.
pub fn write_error(side: Side, closed: bool, error: &EngineWriteError) -> WriteError {
    match error {
        EngineWriteError::NotOpen if closed => WriteError::Closed { side },
        EngineWriteError::NotOpen => WriteError::NotEstablished { side },
        EngineWriteError::TooLong { length, max } => WriteError::TooLong { bytes: *length, largest: *max },
        other => WriteError::Refused { side, reason: other.to_string() },
    }
}

/// The engine's two types of connections. A client builds its first flight when it is created, so it is created late.
enum Engine {
    Waiting(Arc<ClientConfig<Timed>>, Option<shakedown_wtls::Session>),
    Client(Box<Client<Timed>>),
    Server(Box<ServerConnection<Timed>>),
}

pub struct WtlsEndpoint {
    environment: Arc<Environment>,
    engine: Engine,
    /// The transport ended before the connection did.
    truncated: bool,
}

/// Calls the same method on either engine.
macro_rules! on_engine {
    ($engine:expr, $name:ident => $call:expr, waiting: $waiting:expr) => {
        match $engine {
            Engine::Waiting(..) => $waiting,
            Engine::Client($name) => $call,
            Engine::Server($name) => $call,
        }
    };
}

impl WtlsEndpoint {
    pub fn client(
        environment: Arc<Environment>,
        config: Arc<ClientConfig<Timed>>,
        session: Option<shakedown_wtls::Session>,
    ) -> Self {
        Self { environment, engine: Engine::Waiting(config, session), truncated: false }
    }

    pub fn server(environment: Arc<Environment>, config: Arc<ServerConfig<Timed>>) -> Self {
        let engine = Engine::Server(Box::new(ServerConnection::new(config)));
        Self { environment, engine, truncated: false }
    }

    /// Calls `work` with the engine and the context of one call.
    fn call<T>(&mut self, now: Time, work: impl FnOnce(&mut Engine, &mut Context<'_, Timed>) -> T) -> T {
        let engine = &mut self.engine;
        self.environment.call(now, |context| work(engine, context))
    }

    fn is_open(&self) -> bool {
        on_engine!(&self.engine, engine => engine.is_open(), waiting: false)
    }

    fn is_closed(&self) -> bool {
        on_engine!(&self.engine, engine => engine.is_closed(), waiting: false)
    }
}

impl Endpoint for WtlsEndpoint {
    fn side(&self) -> Side {
        match self.engine {
            Engine::Server(_) => Side::Server,
            _ => Side::Client,
        }
    }

    fn transport(&self) -> Transport {
        Transport::Datagram
    }

    fn handle_input(&mut self, now: Time, bytes: &[u8]) {
        self.call(now, |engine, context| {
            on_engine!(engine, engine => engine.handle_input(context, bytes), waiting: ());
        });
    }

    fn handle_timeout(&mut self, now: Time) {
        self.call(now, |engine, context| {
            on_engine!(engine, engine => engine.handle_timeout(context), waiting: ());
        });
    }

    fn handle_close(&mut self, _: Time) {
        self.truncated |= !self.is_closed();
    }

    fn write(&mut self, now: Time, data: &[u8]) -> Result<(), WriteError> {
        let sent = self.call(now, |engine, context| {
            on_engine!(engine, engine => engine.write(context, data), waiting: Err(EngineWriteError::NotOpen))
        });
        sent.map_err(|error| write_error(self.side(), self.is_closed(), &error))
    }

    fn close(&mut self, now: Time) {
        self.call(now, |engine, context| {
            on_engine!(engine, engine => engine.close(context, Close::Connection), waiting: ());
        });
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        if matches!(self.engine, Engine::Waiting(..)) {
            self.call(now, |engine, context| {
                if let Engine::Waiting(config, session) = engine {
                    let client = Client::new(Arc::clone(config), session.take(), context);
                    *engine = Engine::Client(Box::new(client));
                }
            });
        }
        let datagram = on_engine!(&mut self.engine, engine => engine.poll_transmit(), waiting: None);
        datagram.is_some_and(|datagram| {
            buffer.extend_from_slice(&datagram);
            true
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        on_engine!(&self.engine, engine => engine.poll_timeout(), waiting: None)
    }

    fn poll_event(&mut self) -> Option<Event> {
        let (side, open) = (self.side(), self.is_open());
        while let Some(event) = on_engine!(&mut self.engine, engine => engine.poll_event(), waiting: None) {
            let event = self.environment.event(side, open, event);
            if event.is_some() {
                return event;
            }
        }
        std::mem::take(&mut self.truncated).then_some(Event::Closed(CloseReason::Truncated))
    }

    fn state(&self) -> String {
        state(self.is_open()).to_owned()
    }

    fn session(&self) -> Option<Session> {
        let session = on_engine!(&self.engine, engine => engine.session(), waiting: None);
        session.cloned().map(Session::new)
    }
}
