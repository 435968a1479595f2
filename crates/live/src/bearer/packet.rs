//! Packets in the links: their length on the link, and the link's encryption.

use super::BearerRunError;
use serde::Deserialize;
use shakedown_link::cipher::{Ccmp, FrameCipher, MacHeader, Wep};
use shakedown_link::{Bearer, BearerSpec, Direction, Fate, LinkEncryption, Ns, Path, Purpose, Stream, Unit};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A bearer as its profile defines it, and the seed of its random draws.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Rates, delays, loss, queues, headers, silences, encryption.
    pub bearer: BearerSpec,
    #[serde(default)]
    pub seed: u64,
}

/// Memory limit of a bearer: further packets are dropped, whatever queue the profile has.
const MAX_HELD_BYTES: u64 = 64 << 20;

/// LLC and SNAP headers of an IPv4 packet in an 802.11 frame (RFC 1042).
pub(super) const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// MAC addresses of the station, the access point and the gateway, locally administered.
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ACCESS_POINT: [u8; 6] = [2, 0, 0, 0, 0, 2];
const GATEWAY: [u8; 6] = [2, 0, 0, 0, 0, 3];

pub(super) struct PacketLink {
    path: Path<Vec<u8>>,
    /// Lengths of the headers of IPv4 and UDP on the link, which may be compressed there.
    ip_bytes: u32,
    udp_bytes: u32,
    is_encrypted: bool,
    held_bytes: u64,
    /// Encrypted frames that the client's side sends and receives, for the capture.
    tapped: Option<Receiver<Vec<u8>>>,
    key: Option<Vec<u8>>,
}

pub(super) enum Offered {
    Link(Fate),
    /// Dropped because of `MAX_HELD_BYTES`.
    NoMemory,
}

impl PacketLink {
    pub(super) fn new(plan: &LinkPlan, tapped: bool) -> Result<Self, BearerRunError> {
        let bearer = Bearer::try_from(&plan.bearer)?;
        let mut link = Self {
            path: bearer.path(plan.seed, 0),
            ip_bytes: plan.bearer.ip_bytes,
            udp_bytes: plan.bearer.udp_bytes,
            is_encrypted: plan.bearer.link_encryption != LinkEncryption::None,
            held_bytes: 0,
            tapped: None,
            key: None,
        };
        link.encrypt(plan, tapped)?;
        Ok(link)
    }

