//! Holds connections of one side alone, so that an independent tool can measure the heap: `hold_side SUITE SIDE COUNT`.
//!
//! The other side runs in a child process, driven through pipes by the same loop that `measure` uses. Under a heap
//! profiler this process then holds COUNT clients, or servers, and nothing of their peers. While the last
//! one shakes hands it holds the most: `COUNT - 1` held ones and one at its peak. Then it stands still for a while, so
//! that a profiler with a clock of instructions sees the plateau, and marks its end with one more
//! allocation of [`MARK_BYTES`].

use shakedown_stacks::{Peers, Settings, SetupError, prepare};
use shakedown_trace::driver::Loopback;
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{CloseReason, Endpoint, Event, Failure, Negotiated, Side, Suite, WriteError};
use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const USAGE: &str = "usage: hold_side SUITE client|server COUNT";
/// Bytes of the allocation that ends the plateau.
const MARK_BYTES: usize = 8;
/// Rounds of a loop that does nothing, long beside all that a profiler counts between two snapshots.
const PLATEAU: u64 = 40_000_000;
/// Room for the largest flight, so that no buffer grows while anything is measured.
const BUFFER_BYTES: usize = 128 * 1024;

/// Rust's own allocations are counted beside OpenSSL's.
#[global_allocator]
static ALLOCATOR: shakedown_ossl::memory::Counting = shakedown_ossl::memory::Counting;

fn main() -> Result<(), Box<dyn Error>> {
    shakedown_ossl::memory::install();
    let mut arguments = std::env::args().skip(1);
    let suite: Suite = arguments.next().ok_or(USAGE)?.parse()?;
    let side = match arguments.next().as_deref() {
        Some("client") => Side::Client,
        Some("server") => Side::Server,
        _ => return Err(USAGE.into()),
    };
    let last = arguments.next().ok_or(USAGE)?;
    if last == "peer" { serve(&suite, side) } else { hold(&suite, side, last.parse()?) }
}

fn make(peers: &Peers, side: Side) -> Result<Box<dyn Endpoint>, SetupError> {
    if side == Side::Client { peers.client() } else { peers.server() }
}

