//! The client and the server of one suite, from which any number of connections can be created.

use crate::seeded::{self, Role};
use crate::settings::Settings;
use crate::stack::{Acceptor, Connector, SetupError};
use shakedown_ossl::memory::{self, Account};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{Carrier, Counter, Endpoint, HandshakeId, Session, Side, Suite};
use std::sync::{Arc, Mutex, PoisonError};

/// The shared state of the endpoints of one suite, created before any measurement. Threads can share it.
pub struct Peers {
    pub id: HandshakeId,
    connector: Arc<dyn Connector>,
    acceptor: Arc<dyn Acceptor>,
    /// The seed of the endpoints' random numbers; `None`: the system's random numbers.
    pub seed: Option<u64>,
    pub counter: Counter,
    /// Maximum number of TLS bytes in an EAP packet, if EAP is the carrier.
    pub fragment_bytes: usize,
    /// The session that clients resume; replaced when it can no longer be resumed.
    session: Mutex<Option<Session>>,
}

/// A client and a server of one new connection.
pub struct Pair {
    /// The side that sends first.
    pub client: Box<dyn Endpoint>,
    pub server: Box<dyn Endpoint>,
}

/// Sets a suite up on the stacks that the settings choose: credentials, contexts, and the session to resume.
///
/// # Errors
/// [`SetupError`]; for errors of the user's input [`SetupError::is_input`] is true.
pub fn prepare(suite: &Suite, settings: &Settings) -> Result<Peers, SetupError> {
    if settings.carrier == Carrier::Eap {
        crate::carried::check(suite)?;
    }
    let choose = |side, name: &Option<String>| settings.registry.choose(suite, side, name.as_deref());
    let client = choose(Side::Client, &settings.client_stack)?;
    let server = choose(Side::Server, &settings.server_stack)?;
    if settings.seed.is_some()
        && let Some(stack) = [client, server].into_iter().find(|stack| !stack.follows_seeds())
    {
        return Err(SetupError::Unseedable { stack: stack.id().name.into_owned() });
    }
    let identities = settings.identities(suite, client.as_ref(), server.as_ref())?;
    let setup = settings.setup(suite, identities);
    let id = HandshakeId {
        suite: suite.clone(),
        client_stack: client.id(),
        server_stack: server.id(),
        carrier: settings.carrier,
        credentials: settings.credentials(suite),
    };
    let connector = memory::on(Account::ClientContext, || {
        seeded::during(settings.seed, Role::Context(Side::Client), || client.client(&setup))
    })?;
    let acceptor = memory::on(Account::ServerContext, || {
        seeded::during(settings.seed, Role::Context(Side::Server), || server.server(&setup))
    })?;
    let peers = Peers {
        id,
        connector,
        acceptor,
        seed: settings.seed,
        counter: settings.counter,
        fragment_bytes: settings.fragment_bytes,
        session: Mutex::default(),
    };
    if suite.is_resumption() {
        peers.renew_session()?;
    }
    Ok(peers)
}

impl Peers {
    /// A new client, which resumes the session if the suite resumes one. If the session can no longer be
    /// resumed, a full handshake creates another first.
    pub fn client(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        let connect = || {
            let role = Role::Connection(Side::Client);
            seeded::endpoint(self.seed, role, || self.connector.connect(self.session().as_ref()))
        };
        match connect() {
            Err(SetupError::SpentSession) => {
                self.renew_session()?;
                connect()
            }
            other => other,
        }
    }

    pub fn server(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        seeded::endpoint(self.seed, Role::Connection(Side::Server), || self.acceptor.accept())
    }

    pub fn pair(&self) -> Result<Pair, SetupError> {
        Ok(Pair { client: self.client()?, server: self.server()? })
    }

    fn session(&self) -> Option<Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn renew_session(&self) -> Result<(), SetupError> {
        let session = self.make_session()?;
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        Ok(())
    }

    /// Runs the full handshake whose session is resumed later.
    fn make_session(&self) -> Result<Session, SetupError> {
        let role = Role::SessionMaker;
        let mut client = seeded::endpoint(self.seed, role(Side::Client), || self.connector.connect(None))?;
        let mut server = seeded::endpoint(self.seed, role(Side::Server), || self.acceptor.accept_issuing())?;
        Loopback::new()
            .handshake(client.as_mut(), server.as_mut(), &mut ())
            .map_err(|error| SetupError::NoSession { reason: error.to_string() })?;
        client.session().ok_or_else(|| SetupError::NoSession { reason: "the server issued none".into() })
    }
}
