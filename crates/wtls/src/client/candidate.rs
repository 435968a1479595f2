//! A flight of ours that waits for the server's Finished.

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
    /// The records behind the server's Finished.
    pub rest: Vec<u8>,
    /// Records that came before their keys.
    pub early: Vec<Vec<u8>>,
}

/// The server's flight is complete, and ours is on its way.
pub(super) struct Candidate {
    /// The flight of the server that it answers.
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
