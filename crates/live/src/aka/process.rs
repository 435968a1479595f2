//! Mobile, SGSN and HSS as processes on TCP sockets: a thread a connection, each around the same machines that run in
//! virtual time.

use super::AkaError;
use super::files::{self, CardFile, HssFile, SgsnFile, words};
use super::lab::{Cache, Lab};
use serde::Serialize;
use shakedown_aka::core::{Answer, Query};
use shakedown_aka::frame::Frames;
use shakedown_aka::hss::Hss;
use shakedown_aka::mobile::{AttachFailure, Mobile, MobileEvent, Subscription};
use shakedown_aka::names::{Network, Temporary};
use shakedown_aka::sessions::{Policy, Sessions, Store};
use shakedown_aka::sgsn::{Attach, AttachEvent, Node};
use shakedown_stacks::{Exposure, Settings, SetupError};
use shakedown_trace::{Endpoint, Session};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where an HSS listens, and its register.
#[derive(Clone, Debug)]
pub struct HssOptions {
    /// For SGSNs.
    pub listen: SocketAddr,
    /// What `aka provision` wrote.
    pub file: PathBuf,
}

/// Where an SGSN listens, and what it knows.
#[derive(Clone, Debug)]
pub struct SgsnOptions {
    /// For mobiles.
    pub listen: SocketAddr,
    /// For other SGSNs; `None`: nobody asks.
    pub core: Option<SocketAddr>,
    /// What `aka provision` wrote.
    pub file: PathBuf,
    /// HSSs by network.
    pub homes: BTreeMap<String, SocketAddr>,
    /// Other SGSNs by name, at their core addresses.
    pub neighbours: BTreeMap<String, SocketAddr>,
    /// The two thresholds.
    pub policy: Policy,
}

/// What an SGSN did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SgsnSummary {
    /// Attaches by a full handshake.
    pub full: u64,
    /// Attaches that resumed.
    pub resumed: u64,
    /// By cause.
    pub rejected: BTreeMap<String, u64>,
    /// Sessions that were offered and not resumed, by decision.
    pub not_resumed: BTreeMap<String, u64>,
    /// Subscribers that went to another SGSN.
    pub handed_over: u64,
    /// Subscribers that came from one.
    pub taken_over: u64,
    /// ServerHello sent to attach accept sent, of full handshakes.
    pub scrt_full_s: Vec<f64>,
    /// The same of resumed ones.
    pub scrt_resumed_s: Vec<f64>,
}

/// What a mobile does.
#[derive(Clone, Debug)]
pub struct MobileOptions {
    /// The SGSNs, in turn.
    pub sgsns: Vec<SocketAddr>,
    /// The network that it belongs to.
    pub serving: String,
    /// What `aka provision` wrote.
    pub card: PathBuf,
    /// How often.
    pub attaches: usize,
    /// Between two.
    pub gap: Duration,
    /// For the network to say anything.
    pub timeout: Duration,
    /// User data to send under the derived keys and to get back.
    pub data: Option<Vec<u8>>,
}

/// One attach of a mobile on a socket. Times in seconds, as in virtual time; SCRT is the SGSN's to measure.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // the names are those of virtual time
pub struct Attached {
    pub failure: Option<String>,
    pub reason: Option<String>,
    pub resumed: bool,
    pub nrt_s: Option<f64>,
    pub rpt_s: Option<f64>,
    pub tht_s: Option<f64>,
    pub tst_s: Option<f64>,
    pub attach_s: Option<f64>,
    pub handshake_bytes: [u64; 2],
    /// User data came back as it was sent.
    pub echoed: Option<bool>,
}

/// The most connections at a time; more are closed at once.
const MAX_CONNECTIONS: usize = 256;
/// How often a wait is broken to look for the end.
const BREATH: Duration = Duration::from_millis(20);
/// How long a mobile may take to attach, and be silent afterwards.
const MAX_ATTACH: Duration = Duration::from_secs(120);
/// How long another node may take to answer.
const MAX_ANSWER: Duration = Duration::from_secs(5);
/// Samples that a summary keeps.
const MAX_SAMPLES: usize = 100_000;

