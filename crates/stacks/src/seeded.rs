//! Endpoints with random numbers that are derived from a seed.

use crate::stack::{SetupError, refused};
use shakedown_ossl::random::Seeded;
use shakedown_trace::{Endpoint, Side, Wrapper};

/// An endpoint with its own source of random numbers, independent of the calling thread.
pub struct SeededEndpoint {
    source: Seeded,
    inner: Box<dyn Endpoint>,
}

/// The user of random numbers. With one seed, each role gets different numbers.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    Connection(Side),
    /// An end of the connection whose session is resumed later.
    SessionMaker(Side),
    /// Data that the connections of a side share, such as the keys of tickets.
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

/// Calls `make`, which uses random numbers only during this call; they are derived from the seed, if there is one.
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
    Seeded::new(seed, role.number()).map_err(refused("draw from a seed"))
}

/// Creates an endpoint whose random numbers are derived from the seed, if there is one. All connections of one role
/// and seed get the same numbers.
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

impl Wrapper for SeededEndpoint {
    type Inner = dyn Endpoint;

    fn inner(&self) -> &(dyn Endpoint + 'static) {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut (dyn Endpoint + 'static) {
        self.inner.as_mut()
    }

    fn around<T>(&mut self, call: impl FnOnce(&mut Self::Inner) -> T) -> T {
        self.source.during(|| call(self.inner.as_mut()))
    }
}
