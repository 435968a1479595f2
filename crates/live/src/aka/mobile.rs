//! A mobile as a process on a TCP socket, with the same state machine as in virtual time.

use super::AkaError;
use super::files::{self, CardFile};
use super::nodes::settings;
use super::sockets::{POLL_INTERVAL, connect, read, ready};
use serde::Serialize;
use shakedown_aka::message::MAX_DATA_BYTES;
use shakedown_aka::mobile::{AttachFailure, Mobile, MobileEvent, Subscription};
use shakedown_aka::names::{Network, Temporary};
use shakedown_pki::words;
use shakedown_stacks::SetupError;
use shakedown_trace::{Endpoint, Session};
use std::io::Write;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct MobileOptions {
    pub sgsns: Vec<SocketAddr>,
    pub serving: String,
    /// File that `aka provision` wrote.
    pub card: PathBuf,
    pub attaches: usize,
    pub gap: Duration,
    /// Timeout of the connection, and of the attach including the response to user data.
    pub timeout: Duration,
    /// User data that is sent under the derived keys and must be echoed.
    pub data: Option<Vec<u8>>,
}

/// One attach of a mobile on a socket. Times in seconds, as in virtual time; the SGSN measures SCRT.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// Whether user data came back unchanged.
    pub echoed: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Attaches {
    pub suite: String,
    pub attaches: Vec<Attached>,
}

/// Attaches repeatedly, each time with the identity and session of the last attach. `step` gets the number so far.
///
/// # Errors
/// [`AkaError`] if nothing can be run; failed attaches are in the result.
pub fn attach(
    options: &MobileOptions,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Attaches, AkaError> {
    let serving = Network::new(&options.serving)?;
    if let Some(given) = options.data.as_ref().map(Vec::len).filter(|given| *given > MAX_DATA_BYTES) {
        return Err(AkaError::Option {
            option: "user data",
            given: format!("{given} bytes"),
            accepted: format!("up to {MAX_DATA_BYTES} bytes, what a message holds under protection"),
        });
    }
    let suite = files::read::<CardFile>(&options.card)?.card(&options.card)?.1.to_string();
    let mut kept = (None, None);
    let mut all = Vec::with_capacity(options.attaches);
    for number in 0..options.attaches {
        let until = Instant::now() + if number == 0 { Duration::ZERO } else { options.gap };
        while Instant::now() < until {
            if step(number).is_break() {
                return Err(AkaError::Interrupted);
            }
            std::thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
        if step(number).is_break() {
            return Err(AkaError::Interrupted);
        }
        let place = number % options.sgsns.len().max(1);
        let Some(sgsn) = options.sgsns.get(place) else { break };
        all.push(attach_once(options, *sgsn, &serving, &mut kept, &mut || step(number))?);
    }
    Ok(Attaches { suite, attaches: all })
}

/// Temporary identity and session of the last attach.
type Left = (Option<Temporary>, Option<Session>);

fn attach_once(
    options: &MobileOptions,
    address: SocketAddr,
    serving: &Network,
    kept: &mut Left,
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Attached, AkaError> {
    let start = Instant::now();
    let connected = connect(address, options.timeout, step);
    let mut found = Attached { nrt_s: Some(start.elapsed().as_secs_f64()), ..Attached::default() };
    let mut stream = match connected {
        Ok(stream) if ready(&stream, POLL_INTERVAL) => stream,
        Err(None) => return Err(AkaError::Interrupted),
        other => {
            let lost = || "the connection was lost".into();
            let reason = other.err().flatten().map_or_else(lost, |error| words(&error));
            return Ok(Attached {
                failure: Some("connection".into()),
                reason: Some(format!("{address}: {reason}")),
                ..Attached::default()
            });
        }
    };
    // The paper's preparation: certificates and key are read, and a context is created.
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
        if step().is_break() {
            return Err(AkaError::Interrupted);
        }
        if Instant::now() > until {
            return Ok(finished(found, &mobile, Some(AttachFailure::NoAnswer)));
        }
        match read(&stream, &mut buffer) {
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
