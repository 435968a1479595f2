//! The end of a handshake: ChangeCipherSpec and Finished of both sides.

use super::ServerState;
use crate::config::ServerConfig;
use crate::connection::Input;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::key_schedule::Direction;
use crate::link::{Link, Place, Transcript};
use crate::numbers::HandshakeType;
use crate::secured::Secured;
use std::sync::Arc;

/// Whose Finished comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The client's, in a full handshake.
    ClientFirst,
    /// Ours, in all others.
    ServerFirst,
}

/// The exchange is complete; the client will now switch to it.
pub(crate) struct ExpectChangeCipherSpec<P: Provider> {
    pub(super) config: Arc<ServerConfig<P>>,
    pub(super) secured: Secured,
    pub(super) transcript: Transcript,
    pub(super) order: Order,
}

impl<P: Provider> From<ExpectChangeCipherSpec<P>> for ServerState<P> {
    fn from(state: ExpectChangeCipherSpec<P>) -> Self {
        Self::ExpectChangeCipherSpec(Box::new(state))
    }
}

impl<P: Provider> ExpectChangeCipherSpec<P> {
    pub fn transcript_bytes(&self) -> usize {
        self.transcript.bytes().len()
    }

    pub fn handle(
        self,
        input: Input<'_>,
        link: &mut Link,
        cx: &mut Context<'_, P>,
    ) -> Result<ServerState<P>, Error> {
        let Input::ChangeCipherSpec(proof) = input else {
            return Err(input.unexpected("ChangeCipherSpec"));
        };
        self.secured.switch_read(link, cx, Direction::ClientToServer, proof);
        Ok(ServerState::ExpectFinished(Box::new(ExpectFinished(self))))
    }
}

/// The client has switched and proves that it knows the secret and saw the same messages.
pub(crate) struct ExpectFinished<P: Provider>(ExpectChangeCipherSpec<P>);

impl<P: Provider> ExpectFinished<P> {
    pub fn transcript_bytes(&self) -> usize {
        self.0.transcript_bytes()
    }

    pub fn handle(self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ServerState<P>, Error> {
        let Input::Handshake(frame) = input else { return Err(input.unexpected("Finished")) };
        if frame.handshake_type != HandshakeType::Finished {
            return Err(input.unexpected("Finished"));
        }
        let Self(ExpectChangeCipherSpec { config, secured, mut transcript, order }) = self;
        secured.check_finished(cx, &mut transcript, Direction::ClientToServer, frame)?;
        Ok(ServerState::Conclude(Box::new(Conclude { config, secured, transcript, order })))
    }
}

/// The client has proved itself; if it went first, it is our turn now.
pub(crate) struct Conclude<P: Provider> {
    config: Arc<ServerConfig<P>>,
    secured: Secured,
    transcript: Transcript,
    order: Order,
}

impl<P: Provider> Conclude<P> {
    pub fn respond(self, link: &mut Link, cx: &mut Context<'_, P>) -> Result<ServerState<P>, Error> {
        let Self { config, secured, mut transcript, order } = self;
        if order == Order::ClientFirst {
            let place = Place::Last;
            secured.finish(link, cx, &mut transcript, Direction::ServerToClient, place)?;
            link.end_flight();
        }
        if let Some(session) = secured.session() {
            config.sessions.insert(session);
        }
        secured.establish(link, transcript);
        Ok(ServerState::Open(config))
    }
}
