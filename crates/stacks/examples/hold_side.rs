//! Holds connections of one side only, so that an independent tool can measure the heap: `hold_side SUITE SIDE COUNT
//! TICKETS`.
//!
//! The other side runs in a child process, connected by two pipes. Under a heap profiler this process then holds COUNT
//! clients, or servers, and nothing of their peers. Its maximum is during the last handshake: `COUNT - 1` held
//! connections and one at its peak. Then it allocates nothing for a while, so that a profiler that counts instructions
//! records the plateau, and ends it with one more allocation of [`MARK_BYTES`].

use shakedown_stacks::{Peers, Settings, prepare};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{CloseReason, Endpoint, Event, Side, Suite};
use std::error::Error;
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

const USAGE: &str = "usage: hold_side SUITE client|server COUNT TICKETS";
/// Bytes of the allocation that ends the plateau.
const MARK_BYTES: usize = 8;
/// Rounds of an empty loop, long compared with a profiler's interval between two snapshots.
const PLATEAU: u64 = 40_000_000;
/// Capacity for the largest flight, so that no buffer grows during the measurement.
const BUFFER_BYTES: usize = 128 * 1024;

/// Counts Rust's own allocations in addition to OpenSSL's.
#[global_allocator]
static ALLOCATOR: shakedown_ossl::memory::Counting = shakedown_ossl::memory::Counting;

fn main() -> Result<(), Box<dyn Error>> {
    shakedown_ossl::memory::install();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, side, count, tickets, role @ ..] = &words[..] else { return Err(USAGE.into()) };
    let side = match side.as_str() {
        "client" => Side::Client,
        "server" => Side::Server,
        _ => return Err(USAGE.into()),
    };
    let suite: Suite = name.parse()?;
    let settings = Settings { instrumented: false, tickets: tickets.parse()?, ..Settings::default() };
    let peers = prepare(&suite, &settings)?;
    let number: usize = count.parse()?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    if !role.is_empty() {
        // The child holds no connections.
        for _ in 0..number {
            connect(&peers, side, &mut buffer, &mut std::io::stdout(), &mut std::io::stdin())?;
        }
        return Ok(());
    }
    let mut child = Command::new(std::env::current_exe()?)
        .args([name, side.peer().as_str(), count, tickets, "peer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut to, mut from) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
    let mut held: Vec<Box<dyn Endpoint>> = Vec::with_capacity(number);
    for _ in 0..number {
        held.push(connect(&peers, side, &mut buffer, &mut to, &mut from)?);
    }
    for turn in 0..PLATEAU {
        black_box(turn);
    }
    black_box(Box::new([0u8; MARK_BYTES]));
    println!("{} held", held.len());
    Ok(())
}

/// Performs a handshake with the other process. Both sides alternate, the client first: each sends its endpoint's
/// output, until neither has any.
fn connect(
    peers: &Peers,
    side: Side,
    buffer: &mut Vec<u8>,
    to: &mut dyn Write,
    from: &mut dyn Read,
) -> Result<Box<dyn Endpoint>, Box<dyn Error>> {
    let mut endpoint = if side == Side::Client { peers.client()? } else { peers.server()? };
    let mut negotiated = None;
    let mut quiet = false;
    while !quiet {
        quiet = true;
        for sender in Side::BOTH {
            loop {
                buffer.clear();
                if sender == side {
                    endpoint.poll_transmit(Time::ZERO, buffer);
                    to.write_all(&u32::try_from(buffer.len())?.to_be_bytes())?;
                    to.write_all(buffer)?;
                } else {
                    let mut size = [0; 4];
                    from.read_exact(&mut size)?;
                    buffer.resize(u32::from_be_bytes(size) as usize, 0);
                    from.read_exact(buffer)?;
                    if !buffer.is_empty() {
                        endpoint.handle_input(Time::ZERO, buffer);
                    }
                }
                while let Some(event) = endpoint.poll_event() {
                    match event {
                        Event::Established(found) => negotiated = Some(found),
                        Event::Closed(CloseReason::Failed(failure)) | Event::Rejected(failure) => {
                            return Err(failure.into());
                        }
                        _ => {}
                    }
                }
                if buffer.is_empty() {
                    break;
                }
                quiet = false;
            }
            to.flush()?;
        }
    }
    let negotiated = negotiated.ok_or_else(|| format!("{side} in state {}", endpoint.state()))?;
    match negotiated.difference(&peers.id.suite) {
        Some(difference) => Err(difference.into()),
        None => Ok(endpoint),
    }
}