fn listen(address: SocketAddr) -> Result<TcpListener, AkaError> {
    let failed = |source| AkaError::Listen { address: address.to_string(), source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

fn local(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}

/// Seconds since 1970: sessions age across restarts.
fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn settings() -> Settings {
    let now = i64::try_from(wall().as_secs()).unwrap_or(i64::MAX);
    Settings { now_unix_s: now, instrumented: false, exposure: Exposure::Network, ..Settings::default() }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves a connection until it ends or is told to.
type Serve<'a> = &'a (dyn Fn(TcpStream, &AtomicBool) + Sync);

/// Accepts connections until `step` stops it, and serves each on a thread. Threads end with their connections, which
/// end when `stop` is set.
fn accept_all(listeners: &[(TcpListener, Serve<'_>)], step: &mut dyn FnMut() -> ControlFlow<()>) {
    let stop = AtomicBool::new(false);
    let open = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        while step().is_continue() {
            let mut idle = true;
            for (listener, serve) in listeners {
                let Ok((stream, _)) = listener.accept() else { continue };
                idle = false;
                if open.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
                    continue;
                }
                open.fetch_add(1, Ordering::Relaxed);
                let (stop, open) = (&stop, &open);
                scope.spawn(move || {
                    serve(stream, stop);
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
            if idle {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Reads what comes within a breath; `None` at the end of the stream.
fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> Option<usize> {
    match stream.read(buffer) {
        Ok(0) => None,
        Ok(length) => Some(length),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
            ) =>
        {
            Some(0)
        }
        Err(_) => None,
    }
}

fn ready(stream: &TcpStream) -> bool {
    stream.set_nonblocking(false).is_ok()
        && stream.set_nodelay(true).is_ok()
        && stream.set_read_timeout(Some(BREATH)).is_ok()
        && stream.set_write_timeout(Some(MAX_ANSWER)).is_ok()
}

/// Asks another node.
fn ask(address: SocketAddr, query: &Query) -> Option<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, MAX_ANSWER).ok()?;
    ready(&stream).then_some(())?;
    stream.write_all(&query.to_bytes()).ok()?;
    let (mut frames, mut buffer) = (Frames::default(), [0; 4096]);
    let until = Instant::now() + MAX_ANSWER;
    while Instant::now() < until {
        let length = read(&mut stream, &mut buffer)?;
        frames.push(&buffer[..length]);
        if let Some((kind, body)) = frames.next_frame() {
            return Answer::read(kind, &body).ok();
        }
    }
    None
}

/// Answers other nodes on one connection.
fn answer_all(mut stream: TcpStream, stop: &AtomicBool, answer: &dyn Fn(&Query) -> Option<Answer>) {
    if !ready(&stream) {
        return;
    }
    let (mut frames, mut buffer) = (Frames::default(), [0; 4096]);
    let until = Instant::now() + MAX_ATTACH;
    while !stop.load(Ordering::Relaxed) && Instant::now() < until {
        let Some(length) = read(&mut stream, &mut buffer) else { return };
        frames.push(&buffer[..length]);
        while let Some((kind, body)) = frames.next_frame() {
            let Some(found) = Query::read(kind, &body).ok().and_then(|query| answer(&query)) else { return };
            if stream.write_all(&found.to_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Serves a register until `step` stops it; `listening` is told the address.
///
/// # Errors
/// [`AkaError`].
pub fn serve_hss(
    options: &HssOptions,
    listening: &mut dyn FnMut(SocketAddr) -> ControlFlow<()>,
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<(), AkaError> {
    let register: HssFile = files::read(&options.file)?;
    let hss = Mutex::new(register.hss(&options.file)?);
    let listener = listen(options.listen)?;
    if listening(local(&listener, options.listen)).is_break() {
        return Ok(());
    }
    let serve = |stream: TcpStream, stop: &AtomicBool| {
        answer_all(stream, stop, &|query| Some(Hss::answer(&mut locked(&hss), query)));
    };
    accept_all(&[(listener, &serve)], step);
    Ok(())
}

/// Where an SGSN keeps sessions and subscribers.
pub type Kept = Box<dyn Store + Send>;

/// An SGSN while it serves.
struct Serving<'a> {
    node: Mutex<Node<Lab, Kept>>,
    options: &'a SgsnOptions,
    summary: Mutex<SgsnSummary>,
}

/// Serves mobiles until `step` stops it, and keeps what it must in `store`; `listening` is told the addresses for mobiles and for other SGSNs.
///
/// # Errors
/// [`AkaError`].
pub fn serve_sgsn(
    options: &SgsnOptions,
    store: Kept,
    listening: &mut dyn FnMut(SocketAddr, Option<SocketAddr>) -> ControlFlow<()>,
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<SgsnSummary, AkaError> {
    let file: SgsnFile = files::read(&options.file)?;
    let (name, network, suite, certificates) = file.parts(&options.file)?;
    let sessions = Arc::new(Mutex::new(Sessions::new(store, options.policy)));
    let cache = Arc::new(Cache(Arc::clone(&sessions)));
    let lab = Lab::new(&suite, &network, certificates, &settings(), cache)?;
    let serving = Serving {
        node: Mutex::new(Node::new(name, network, lab, sessions)),
        options,
        summary: Mutex::default(),
    };
    let mobiles = listen(options.listen)?;
    let core = options.core.map(listen).transpose()?;
    let core_address = core.as_ref().zip(options.core).map(|(listener, asked)| local(listener, asked));
    if listening(local(&mobiles, options.listen), core_address).is_break() {
        return Ok(SgsnSummary::default());
    }
    let mobile = |stream: TcpStream, stop: &AtomicBool| serving.mobile(stream, stop);
    let other = |stream: TcpStream, stop: &AtomicBool| {
        answer_all(stream, stop, &|query| locked(&serving.node).answer(query).ok());
    };
    let mut listeners: Vec<(TcpListener, Serve<'_>)> = vec![(mobiles, &mobile)];
    if let Some(core) = core {
        listeners.push((core, &other));
    }
    accept_all(&listeners, step);
    Ok(serving.summary())
}

impl Serving<'_> {
    fn summary(&self) -> SgsnSummary {
        let owned = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(word, times)| ((*word).to_owned(), *times)).collect()
        };
        let node = locked(&self.node);
        let tally = node.tally();
        SgsnSummary {
            full: tally.full,
            resumed: tally.resumed,
            rejected: owned(&tally.rejected),
            not_resumed: owned(&tally.not_resumed),
            handed_over: tally.handed_over,
            taken_over: tally.taken_over,
            ..locked(&self.summary).clone()
        }
    }

    /// Who answers a query of an attach.
    fn ask(&self, attach: &Attach<Box<dyn Endpoint>>, network: &Network, query: &Query) -> Option<Answer> {
        let address = match query {
            Query::Context { .. } => {
                let old = attach.temporary().map(|given| given.node.as_str())?;
                self.options.neighbours.get(old)
            }
            _ => self.options.homes.get(network.as_str()),
        };
        ask(*address?, query)
    }

    /// One mobile's connection.
    fn mobile(&self, mut stream: TcpStream, stop: &AtomicBool) {
        if !ready(&stream) {
            return;
        }
        let mut attach = Attach::default();
        let mut buffer = vec![0; 16_384];
        let mut until = Instant::now() + MAX_ATTACH;
        let (mut hello, mut answered) = (None, false);
        loop {
            let ended = stop.load(Ordering::Relaxed) || Instant::now() > until;
            match read(&mut stream, &mut buffer).filter(|_| !ended && !attach.is_over()) {
                None => return attach.handle_close(&mut *locked(&self.node)),
                Some(0) => continue,
                Some(length) => attach.handle_input(&mut *locked(&self.node), wall(), &buffer[..length]),
            }
            while let Some((network, query)) = attach.poll_query() {
                // Nobody else's attach waits for it: the node is free meanwhile.
                let answer = self.ask(&attach, &network, &query);
                attach.handle_answer(&mut *locked(&self.node), wall(), answer);
            }
            while let Some(event) = attach.poll_event() {
                match event {
                    AttachEvent::Attached { .. } => until = Instant::now() + MAX_ATTACH,
                    // The laboratory has nowhere else to send it.
                    AttachEvent::Data(data) => {
                        attach.send(&data);
                        until = Instant::now() + MAX_ATTACH;
                    }
                    AttachEvent::Rejected { .. } => {}
                }
            }
            let mut out = Vec::new();
            if attach.poll_transmit(&mut out) && stream.write_all(&out).is_err() {
                return attach.handle_close(&mut *locked(&self.node));
            }
            if attach.steps() > 0 {
                let sent = *hello.get_or_insert_with(Instant::now);
                if attach.is_accepted() && !answered {
                    answered = true;
                    self.served(&attach, sent.elapsed());
                }
            }
        }
    }

    fn served(&self, attach: &Attach<Box<dyn Endpoint>>, took: Duration) {
        let resumed = attach.negotiated().is_some_and(|negotiated| negotiated.resumed);
        let mut summary = locked(&self.summary);
        let samples = if resumed { &mut summary.scrt_resumed_s } else { &mut summary.scrt_full_s };
        if samples.len() < MAX_SAMPLES {
            samples.push(took.as_secs_f64());
        }
    }
}

/// What attaches negotiated, and each of them.
#[derive(Clone, Debug, Serialize)]
pub struct Attaches {
    /// As the card has it.
    pub suite: String,
    /// In order.
    pub attaches: Vec<Attached>,
}

/// Attaches as often as is asked, each time with what the last attach left. `step` is told how many are over.
///
/// # Errors
/// [`AkaError`] where nothing can be run; attaches that failed are in the result.
pub fn attach(
    options: &MobileOptions,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Attaches, AkaError> {
    let serving = Network::new(&options.serving)?;
    let suite = files::read::<CardFile>(&options.card)?.card(&options.card)?.1.to_string();
    let mut kept = (None, None);
    let mut all = Vec::with_capacity(options.attaches);
    for number in 0..options.attaches {
        let until = Instant::now() + if number == 0 { Duration::ZERO } else { options.gap };
        while Instant::now() < until {
            if step(number).is_break() {
                return Err(AkaError::Interrupted);
            }
            std::thread::sleep(BREATH.min(until.saturating_duration_since(Instant::now())));
        }
        if step(number).is_break() {
            return Err(AkaError::Interrupted);
        }
        let place = number % options.sgsns.len().max(1);
        let Some(sgsn) = options.sgsns.get(place) else { break };
        all.push(attach_once(options, *sgsn, &serving, &mut kept)?);
    }
    Ok(Attaches { suite, attaches: all })
}

/// What a mobile took from its last attach.
type Left = (Option<Temporary>, Option<Session>);

fn attach_once(
    options: &MobileOptions,
    address: SocketAddr,
    serving: &Network,
    kept: &mut Left,
) -> Result<Attached, AkaError> {
    let start = Instant::now();
    let connected = TcpStream::connect_timeout(&address, options.timeout);
    let mut found = Attached { nrt_s: Some(start.elapsed().as_secs_f64()), ..Attached::default() };
    let mut stream = match connected {
        Ok(stream) if ready(&stream) => stream,
        other => {
            let reason = other.map_or_else(|error| words(&error), |_| "the connection was lost".into());
            return Ok(Attached {
                failure: Some("connection".into()),
                reason: Some(format!("{address}: {reason}")),
                ..Attached::default()
            });
        }
    };
    // What the paper calls preparation: certificates and key are read, and a context is made.
    let file: CardFile = files::read(&options.card)?;
    let (card, suite) = file.card(&options.card)?;
    let connector = card.connector(&suite, serving, &settings())?;
    let endpoint = match connector.connect(kept.1.as_ref()) {
        Err(SetupError::SpentSession) => connector.connect(None)?,
        other => other?,
    };
    let subscription = Subscription { imsi: card.imsi, home: card.home, temporary: kept.0.clone() };
    let mut mobile = Mobile::new(endpoint, subscription);
    found.rpt_s = Some(start.elapsed().as_secs_f64());
    let hello = Instant::now();
    let until = hello + options.timeout;
    let mut buffer = vec![0; 16_384];
    let mut waits_for = options.data.as_deref();
    let mut attached = false;
    loop {
        let mut out = Vec::new();
        if mobile.poll_transmit(hello.elapsed(), &mut out) && stream.write_all(&out).is_err() {
            mobile.handle_close();
        }
        while let Some(event) = mobile.poll_event() {
            match event {
                MobileEvent::Established { resumed } => {
                    found.resumed = resumed;
                    found.tht_s = Some(hello.elapsed().as_secs_f64());
                }
                MobileEvent::Attached(temporary) => {
                    found.attach_s = Some(start.elapsed().as_secs_f64());
                    attached = true;
                    kept.0 = Some(temporary);
                    if !found.resumed {
                        kept.1 = mobile.endpoint().session();
                    }
                    if let Some(data) = waits_for {
                        mobile.send(data);
                    }
                }
                MobileEvent::Data(data) => {
                    found.echoed = Some(waits_for == Some(&*data));
                    waits_for = None;
                }
                MobileEvent::Failed(failure) => {
                    return Ok(finished(found, &mobile, Some(failure)));
                }
            }
        }
        let mut rest = Vec::new();
        if mobile.poll_transmit(hello.elapsed(), &mut rest) && stream.write_all(&rest).is_err() {
            mobile.handle_close();
            continue;
        }
        if attached && waits_for.is_none() {
            return Ok(finished(found, &mobile, None));
        }
        if Instant::now() > until {
            return Ok(finished(found, &mobile, Some(AttachFailure::NoAnswer)));
        }
        match read(&mut stream, &mut buffer) {
            None => mobile.handle_close(),
            Some(length) => mobile.handle_input(hello.elapsed(), &buffer[..length]),
        }
    }
}

fn finished(
    mut found: Attached,
    mobile: &Mobile<Box<dyn Endpoint>>,
    failure: Option<AttachFailure>,
) -> Attached {
    found.failure = failure.as_ref().map(|failure| failure.cause().to_owned());
    found.reason = failure.map(|failure| failure.to_string());
    found.tst_s = found.rpt_s.zip(found.tht_s).map(|(rpt, tht)| rpt + tht);
    found.handshake_bytes = mobile.handshake_bytes();
    found
}
