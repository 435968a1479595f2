//! The end of a server's handshake.

use crate::config::ServerConfig;
use crate::connection::{Connection, Ending};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::event::{Established, HandshakeMode};
use crate::flight::{FlightReader, Outbound, Transcript};
use crate::key_schedule::Direction;
use crate::protection::RecordDecryptor;
use crate::secured::{Secured, VerifyData};
use std::sync::Arc;

/// A flight of the client that completed a handshake.
pub(super) struct Accepted {
    pub connection: Connection,
    pub established: Box<Established>,
    /// The server's response, if the server finishes last.
    pub flight: Option<Vec<u8>>,
    /// The content of the client's Finished, which identifies the flight.
    pub verify_data: VerifyData,
    /// The records after the client's Finished.
    pub rest: Vec<u8>,
}

/// Proof that a client may connect. Without it no connection is created.
pub(super) struct Permit(());

impl Permit {
    /// Checks the identity of the client against the requirements of the server.
    pub fn check<P: Provider>(config: &ServerConfig<P>, secured: &Secured) -> Result<Self, Error> {
        match config.permits(secured.peer.as_ref()) {
            true => Ok(Self(())),
            false => Err(Error::NoClientCertificate),
        }
    }
}

/// The state after ChangeCipherSpec and Finished of a server that finishes first.
pub(super) struct ServerFinished<P: Provider> {
    pub config: Arc<ServerConfig<P>>,
    pub secured: Secured,
    pub transcript: Transcript,
}

impl<P: Provider> ServerFinished<P> {
    /// Reads the client's ChangeCipherSpec and Finished.
    pub fn receive(
        &self,
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        outbound: &Outbound,
    ) -> Result<Accepted, Error> {
        let Self { config, secured, .. } = self;
        let mut transcript = self.transcript.continued(32);
        let client = Direction::ClientToServer;
        let (decryptor, verify_data) =
            secured.read_finished(cx, &config.settings, reader, &mut transcript, client)?;
        let permit = Permit::check(config, secured)?;
        let (outbound, ending) = (outbound.clone(), Ending::ServerFirst);
        let rest = reader.rest().to_vec();
        let (connection, established) =
            conclude(permit, cx, config, secured.clone(), transcript, outbound, decryptor, ending);
        Ok(Accepted { connection, established, flight: None, verify_data, rest })
    }
}

/// Creates the connection and stores the session.
#[allow(clippy::too_many_arguments)] // each is a part of the handshake's result
pub(super) fn conclude<P: Provider>(
    _: Permit,
    cx: &Context<'_, P>,
    config: &ServerConfig<P>,
    secured: Secured,
    transcript: Transcript,
    outbound: Outbound,
    decryptor: RecordDecryptor,
    ending: Ending,
) -> (Connection, Box<Established>) {
    let session = secured.session();
    if let (Some(session), false) = (&session, secured.mode == HandshakeMode::Resumed) {
        config.sessions.insert(session.clone());
    }
    let now = cx.now.elapsed;
    let connection = Connection::new(config.settings, outbound, decryptor, session, ending, now);
    (connection, secured.established(transcript))
}
