//! The client.
//!
//! The states, in the order of the flows of §10.3, each with the messages that it takes:
//!
//! | state | takes | then |
//! | --- | --- | --- |
//! | `Start` | nothing; sends ClientHello | `ExpectServerHello` |
//! | `ExpectServerHello` | ServerHello | by suite and session, one of the next three |
//! | `ExpectCertificate` | Certificate | `ExpectRequestOrDone` |
//! | `ExpectServerKeyExchange` | ServerKeyExchange | `ExpectRequestOrDone` |
//! | `ExpectRequestOrDone` | CertificateRequest | the same |
//! | | ServerHelloDone; answers with its second flight | `ExpectChangeCipherSpec` |
//! | | ChangeCipherSpec (optimised) | `ExpectFinished` |
//! | `ExpectChangeCipherSpec` | ChangeCipherSpec | `ExpectFinished` |
//! | `ExpectFinished` | Finished; answers with its own if the server's came first | `Open` |

mod exchange;
mod finish;
mod hello;

use crate::config::ClientConfig;
use crate::connection::{Close, Connection, Input, State};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::{Error, SendError};
use crate::event::Event;
use crate::link::Link;
use crate::session::Session;
use core::time::Duration;
use exchange::{Answer, ExpectCertificate, ExpectRequestOrDone, ExpectServerKeyExchange};
use finish::{Conclude, ExpectChangeCipherSpec, ExpectFinished};
use hello::{ExpectServerHello, Start};
use std::sync::Arc;

/// A client's connection: see the crate's documentation for how to drive it.
pub struct Client<P: Provider> {
    connection: Connection<ClientState<P>>,
}

impl<P: Provider> Client<P> {
    /// Begins a handshake, resuming `session` if there is one. The ClientHello is ready to be taken
    /// from [`poll_transmit`](Self::poll_transmit).
    pub fn new(config: Arc<ClientConfig<P>>, session: Option<Session>, cx: &mut Context<'_, P>) -> Self {
        let settings = config.settings;
        let start = ClientState::Start(Box::new(Start { config, session }));
        let mut connection = Connection::new(settings, start);
        connection.start(cx);
        Self { connection }
    }

    /// Takes a datagram from the server.
    pub fn handle_datagram(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) {
        self.connection.handle_datagram(cx, datagram);
    }

    /// To be called when the time of [`poll_timeout`](Self::poll_timeout) has come. Too early does
    /// no harm.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.connection.handle_timeout(cx);
    }

    /// The next datagram for the server.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.connection.poll_transmit()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, on the clock of
    /// [`Time::elapsed`](crate::Time::elapsed).
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.connection.poll_timeout()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.connection.poll_event()
    }

    /// Sends data. Each call is one record in one datagram, which may get lost.
    pub fn send(&mut self, cx: &mut Context<'_, P>, data: &[u8]) -> Result<(), SendError> {
        self.connection.send(cx, data)
    }

    /// Tells the server that this is the end.
    pub fn close(&mut self, cx: &mut Context<'_, P>, close: Close) {
        self.connection.close(cx, close);
    }

    /// Whether data can be sent.
    pub fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// Whether the connection is over.
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// The session, to be resumed by another connection; none before the handshake is over, if the
    /// server gave it no name, or once it has been ended.
    pub fn session(&self) -> Option<&Session> {
        self.connection.link.session.as_ref()
    }
}

pub(crate) enum ClientState<P: Provider> {
    Start(Box<Start<P>>),
    ExpectServerHello(Box<ExpectServerHello<P>>),
    ExpectCertificate(Box<ExpectCertificate<P>>),
    ExpectServerKeyExchange(Box<ExpectServerKeyExchange<P>>),
    ExpectRequestOrDone(Box<ExpectRequestOrDone<P>>),
    Answer(Box<Answer<P>>),
    ExpectChangeCipherSpec(Box<ExpectChangeCipherSpec<P>>),
    ExpectFinished(Box<ExpectFinished<P>>),
    Conclude(Box<Conclude>),
    Open,
}

impl<P: Provider> State for ClientState<P> {
    type Provider = P;
    const OWNS_RETRANSMISSION: bool = true;

    fn handle(self, input: Input<'_>, link: &mut Link, cx: &mut Context<'_, P>) -> Result<Self, Error> {
        match self {
            Self::ExpectServerHello(state) => state.handle(&input, cx),
            Self::ExpectCertificate(state) => state.handle(&input, cx),
            Self::ExpectServerKeyExchange(state) => state.handle(&input, cx),
            Self::ExpectRequestOrDone(state) => state.handle(input, link, cx),
            Self::ExpectChangeCipherSpec(state) => state.handle(input, link, cx),
            Self::ExpectFinished(state) => state.handle(&input, cx),
            Self::Start(_) | Self::Answer(_) | Self::Conclude(_) | Self::Open => {
                Err(input.unexpected("nothing"))
            }
        }
    }

    fn respond(self, link: &mut Link, cx: &mut Context<'_, P>) -> Result<Self, Error> {
        match self {
            Self::Start(state) => state.respond(link, cx),
            Self::Answer(state) => state.respond(link, cx),
            Self::Conclude(state) => state.respond(link, cx),
            other => Ok(other),
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    fn forget_session(&self, _link: &mut Link) {}
}
