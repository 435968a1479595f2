//! The end of a handshake: ChangeCipherSpec and Finished of both sides.

use super::ClientState;
use crate::connection::Input;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::key_schedule::Direction;
use crate::link::{Link, Place, Transcript};
use crate::numbers::HandshakeType;
use crate::secured::Secured;
use core::marker::PhantomData;

/// Whose Finished comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The client's, in a full handshake.
    ClientFirst,
    /// The server's, in all others.
    ServerFirst,
}

/// The exchange is complete; the server will now switch to it.
pub(crate) struct ExpectChangeCipherSpec<P> {
    secured: Secured,
    transcript: Transcript,
    order: Order,
    provider: PhantomData<fn(P)>,
}

impl<P: Provider> ExpectChangeCipherSpec<P> {
    pub fn new(secured: Secured, transcript: Transcript, order: Order) -> Self {
        Self { secured, transcript, order, provider: PhantomData }
    }

    pub fn handle(
        self,
        input: Input<'_>,
        link: &mut Link,
        cx: &mut Context<'_, P>,
    ) -> Result<ClientState<P>, Error> {
        let Input::ChangeCipherSpec(proof) = input else {
            return Err(input.unexpected("ChangeCipherSpec"));
        };
        let Self { secured, transcript, order, provider } = self;
        secured.switch_read(link, cx, Direction::ServerToClient, proof);
        let state = ExpectFinished { secured, transcript, order, provider };
        Ok(ClientState::ExpectFinished(Box::new(state)))
    }
}

impl<P: Provider> From<ExpectChangeCipherSpec<P>> for ClientState<P> {
    fn from(state: ExpectChangeCipherSpec<P>) -> Self {
        Self::ExpectChangeCipherSpec(Box::new(state))
    }
}

/// The server has switched and proves that it knows the secret and saw the same messages.
pub(crate) struct ExpectFinished<P> {
    secured: Secured,
    transcript: Transcript,
    order: Order,
    provider: PhantomData<fn(P)>,
}

impl<P: Provider> ExpectFinished<P> {
    pub fn handle(self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ClientState<P>, Error> {
        let Input::Handshake(frame) = input else { return Err(input.unexpected("Finished")) };
        if frame.handshake_type != HandshakeType::Finished {
            return Err(input.unexpected("Finished"));
        }
        let Self { secured, mut transcript, order, .. } = self;
        secured.check_finished(cx, &mut transcript, Direction::ServerToClient, frame)?;
        Ok(ClientState::Conclude(Box::new(Conclude { secured, transcript, order })))
    }
}

/// The server has proved itself; if it went first, it is our turn now.
pub(crate) struct Conclude {
    secured: Secured,
    transcript: Transcript,
    order: Order,
}

impl Conclude {
    pub fn respond<P: Provider>(
        self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
    ) -> Result<ClientState<P>, Error> {
        let Self { secured, mut transcript, order } = self;
        if order == Order::ServerFirst {
            // These records will stand in front of data, so they carry their lengths.
            let place = Place::Middle;
            secured.finish(link, cx, &mut transcript, Direction::ClientToServer, place)?;
            link.end_flight();
            link.prefix = link.flight.clone();
        }
        secured.establish(link, transcript);
        Ok(ClientState::Open)
    }
}