fn hold(suite: &Suite, side: Side, count: usize) -> Result<(), Box<dyn Error>> {
    let peers = prepare(suite, &settings())?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([suite.to_string().as_str(), side.peer().as_str(), "peer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut loopback = Loopback::new();
    let mut held: Vec<Box<dyn Endpoint>> = Vec::with_capacity(count);
    let mut remote = Remote::new(&mut child, side.peer())?;
    for _ in 0..count {
        remote.ask(b'n', Time::ZERO, &[])?;
        let mut local = make(&peers, side)?;
        let handshake = match side {
            Side::Client => loopback.handshake(local.as_mut(), &mut remote, &mut ())?,
            Side::Server => loopback.handshake(&mut remote, local.as_mut(), &mut ())?,
        };
        let negotiated = if side == Side::Client { handshake.client } else { handshake.server };
        if let Some(difference) = negotiated.difference(suite) {
            return Err(difference.into());
        }
        held.push(local);
    }
    for turn in 0..PLATEAU {
        black_box(turn);
    }
    black_box(Box::new([0u8; MARK_BYTES]));
    println!("{} held", held.len());
    Ok(())
}

/// Answers the requests of the process that holds, from standard input to standard output.
fn serve(suite: &Suite, side: Side) -> Result<(), Box<dyn Error>> {
    let peers = prepare(suite, &settings())?;
    let mut endpoint = make(&peers, side)?;
    let (mut requests, mut replies) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut bytes = Vec::new();
    while let Ok((verb, now)) = read_request(&mut requests, &mut bytes) {
        let mut reply = Vec::new();
        let done = match verb {
            b'n' => make(&peers, side).map(|new| endpoint = new).map_err(|error| error.to_string()),
            b'r' => {
                endpoint.handle_input(now, &bytes);
                Ok(())
            }
            b'o' => {
                endpoint.handle_timeout(now);
                Ok(())
            }
            b't' => {
                reply.push(0);
                reply[0] = u8::from(endpoint.poll_transmit(now, &mut reply));
                Ok(())
            }
            b'e' => match endpoint.poll_event() {
                Some(Event::Closed(CloseReason::Failed(failure))) => Err(failure.to_string()),
                Some(Event::Rejected(failure)) => Err(failure.to_string()),
                Some(Event::Closed(_)) => Err("the connection ended".into()),
                event => {
                    reply.push(u8::from(matches!(event, Some(Event::Established(_)))));
                    Ok(())
                }
            },
            b'd' => {
                reply.extend(endpoint.poll_timeout().map(nanoseconds).unwrap_or(u64::MAX).to_be_bytes());
                Ok(())
            }
            _ => Err(format!("unknown request {verb}")),
        };
        let text = done.err().unwrap_or_default();
        let (status, body) = if text.is_empty() { (0, reply.as_slice()) } else { (1, text.as_bytes()) };
        write_frame(&mut replies, status, Time::ZERO, body)?;
        replies.flush()?;
    }
    Ok(())
}

fn settings() -> Settings {
    Settings { instrumented: false, ..Settings::default() }
}

fn nanoseconds(time: Time) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn write_frame(to: &mut dyn Write, verb: u8, now: Time, bytes: &[u8]) -> std::io::Result<()> {
    let size = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    let mut head = [verb; 13];
    head[1..9].copy_from_slice(&nanoseconds(now).to_be_bytes());
    head[9..].copy_from_slice(&size.to_be_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)
}

fn read_request(from: &mut dyn Read, bytes: &mut Vec<u8>) -> std::io::Result<(u8, Time)> {
    let mut head = [0; 13];
    from.read_exact(&mut head)?;
    let (mut now, mut size) = ([0; 8], [0; 4]);
    now.copy_from_slice(&head[1..9]);
    size.copy_from_slice(&head[9..]);
    bytes.resize(u32::from_be_bytes(size) as usize, 0);
    from.read_exact(bytes)?;
    Ok((head[0], Time::from_nanos(u64::from_be_bytes(now))))
}

struct Link {
    to: ChildStdin,
    from: ChildStdout,
    reply: Vec<u8>,
}

/// The endpoint in the other process.
struct Remote {
    side: Side,
    link: RefCell<Link>,
}

impl Remote {
    fn new(child: &mut Child, side: Side) -> Result<Self, Box<dyn Error>> {
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        Ok(Self { side, link: RefCell::new(Link { to, from, reply: Vec::with_capacity(BUFFER_BYTES) }) })
    }

    fn ask(&self, verb: u8, now: Time, bytes: &[u8]) -> Result<(), Failure> {
        let mut link = self.link.borrow_mut();
        let Link { to, from, reply } = &mut *link;
        let status = write_frame(to, verb, now, bytes).and_then(|()| read_request(from, reply));
        let reason = match status {
            Ok((0, _)) => return Ok(()),
            Ok(_) => String::from_utf8_lossy(reply).into_owned(),
            Err(error) => error.to_string(),
        };
        Err(Failure { side: self.side, state: "in the other process".into(), alert: None, reason })
    }
}

impl Endpoint for Remote {
    fn side(&self) -> Side {
        self.side
    }

    fn transport(&self) -> Transport {
        Transport::Datagram
    }

    fn handle_input(&mut self, now: Time, bytes: &[u8]) {
        // Failures come back with the next event.
        let _ = self.ask(b'r', now, bytes);
    }

    fn handle_timeout(&mut self, now: Time) {
        let _ = self.ask(b'o', now, &[]);
    }

    fn handle_close(&mut self, _: Time) {}

    fn write(&mut self, _: Time, _: &[u8]) -> Result<(), WriteError> {
        Err(WriteError::Refused { side: self.side, reason: "it is in the other process".into() })
    }

    fn close(&mut self, _: Time) {}

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        let asked = self.ask(b't', now, &[]);
        let reply = &self.link.borrow().reply;
        match (asked, reply.split_first()) {
            (Ok(()), Some((1, bytes))) => {
                buffer.extend_from_slice(bytes);
                true
            }
            _ => false,
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.ask(b'd', Time::ZERO, &[]).ok()?;
        let nanoseconds = u64::from_be_bytes(self.link.borrow().reply.as_slice().try_into().ok()?);
        (nanoseconds != u64::MAX).then(|| Time::from_nanos(nanoseconds))
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self.ask(b'e', Time::ZERO, &[]) {
            Err(failure) => Some(Event::Closed(CloseReason::Failed(failure))),
            Ok(()) if self.link.borrow().reply == [1] => {
                // What it negotiated is checked at the side that is held.
                Some(Event::Established(Box::new(Negotiated {
                    protocol: Protocol::Tls13,
                    key_exchange: None,
                    cipher: None,
                    cipher_suite: "unknown",
                    group: None,
                    resumed: false,
                    optimized: false,
                })))
            }
            Ok(()) => None,
        }
    }

    fn state(&self) -> String {
        "in the other process".into()
    }
}
