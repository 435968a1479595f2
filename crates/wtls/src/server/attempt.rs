//! One handshake of a server, from a ClientHello on.

use super::answer::{Answer, Stage, answer};
use super::finish::Accepted;
use crate::alert::Checksum;
use crate::config::ServerConfig;
use crate::connection::RESENDS;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::flight::{FlightReader, Outbound};
use crate::limiter::Bucket;
use crate::record::Record;
use crate::secured::VerifyData;
use core::time::Duration;
use std::sync::Arc;

/// Limit of the connections from one ClientHello. Any client can respond to the server's flight; only data shows
/// later which of them sent the ClientHello.
const ACCEPTED: usize = 8;

/// A ClientHello to which the server has responded. Rejected flights do not end an attempt. In a full
/// handshake, of accepted flights only the last of [`ACCEPTED`] does, so an attacker who responds once in the
/// client's place cannot end it. If the server finishes first, the first accepted flight ends the attempt.
pub(super) struct Attempt<P: Provider> {
    pub hello: Vec<u8>,
    pub flight: Vec<u8>,
    stage: Stage<P>,
    pub outbound: Outbound,
    pub deadline: Duration,
    /// Whether the response to the ClientHello needed a public-key operation.
    pub costly: bool,
    accepted: Vec<VerifyData>,
    resends: Bucket,
}

/// Why a ClientHello or a flight was rejected, and the checksum of the record that caused it.
pub(super) type Rejection = (Error, Checksum);

impl<P: Provider> Attempt<P> {
    /// Responds to a ClientHello. `None` if this needs a public-key operation and `admit` returns false.
    pub fn begin(
        cx: &mut Context<'_, P>,
        config: &Arc<ServerConfig<P>>,
        hello: &Record<'_>,
        outbound: &mut Outbound,
        admit: impl FnOnce(&mut Context<'_, P>) -> bool,
    ) -> Result<Option<Self>, Rejection> {
        let mut reader = FlightReader::new(hello.raw);
        let begun = answer(cx, config, &mut reader, outbound, admit);
        let Some(begun) = begun.map_err(|error| (error, reader.checksum()))? else { return Ok(None) };
        let Answer { stage, mut flight, outbound, costly } = begun;
        flight.shrink_to_fit();
        Ok(Some(Self {
            hello: hello.raw.to_vec(),
            flight,
            stage,
            outbound,
            deadline: cx.now.elapsed.saturating_add(config.handshake_timeout),
            costly,
            accepted: Vec::new(),
            resends: Bucket::new(RESENDS),
        }))
    }

    /// Whether the attempt has led to a connection.
    pub fn has_succeeded(&self) -> bool {
        !self.accepted.is_empty()
    }

    /// The server's flight again, in response to a repeated ClientHello.
    pub fn answer_again(&mut self, now: Duration) -> Option<Vec<u8>> {
        let wanted = !matches!(self.stage, Stage::Over);
        (wanted && self.resends.take(1, now)).then(|| self.flight.clone())
    }

    /// Reads a client's flight, if the attempt expects one. A flight that needs public-key operations is read
    /// only within the budget `trials`. `None` if the flight has no effect.
    pub fn receive(
        &mut self,
        cx: &mut Context<'_, P>,
        flight: &[u8],
        trials: &mut Bucket,
    ) -> Result<Option<Accepted>, Rejection> {
        let mut reader = FlightReader::new(flight);
        let accepted = match &self.stage {
            Stage::Over => return Ok(None),
            Stage::Finished(finished) => finished.receive(cx, &mut reader, &self.outbound).map(Some),
            Stage::Full(full) => {
                let costly = full.may_begin_with(reader.peek_message());
                if costly && !trials.take(1, cx.now.elapsed) {
                    return Ok(None);
                }
                full.receive(cx, &mut reader, flight, &self.outbound, &self.accepted)
            }
        };
        let accepted = accepted.map_err(|error| (error, reader.checksum()))?;
        if let Some(accepted) = &accepted {
            self.accepted.push(accepted.verify_data);
            // The server's Finished has fixed the keys, so a second connection would have the same.
            if matches!(self.stage, Stage::Finished(_)) || self.accepted.len() == ACCEPTED {
                self.stage = Stage::Over;
            }
        }
        Ok(accepted)
    }

    /// Bytes in use on the heap, without the allocator's overhead.
    pub fn heap_bytes(&self) -> usize {
        let stage = match &self.stage {
            Stage::Full(full) => size_of_val(&**full) + full.transcript.bytes().len(),
            Stage::Finished(finished) => size_of_val(&**finished) + finished.transcript.bytes().len(),
            Stage::Over => 0,
        };
        self.hello.len() + self.flight.len() + stage
    }
}
