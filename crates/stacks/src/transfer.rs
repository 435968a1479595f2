//! Bulk data after the handshake: the cost of a cipher for both sides, with and without link encryption.
//!
//! Shin, Gupta and Myers timed transfers of 130 to 2048 KiB over SSL on an open and on a WEP-protected 802.11b network.
//! Here the server sends that much application data to the client over an established connection; each side's
//! time is its CPU time. With link encryption every frame is really encrypted by the sender and decrypted by the
//! receiver ([`FrameCipher`]).

use crate::measure::{MAX_REPEAT, MeasureError, Step, Summary};
use crate::peers::{Pair, prepare};
use crate::settings::Settings;
use serde::Serialize;
use shakedown_link::LinkEncryption;
use shakedown_link::cipher::{Ccmp, CipherError, FrameCipher, MacHeader, Wep};
use shakedown_trace::driver::{DriveError, Loopback};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::{CloseReason, Endpoint, Event, Side, Suite};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Serialize)]
pub struct Transfer {
    pub data_bytes: usize,
    /// `open`, `wep` or `ccmp`.
    pub link: &'static str,
    /// Bytes on the link: records, and the overhead of encryption in each frame.
    pub wire_bytes: u64,
    pub frames: u64,
    pub client_us: Summary,
    pub server_us: Summary,
}

/// The link layers of a transfer, by name.
pub const LINKS: [(&str, LinkEncryption); 3] =
    [("open", LinkEncryption::None), ("wep", LinkEncryption::Wep), ("ccmp", LinkEncryption::Ccmp)];

/// Maximum number of bytes of one transfer.
pub const MAX_BYTES: usize = 1 << 32;

/// Application data is sent in pieces of this size: a full TLS record, or the data of one datagram.
const PIECE_BYTES: usize = 16 * 1024;
const DATAGRAM_PIECE_BYTES: usize = 1400;
/// Payload of a frame that carries an Ethernet-sized packet.
const FRAME_BYTES: usize = 1500;

/// Measures transfers of each size, `repeat` times each, every one over a new connection. `progress` is called at
/// intervals with the number of completed transfers, and may end the measurement.
pub fn measure(
    suite: &Suite,
    sizes_bytes: &[usize],
    encryption: LinkEncryption,
    repeat: usize,
    settings: &Settings,
    progress: Step<'_>,
) -> Result<Vec<Transfer>, MeasureError> {
    let name = || suite.to_string();
    if !(1..=MAX_REPEAT).contains(&repeat) {
        return Err(MeasureError::Repetitions { suite: name(), repeat });
    }
    if let Some(&bytes) = sizes_bytes.iter().find(|bytes| !(1..=MAX_BYTES).contains(*bytes)) {
        return Err(MeasureError::TransferSize { suite: name(), bytes, max: MAX_BYTES });
    }
    let settings = Settings { instrumented: false, ..settings.clone() };
    let peers = prepare(suite, &settings)?;
    let mut transfers = Vec::new();
    let mut done = 0;
    for &data_bytes in sizes_bytes {
        let (mut client_us, mut server_us) = (Vec::new(), Vec::new());
        let mut last = Passed::default();
        // The first transfer fills buffers and caches.
        for repetition in 0..=repeat {
            let mut pair = peers.pair()?;
            Loopback::new()
                .handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ())
                .map_err(|error| MeasureError::Handshake { suite: name(), error })?;
            let mut running = || progress(done).is_continue();
            last = transfer(suite, &mut pair, data_bytes, ciphers(encryption)?, &mut running)?;
            if repetition > 0 {
                client_us.push(last.client.as_secs_f64() * 1e6);
                server_us.push(last.server.as_secs_f64() * 1e6);
            }
            done += 1;
        }
        transfers.push(Transfer {
            data_bytes,
            link: LINKS.into_iter().find(|row| row.1 == encryption).map_or("", |row| row.0),
            wire_bytes: last.payload_bytes + last.frames * u64::from(encryption.overhead_bytes()),
            frames: last.frames,
            client_us: Summary::of(&client_us),
            server_us: Summary::of(&server_us),
        });
    }
    Ok(transfers)
}

#[derive(Default)]
struct Passed {
    client: Duration,
    server: Duration,
    payload_bytes: u64,
    frames: u64,
}

/// The ciphers of a link's two ends, which share a key: the server's and the client's.
type Ciphers = Option<[Box<dyn FrameCipher>; 2]>;

