//! Bulk data after the handshake: what a cipher costs both sides, with and without WEP under it.
//!
//! Shin, Gupta and Myers timed transfers of 130 to 2048 KiB over SSL on an open and on a WEP-protected 802.11b network.
//! Here the server sends that much application data to the client over an established connection; each side's
//! time is its CPU time. With [`Link::Wep`] every frame is really enciphered and deciphered: a fresh 24-bit IV
//! in front of the key, RC4 over payload and CRC-32 (IEEE 802.11-1999, section 8.2).

use crate::measure::{MeasureError, Summary};
use crate::peers::{Pair, prepare};
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use shakedown_trace::driver::{DriveError, Loopback};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::{CloseReason, Endpoint, Event, Side, Suite};
use std::time::{Duration, Instant};

/// What lies under the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// Nothing that costs time.
    #[default]
    Open,
    /// Wired Equivalent Privacy, 104-bit key.
    Wep,
}

/// What a transfer costs.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct Transfer {
    /// Application bytes.
    pub data_bytes: usize,
    pub link: Link,
    /// Bytes on the link: records, and with WEP each frame's IV and ICV.
    pub wire_bytes: u64,
    pub frames: u64,
    /// Receives.
    pub client_us: Summary,
    /// Sends.
    pub server_us: Summary,
}

/// Application data is handed over in pieces of this size: a full TLS record, or what fits a datagram.
const PIECE_BYTES: usize = 16 * 1024;
const DATAGRAM_PIECE_BYTES: usize = 1400;
/// Payload of an 802.11 frame that carries an Ethernet-sized packet.
const FRAME_BYTES: usize = 1500;

