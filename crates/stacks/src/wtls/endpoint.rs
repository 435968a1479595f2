//! A connection of the engine behind the `Endpoint` trait.

use super::marks::Marks;
use super::provider::Timed;
use crate::rig::Subject;
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::{Endpoint, Failure, Side, Suite};
use shakedown_wtls::{
    Client, ClientConfig, CloseReason, Context, Established, Event, HandshakeMode, ServerConfig,
    ServerConnection, Session,
};
use std::rc::Rc;
use std::sync::Arc;

/// What both sides have in common.
pub struct World {
    pub suite: Suite,
    pub provider: Timed,
    /// What time it is when a driver's clock stands at zero.
    pub epoch_unix_s: u64,
}

/// The engine's two faces. A client begins to speak as soon as it exists, so it is made late.
enum Engine {
    Waiting(Arc<ClientConfig<Timed>>, Option<Session>),
    Client(Box<Client<Timed>>),
    Server(Box<ServerConnection<Timed>>),
}

/// A connection's end.
pub struct WtlsEndpoint {
    world: Rc<World>,
    engine: Engine,
    established: Option<Box<Established>>,
    received: Vec<u8>,
}

/// Calls the same method on whichever engine there is.
macro_rules! on_engine {
    ($self:ident, $engine:ident => $call:expr, waiting: $waiting:expr) => {
        match &mut $self.engine {
            Engine::Waiting(..) => $waiting,
            Engine::Client($engine) => $call,
            Engine::Server($engine) => $call,
        }
    };
}

impl WtlsEndpoint {
    pub fn client(world: Rc<World>, config: Arc<ClientConfig<Timed>>, session: Option<Session>) -> Self {
        Self { world, engine: Engine::Waiting(config, session), established: None, received: Vec::new() }
    }

    pub fn server(world: Rc<World>, config: Arc<ServerConfig<Timed>>) -> Self {
        let engine = Engine::Server(Box::new(ServerConnection::new(config)));
        Self { world, engine, established: None, received: Vec::new() }
    }

    /// The session that this connection has made, if any.
    pub fn session(&self) -> Option<Session> {
        match &self.engine {
            Engine::Waiting(..) => None,
            Engine::Client(client) => client.session().cloned(),
            Engine::Server(server) => server.session().cloned(),
        }
    }

    /// Gives `work` the world of one call.
    fn call<T>(&mut self, now: Time, work: impl FnOnce(&mut Engine, &mut Context<'_, Timed>) -> T) -> T {
        let mut random = |out: &mut [u8]| {
            // OpenSSL's generator does not fail once it is seeded, and it is before anything is timed.
            let _ = openssl::rand::rand_bytes(out);
        };
        let mut context = Context {
            now: shakedown_wtls::Time { elapsed: now, unix_s: self.world.epoch_unix_s + now.as_secs() },
            provider: &self.world.provider,
            random: &mut random,
            observer: &mut Marks,
        };
        work(&mut self.engine, &mut context)
    }

    /// Takes the engine's news; a connection that ended is a failure.
    fn news(&mut self) -> Result<(), Failure> {
        while let Some(event) = on_engine!(self, engine => engine.poll_event(), waiting: None) {
            match event {
                Event::Established(established) => self.established = Some(established),
                Event::Data(data) => self.received.extend_from_slice(&data),
                // Where strangers can send, the handshake would go on; here there are none.
                Event::Rejected(error) => {
                    let alert = Some(error.alert().description.to_string());
                    let (side, state, reason) = (self.side(), self.state(), error.to_string());
                    return Err(Failure { side, state, alert, reason });
                }
                Event::Closed(reason) => {
                    let (alert, reason) = match reason {
                        CloseReason::Failed(error) => {
                            (Some(error.alert().description.to_string()), error.to_string())
                        }
                        CloseReason::Alert(alert) => {
                            (Some(alert.description.to_string()), "the peer ended the connection".to_owned())
                        }
                        CloseReason::TimedOut => (None, "the peer did not answer".to_owned()),
                        CloseReason::Peer => (None, "the peer closed the connection".to_owned()),
                        CloseReason::Idle | CloseReason::Evicted => {
                            (None, "the connection was dropped".to_owned())
                        }
                        CloseReason::Local => continue,
                    };
                    return Err(Failure { side: self.side(), state: self.state(), alert, reason });
                }
                _ => {}
            }
        }
        Ok(())
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

    fn start(&mut self, now: Time) -> Result<(), Failure> {
        self.call(now, |engine, context| {
            if let Engine::Waiting(config, session) = engine {
                *engine = Engine::Client(Box::new(Client::new(Arc::clone(config), session.take(), context)));
            }
        });
        self.news()
    }

    fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), Failure> {
        self.call(now, |engine, context| match engine {
            Engine::Waiting(..) => {}
            Engine::Client(client) => client.handle_input(context, bytes),
            Engine::Server(server) => server.handle_input(context, bytes),
        });
        self.news()
    }

    fn transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        let datagram = on_engine!(self, engine => engine.poll_transmit(), waiting: None);
        datagram.is_some_and(|datagram| {
            buffer.extend_from_slice(&datagram);
            true
        })
    }

    fn deadline(&self) -> Option<Time> {
        match &self.engine {
            Engine::Waiting(..) => None,
            Engine::Client(client) => client.poll_timeout(),
            Engine::Server(server) => server.poll_timeout(),
        }
    }

    fn timeout(&mut self, now: Time) -> Result<(), Failure> {
        self.call(now, |engine, context| match engine {
            Engine::Waiting(..) => {}
            Engine::Client(client) => client.handle_timeout(context),
            Engine::Server(server) => server.handle_timeout(context),
        });
        self.news()
    }

    fn is_established(&self) -> bool {
        match &self.engine {
            Engine::Waiting(..) => false,
            Engine::Client(client) => client.is_open(),
            Engine::Server(server) => server.is_open(),
        }
    }

    fn is_resumed(&self) -> bool {
        self.established.as_ref().is_some_and(|established| established.mode == HandshakeMode::Resumed)
    }

    fn state(&self) -> String {
        let state = if self.is_established() { "open" } else { "handshaking" };
        state.to_owned()
    }

    fn send(&mut self, now: Time, data: &[u8]) -> Result<(), Failure> {
        let sent = self.call(now, |engine, context| match engine {
            Engine::Waiting(..) => Ok(()),
            Engine::Client(client) => client.write(context, data),
            Engine::Server(server) => server.write(context, data),
        });
        let (side, state) = (self.side(), self.state());
        sent.map_err(|error| Failure { side, state, alert: None, reason: error.to_string() })
    }

    fn take_received(&mut self, _: Time, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
        buffer.append(&mut self.received);
        Ok(!buffer.is_empty())
    }
}

impl Subject for WtlsEndpoint {
    fn confirm(&self) -> Result<(), String> {
        let Some(established) = &self.established else {
            return Err("the connection was never established".into());
        };
        let wanted = super::config::mode(&self.world.suite);
        if established.mode != wanted {
            return Err(format!("asked for a handshake of mode {wanted:?}, got {:?}", established.mode));
        }
        let cipher = super::config::cipher_suite(&self.world.suite);
        if established.cipher_suite != cipher {
            return Err(format!("asked for {cipher:?}, got {:?}", established.cipher_suite));
        }
        let family = super::config::key_exchange(&self.world.suite).family();
        if established.key_exchange.family() != family {
            return Err(format!("asked for {family:?}, got {:?}", established.key_exchange));
        }
        Ok(())
    }
}
