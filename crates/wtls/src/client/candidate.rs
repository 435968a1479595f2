//! The client's second flight, which waits for the server's Finished.

use crate::config::Settings;
use crate::connection::{Connection, Ending};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::event::Established;
use crate::flight::{FlightReader, Outbound, Transcript};
use crate::key_schedule::Direction;
use crate::secured::Secured;

/// A handshake that has succeeded.
pub(super) struct Opened {
    pub connection: Connection,
    pub established: Box<Established>,
    /// The records after the server's Finished.
    pub rest: Vec<u8>,
    /// Protected records that arrived before their keys existed.
    pub early: Vec<Vec<u8>>,
}

/// The state after the client's second flight.
pub(super) struct Candidate {
    /// The flight of the server to which it is the response.
    pub request: Vec<u8>,
    pub flight: Vec<u8>,
    pub secured: Secured,
    pub transcript: Transcript,
    pub outbound: Outbound,
}

impl Candidate {
    pub fn finish<P: Provider>(
        &self,
        cx: &mut Context<'_, P>,
        settings: &Settings,
        reader: &mut FlightReader<'_>,
    ) -> Result<Opened, Error> {
        let mut transcript = self.transcript.continued(32);
        let sender = Direction::ServerToClient;
        let (decryptor, _) = self.secured.read_finished(cx, settings, reader, &mut transcript, sender)?;
        let session = self.secured.session();
        let (outbound, now) = (self.outbound.clone(), cx.now.elapsed);
        Ok(Opened {
            connection: Connection::new(*settings, outbound, decryptor, session, Ending::Answered, now),
            established: self.secured.clone().established(transcript),
            rest: reader.rest().to_vec(),
            early: Vec::new(),
        })
    }
}