/// Measures transfers of each size over one connection of a suite, `repeat` times each.
///
/// # Errors
/// [`MeasureError`] where the connection can't be made or fails.
pub fn measure(
    suite: &Suite,
    sizes_bytes: &[usize],
    link: Link,
    repeat: usize,
    settings: &Settings,
) -> Result<Vec<Transfer>, MeasureError> {
    let settings = Settings { instrumented: false, ..settings.clone() };
    let failed = |error| MeasureError::Handshake { suite: suite.to_string(), error };
    let peers = prepare(suite, &settings)?;
    let mut transfers = Vec::with_capacity(sizes_bytes.len());
    for &data_bytes in sizes_bytes {
        let (mut client_us, mut server_us) = (Vec::new(), Vec::new());
        let mut last = Passed::default();
        // The first transfer fills buffers and caches.
        for repetition in 0..=repeat {
            let mut pair = peers.pair()?;
            Loopback::new().handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ()).map_err(failed)?;
            last = transfer(suite, &mut pair, data_bytes, link)?;
            if repetition > 0 {
                client_us.push(last.client.as_secs_f64() * 1e6);
                server_us.push(last.server.as_secs_f64() * 1e6);
            }
        }
        transfers.push(Transfer {
            data_bytes,
            link,
            wire_bytes: last.wire_bytes,
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
    wire_bytes: u64,
    frames: u64,
}

/// Sends `data_bytes` from server to client and checks that all of it arrived.
fn transfer(suite: &Suite, pair: &mut Pair, data_bytes: usize, link: Link) -> Result<Passed, MeasureError> {
    let (client, server) = (pair.client.as_mut(), pair.server.as_mut());
    let datagrams = server.transport() == Transport::Datagram;
    let piece = vec![0x5a_u8; if datagrams { DATAGRAM_PIECE_BYTES } else { PIECE_BYTES }];
    let mut passed = Passed::default();
    let mut wep = Wep::default();
    let (mut sent, mut arrived) = (0, 0);
    let mut unit = Vec::new();
    while sent < data_bytes {
        let length = piece.len().min(data_bytes - sent);
        let start = Instant::now();
        let written = server.write(Time::ZERO, &piece[..length]);
        passed.server += start.elapsed();
        written.map_err(|error| MeasureError::Transfer {
            suite: suite.to_string(),
            reason: error.to_string(),
        })?;
        sent += length;
        loop {
            unit.clear();
            let start = Instant::now();
            let more = server.poll_transmit(Time::ZERO, &mut unit);
            let frames = if more { wep.seal(link, &unit) } else { Vec::new() };
            passed.server += start.elapsed();
            if !more {
                break;
            }
            passed.frames += frames.len() as u64;
            passed.wire_bytes += frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
            let start = Instant::now();
            let opened = wep.open(link, &frames);
            client.handle_input(Time::ZERO, &opened);
            let received = received(client);
            passed.client += start.elapsed();
            arrived +=
                received.map_err(|error| MeasureError::Handshake { suite: suite.to_string(), error })?;
        }
    }
    if arrived != data_bytes {
        let difference =
            format!("{data_bytes} bytes were sent and {arrived} arrived at the {}", Side::Client);
        return Err(MeasureError::WrongKind { suite: suite.to_string(), difference });
    }
    Ok(passed)
}

/// Takes the data that has arrived at an endpoint, and counts its bytes.
fn received(endpoint: &mut dyn Endpoint) -> Result<usize, DriveError> {
    let mut bytes = 0;
    while let Some(event) = endpoint.poll_event() {
        match event {
            Event::Established(_) => {}
            Event::Data(data) => bytes += data.len(),
            Event::Closed(CloseReason::Failed(failure)) => return Err(failure.into()),
            Event::Closed(_) => return Err(DriveError::Ended { side: endpoint.side() }),
        }
    }
    Ok(bytes)
}

/// Both ends of a WEP link with one key.
struct Wep {
    key: [u8; 13],
    iv: u32,
}

impl Default for Wep {
    fn default() -> Self {
        Self { key: *b"shakedown wep", iv: 0 }
    }
}

/// Bytes that WEP adds to a frame: IV and key number in front, ICV behind.
const WEP_HEADER_BYTES: usize = 4;
const WEP_ICV_BYTES: usize = 4;

impl Wep {
    /// Cuts a unit into frames; with WEP, each is enciphered under an IV of its own.
    fn seal(&mut self, link: Link, unit: &[u8]) -> Vec<Vec<u8>> {
        let frame = |payload: &[u8]| match link {
            Link::Open => payload.to_vec(),
            Link::Wep => {
                self.iv = (self.iv + 1) & 0x00ff_ffff;
                let [_, a, b, c] = self.iv.to_be_bytes();
                let mut frame = Vec::with_capacity(payload.len() + WEP_HEADER_BYTES + WEP_ICV_BYTES);
                frame.extend([a, b, c, 0]);
                frame.extend(payload);
                frame.extend(crc32fast::hash(payload).to_le_bytes());
                rc4(&[a, b, c], &self.key, &mut frame[WEP_HEADER_BYTES..]);
                frame
            }
        };
        unit.chunks(FRAME_BYTES).map(frame).collect()
    }

    /// Puts a unit together again; a frame whose check value is wrong is dropped, as a station would.
    fn open(&self, link: Link, frames: &[Vec<u8>]) -> Vec<u8> {
        if link == Link::Open {
            return frames.concat();
        }
        let mut unit = Vec::new();
        for frame in frames {
            let (header, sealed) = frame.split_at(WEP_HEADER_BYTES);
            let mut plain = sealed.to_vec();
            rc4(&header[..3], &self.key, &mut plain);
            let (payload, check) = plain.split_at(plain.len() - WEP_ICV_BYTES);
            if crc32fast::hash(payload).to_le_bytes() == check {
                unit.extend_from_slice(payload);
            }
        }
        unit
    }
}

/// RC4 under IV and key. Ours, because OpenSSL's key set-up would be most of a frame's cost, and it was not in
/// the drivers and cards that the papers measured.
fn rc4(iv: &[u8], key: &[u8], data: &mut [u8]) {
    let key: Vec<u8> = [iv, key].concat();
    let mut state: [u8; 256] = std::array::from_fn(|index| index as u8);
    let mut j = 0_u8;
    for i in 0..256 {
        j = j.wrapping_add(state[i]).wrapping_add(key[i % key.len()]);
        state.swap(i, j.into());
    }
    let (mut i, mut j) = (0_u8, 0_u8);
    for byte in data {
        i = i.wrapping_add(1);
        j = j.wrapping_add(state[usize::from(i)]);
        state.swap(i.into(), j.into());
        *byte ^= state[usize::from(state[usize::from(i)].wrapping_add(state[usize::from(j)]))];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vector of RC4 (key "Key", plaintext "Plaintext"), as published with the cipher's first description.
    #[test]
    fn rc4_matches_its_known_vector() {
        let mut data = *b"Plaintext";
        rc4(b"K", b"ey", &mut data);
        assert_eq!(data, [0xbb, 0xf3, 0x16, 0xe8, 0xd9, 0x40, 0xaf, 0x0a, 0xd3]);
    }

    #[test]
    fn wep_frames_open_again_and_damaged_ones_are_dropped() {
        let unit: Vec<u8> = (0..4000_u32).map(|number| number as u8).collect();
        let mut wep = Wep::default();
        let mut frames = wep.seal(Link::Wep, &unit);
        assert_eq!(frames.len(), 3);
        assert_eq!(frames.iter().map(Vec::len).sum::<usize>(), 4000 + 3 * 8);
        assert_ne!(frames[0][..4], frames[1][..4]);
        assert_eq!(wep.open(Link::Wep, &frames), unit);
        frames[1][100] ^= 1;
        assert_eq!(wep.open(Link::Wep, &frames).len(), 2500);
    }
}