fn ciphers(encryption: LinkEncryption) -> Result<Ciphers, MeasureError> {
    let both = |make: &dyn Fn() -> Result<Box<dyn FrameCipher>, CipherError>| {
        let ends = make().and_then(|sender| Ok([sender, make()?]));
        ends.map(Some).map_err(link_failed)
    };
    match encryption {
        LinkEncryption::None => Ok(None),
        LinkEncryption::Wep => both(&|| Ok(Box::new(Wep::new(b"shakedown wep", 0, 0)?))),
        LinkEncryption::Ccmp => both(&|| {
            let header = MacHeader::data([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]);
            Ok(Box::new(Ccmp::new(*b"shakedown ccmp k", 0, header, 0)?))
        }),
    }
}

/// Sends `data_bytes` from server to client and checks that all of them arrived.
fn transfer(
    suite: &Suite,
    pair: &mut Pair,
    data_bytes: usize,
    mut ciphers: Ciphers,
    running: &mut dyn FnMut() -> bool,
) -> Result<Passed, MeasureError> {
    let (client, server) = (pair.client.as_mut(), pair.server.as_mut());
    let datagrams = server.transport() == Transport::Datagram;
    let piece = vec![0x5a_u8; if datagrams { DATAGRAM_PIECE_BYTES } else { PIECE_BYTES }];
    let mut passed = Passed::default();
    let (mut sent, mut arrived) = (0, 0);
    let (mut unit, mut frames, mut joined) = (Vec::new(), Vec::new(), Vec::new());
    while sent < data_bytes {
        if !running() {
            return Err(MeasureError::Interrupted);
        }
        let length = piece.len().min(data_bytes - sent);
        let start = Instant::now();
        let written = server.write(Time::ZERO, &piece[..length]);
        passed.server += start.elapsed();
        written.map_err(|error| failed(suite, &error))?;
        sent += length;
        loop {
            unit.clear();
            let start = Instant::now();
            if !server.poll_transmit(Time::ZERO, &mut unit) {
                passed.server += start.elapsed();
                break;
            }
            passed.payload_bytes += unit.len() as u64;
            for frame in unit.chunks(FRAME_BYTES) {
                passed.frames += 1;
                let mut frame = frame.to_vec();
                if let Some([sender, _]) = &mut ciphers {
                    sender.seal(&mut frame).map_err(link_failed)?;
                }
                frames.push(frame);
            }
            passed.server += start.elapsed();
            let start = Instant::now();
            joined.clear();
            for mut frame in frames.drain(..) {
                if let Some([_, receiver]) = &mut ciphers {
                    receiver.open(&mut frame).map_err(link_failed)?;
                }
                joined.extend(frame);
            }
            client.handle_input(Time::ZERO, &joined);
            let received = received(client);
            passed.client += start.elapsed();
            arrived +=
                received.map_err(|error| MeasureError::Handshake { suite: suite.to_string(), error })?;
        }
    }
    if arrived != data_bytes {
        let difference =
            format!("{data_bytes} bytes were sent and {arrived} arrived at the {}", Side::Client);
        return Err(failed(suite, &difference));
    }
    Ok(passed)
}

fn link_failed(error: CipherError) -> MeasureError {
    MeasureError::Link { reason: error.to_string() }
}

fn failed(suite: &Suite, reason: &dyn std::fmt::Display) -> MeasureError {
    MeasureError::Transfer { suite: suite.to_string(), reason: reason.to_string() }
}

/// Collects the data that has arrived at an endpoint, and counts its bytes.
fn received(endpoint: &mut dyn Endpoint) -> Result<usize, DriveError> {
    let mut bytes = 0;
    while let Some(event) = endpoint.poll_event() {
        match event {
            Event::Established(_) => {}
            Event::Data(data) => bytes += data.len(),
            Event::Rejected(failure) => return Err(failure.into()),
            Event::Closed(CloseReason::Failed(failure)) => return Err(failure.into()),
            Event::Closed(_) => return Err(DriveError::Ended { side: endpoint.side() }),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Each encryption adds the standard's overhead to each frame, and changes the payload.
    #[test]
    fn frames_are_encrypted_and_decrypted() {
        for (name, encryption) in LINKS {
            let Some([mut sender, mut receiver]) = ciphers(encryption).unwrap() else {
                assert_eq!(encryption, LinkEncryption::None);
                continue;
            };
            let frame = vec![0x5a; 1000];
            let mut payload = frame.clone();
            sender.seal(&mut payload).unwrap();
            assert_eq!(payload.len(), 1000 + encryption.overhead_bytes() as usize, "{name}");
            assert!(!payload.windows(16).any(|window| window == &frame[..16]), "{name}");
            receiver.open(&mut payload).unwrap();
            assert_eq!(payload, frame, "{name}");
        }
    }
}