    /// Adds ciphers to the links of both directions.
    fn encrypt(&mut self, plan: &LinkPlan, tapped: bool) -> Result<(), BearerRunError> {
        let mut random = Stream::of(plan.seed, 0, KEY);
        let mut secret: Vec<u8> = std::iter::repeat_with(|| random.next() as u8).take(16).collect();
        let up = MacHeader::data(ACCESS_POINT, STATION, GATEWAY);
        let mut down = MacHeader::data(STATION, ACCESS_POINT, GATEWAY);
        down.0[1] = 0x42; // flags Protected and FromDS
        let key: [u8; 16] = std::array::from_fn(|index| secret[index]);
        let end = |header: MacHeader| -> Result<Box<dyn FrameCipher>, BearerRunError> {
            Ok(match plan.bearer.link_encryption {
                LinkEncryption::Wep => Box::new(Wep::new(&key[..13], 0, 0)?),
                _ => Box::new(Ccmp::new(key, 0, header, 0)?),
            })
        };
        match plan.bearer.link_encryption {
            LinkEncryption::None => return Ok(()),
            LinkEncryption::Wep => secret.truncate(13),
            LinkEncryption::Ccmp => {}
        }
        let (sender, receiver) = channel();
        let tap = |cipher, header, is_sender: bool| -> Box<dyn FrameCipher> {
            let frames = (tapped && is_sender == (header == up)).then(|| sender.clone());
            Box::new(Tap { cipher, header, is_sender, frames, number: 0 })
        };
        for (direction, header) in [(Direction::Up, up), (Direction::Down, down)] {
            let sends = tap(end(header)?, header, true);
            let receives = tap(end(header)?, header, false);
            self.path.way(direction).inner.encrypt(sends, receives);
        }
        self.tapped = tapped.then_some(receiver);
        self.key = Some(secret);
        Ok(())
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    pub(super) fn offer(&mut self, direction: Direction, at: Ns, packet: &[u8]) -> Offered {
        if self.held_bytes + packet.len() as u64 > MAX_HELD_BYTES {
            return Offered::NoMemory;
        }
        let unit = Unit::new(self.bytes(packet), self.payload(packet));
        let fate = self.path.offer(direction, at, unit);
        self.held_bytes += match fate {
            Fate::Accepted => packet.len() as u64,
            Fate::Duplicated => 2 * packet.len() as u64,
            Fate::Dropped(_) => 0,
        };
        Offered::Link(fate)
    }

    /// Length of a packet on the link, where its headers (20 bytes of IPv4, 8 of UDP) may be shorter or longer.
    fn bytes(&self, packet: &[u8]) -> u32 {
        let is_udp = packet.get(9) == Some(&17);
        let udp = if is_udp { i64::from(self.udp_bytes) - 8 } else { 0 };
        let bytes = packet.len() as i64 + i64::from(self.ip_bytes) - 20 + udp;
        u32::try_from(bytes.max(1)).unwrap_or(u32::MAX)
    }

    fn payload(&self, packet: &[u8]) -> Vec<u8> {
        if self.is_encrypted { [&SNAP, packet].concat() } else { packet.to_vec() }
    }

    /// Offers `packet` as UDP; only its length matters.
    pub(super) fn offer_udp(&mut self, direction: Direction, at: Ns, packet: &[u8]) -> Offered {
        let mut packet = packet.to_vec();
        if let Some(protocol) = packet.get_mut(9) {
            *protocol = 17;
        }
        self.offer(direction, at, &packet)
    }

    /// Time at which everything offered has been sent.
    pub(super) fn free_at(&mut self, direction: Direction) -> Ns {
        self.path.way(direction).sender().free_at()
    }

    pub(super) fn next(&self) -> Option<Ns> {
        self.path.next().map(|(due, _)| due)
    }

    /// The next packet that is due by `until`.
    pub(super) fn take(&mut self, until: Ns) -> Option<(Ns, Direction, Vec<u8>)> {
        let Some((due, direction, unit)) = self.path.take(until) else {
            // Frames that fail verification never arrive; their bytes are released when the path is empty.
            if self.path.next().is_none() {
                self.held_bytes = 0;
            }
            return None;
        };
        let mut packet = unit.payload.unwrap_or_default();
        if self.is_encrypted {
            packet.drain(..SNAP.len().min(packet.len()));
        }
        self.held_bytes = self.held_bytes.saturating_sub(packet.len() as u64);
        Some((due, direction, packet))
    }

    /// Number of frames that failed verification at the far end.
    pub(super) fn rejected(&mut self, direction: Direction) -> u64 {
        self.path.way(direction).inner.rejected()
    }

    /// The frame that the client's side last sent or received, encrypted.
    pub(super) fn tapped(&mut self) -> Option<Vec<u8>> {
        self.tapped.as_ref().and_then(|frames| frames.try_iter().last())
    }
}

/// Purpose of the random draw of the key. Numbers below 100 belong to the links.
const KEY: Purpose = Purpose(100);

/// Wraps a cipher and copies encrypted frames to the capture.
struct Tap {
    cipher: Box<dyn FrameCipher>,
    header: MacHeader,
    is_sender: bool,
    frames: Option<Sender<Vec<u8>>>,
    number: u16,
}

impl Tap {
    fn see(&mut self, body: &[u8]) {
        if let Some(frames) = &self.frames {
            let mut header = self.header.0;
            // The sequence number. CCMP authenticates only the fragment number, which is 0.
            header[22..].copy_from_slice(&(self.number << 4).to_le_bytes());
            self.number = self.number.wrapping_add(1);
            // The channel's receiver lives as long as the link.
            let _ = frames.send([&header, body].concat());
        }
    }
}

impl FrameCipher for Tap {
    fn seal(&mut self, frame: &mut Vec<u8>) -> Result<(), shakedown_link::cipher::CipherError> {
        self.cipher.seal(frame)?;
        if self.is_sender {
            self.see(frame);
        }
        Ok(())
    }

    fn open(&mut self, frame: &mut Vec<u8>) -> Result<(), shakedown_link::cipher::CipherError> {
        if !self.is_sender {
            self.see(frame);
        }
        self.cipher.open(frame)
    }
}
