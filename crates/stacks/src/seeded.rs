//! Endpoints whose randomness follows a seed.

use crate::stack::SetupError;
use shakedown_ossl::random::Seeded;
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::{Endpoint, Event, ExportError, Session, Side, WriteError};

/// An endpoint that draws from a source of its own, whichever thread calls it.
pub struct SeededEndpoint {
    source: Seeded,
    inner: Box<dyn Endpoint>,
}

/// What draws: each has numbers of its own under one seed.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// An end of a connection that counts.
    Connection(Side),
    /// An end of the connection whose session is resumed later.
    SessionMaker(Side),
    /// What connections of a side share, such as the keys of tickets.
    Context(Side),
}

impl Role {
    fn number(self) -> u64 {
        match self {
            Self::Connection(side) => side as u64,
            Self::SessionMaker(side) => 2 + side as u64,
            Self::Context(side) => 4 + side as u64,
        }
    }
}

/// Makes something that draws only now, under a seed if there is one.
pub fn during<T>(
    seed: Option<u64>,
    role: Role,
    make: impl FnOnce() -> Result<T, SetupError>,
) -> Result<T, SetupError> {
    match seed {
        Some(seed) => source(seed, role)?.during(make),
        None => make(),
    }
}

fn source(seed: u64, role: Role) -> Result<Seeded, SetupError> {
    Seeded::new(seed, role.number()).map_err(|stack| SetupError::OpenSsl { what: "draw from a seed", stack })
}

/// Makes an endpoint that follows a seed, if there is one. All connections of one role and seed draw the same.
pub fn endpoint(
    seed: Option<u64>,
    role: Role,
    make: impl FnOnce() -> Result<Box<dyn Endpoint>, SetupError>,
) -> Result<Box<dyn Endpoint>, SetupError> {
    let Some(seed) = seed else { return make() };
    let mut source = source(seed, role)?;
    let inner = source.during(make)?;
    Ok(Box::new(SeededEndpoint { source, inner }))
}

impl Endpoint for SeededEndpoint {
    fn side(&self) -> Side {
        self.inner.side()
    }

    fn transport(&self) -> Transport {
        self.inner.transport()
    }

    fn handle_input(&mut self, now: Time, bytes: &[u8]) {
        self.source.during(|| self.inner.handle_input(now, bytes));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.source.during(|| self.inner.handle_timeout(now));
    }

    fn handle_close(&mut self, now: Time) {
        self.source.during(|| self.inner.handle_close(now));
    }

    fn write(&mut self, now: Time, data: &[u8]) -> Result<(), WriteError> {
        self.source.during(|| self.inner.write(now, data))
    }

    fn close(&mut self, now: Time) {
        self.source.during(|| self.inner.close(now));
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        self.source.during(|| self.inner.poll_transmit(now, buffer))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.source.during(|| self.inner.poll_event())
    }

    fn state(&self) -> String {
        self.inner.state()
    }

    fn session(&self) -> Option<Session> {
        self.inner.session()
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.inner.peer_certificates()
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &str,
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        self.inner.export_keying_material(output, label, context)
    }
}
