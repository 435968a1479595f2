//! Packets on their way: what they weigh on the link, and what the link puts around them.

use super::BearerRunError;
use serde::Deserialize;
use shakedown_link::cipher::{Ccmp, FrameCipher, MacHeader, Wep};
use shakedown_link::{Bearer, BearerSpec, Direction, Fate, LinkEncryption, Ns, Path, Purpose, Stream, Unit};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A bearer as a profile has it, and the seed of everything random in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Rates, delays, loss, queues, headers, silences, encryption.
    pub bearer: BearerSpec,
    /// Names every random draw.
    #[serde(default)]
    pub seed: u64,
}

/// Bytes under way or waiting, beyond which packets are dropped whatever the profile says: the memory that a bearer takes.
const MAX_HELD_BYTES: u64 = 64 << 20;

/// LLC and SNAP headers of an IPv4 packet in an 802.11 frame (RFC 1042).
pub(super) const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// The station's, the access point's and the gateway's addresses, locally administered.
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ACCESS_POINT: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BEYOND: [u8; 6] = [2, 0, 0, 0, 0, 3];

pub(super) struct PacketLink {
    path: Path<Vec<u8>>,
    /// Lengths of the headers of IPv4 and UDP on the link, which may be compressed there.
    ip_bytes: u32,
    udp_bytes: u32,
    is_encrypted: bool,
    held_bytes: u64,
    /// What the client's side of an encrypted link sends and receives, for a capture.
    tapped: Option<Receiver<Vec<u8>>>,
    key: Option<Vec<u8>>,
}

pub(super) enum Offered {
    Link(Fate),
    /// Too much was held already.
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

    /// Puts real ciphers into the links of both directions.
    fn encrypt(&mut self, plan: &LinkPlan, tapped: bool) -> Result<(), BearerRunError> {
        let mut random = Stream::of(plan.seed, 0, KEY);
        let mut secret: Vec<u8> = std::iter::repeat_with(|| random.next() as u8).take(16).collect();
        let up = MacHeader::data(ACCESS_POINT, STATION, BEYOND);
        let mut down = MacHeader::data(STATION, ACCESS_POINT, BEYOND);
        down.0[1] = 0x42; // from the distribution system, where an access point's frames come from
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

    /// What a packet weighs on the link: of its headers, of 20 and 8 bytes, as much as is sent there.
    fn bytes(&self, packet: &[u8]) -> u32 {
        let is_udp = packet.get(9) == Some(&17);
        let udp = if is_udp { i64::from(self.udp_bytes) - 8 } else { 0 };
        let bytes = packet.len() as i64 + i64::from(self.ip_bytes) - 20 + udp;
        u32::try_from(bytes.max(1)).unwrap_or(u32::MAX)
    }

    fn payload(&self, packet: &[u8]) -> Vec<u8> {
        if self.is_encrypted { [&SNAP, packet].concat() } else { packet.to_vec() }
    }

    /// Offers a packet of UDP without a written header: for its length.
    pub(super) fn offer_udp(&mut self, direction: Direction, at: Ns, packet: &[u8]) -> Offered {
        let mut packet = packet.to_vec();
        if let Some(protocol) = packet.get_mut(9) {
            *protocol = 17;
        }
        self.offer(direction, at, &packet)
    }

    /// When everything offered has been sent.
    pub(super) fn free_at(&mut self, direction: Direction) -> Ns {
        self.path.way(direction).sender().free_at()
    }

    pub(super) fn next(&self) -> Option<Ns> {
        self.path.next().map(|(due, _)| due)
    }

    /// The next packet that is due until then.
    pub(super) fn take(&mut self, until: Ns) -> Option<(Ns, Direction, Vec<u8>)> {
        let Some((due, direction, unit)) = self.path.take(until) else {
            // What did not verify at the far end never comes out: where nothing is under way, nothing is held.
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

    /// Frames that did not verify at the far end.
    pub(super) fn rejected(&mut self, direction: Direction) -> u64 {
        self.path.way(direction).inner.rejected()
    }

    /// The frame that the client's side last sent or received, encrypted.
    pub(super) fn tapped(&mut self) -> Option<Vec<u8>> {
        self.tapped.as_ref().and_then(|frames| frames.try_iter().last())
    }
}

/// What the link's key is drawn for; numbers below 100 belong to links.
const KEY: Purpose = Purpose(100);

/// A cipher whose frames are seen by a capture, as they are in the air.
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
            // The sequence number; CCMP authenticates only the fragment's, which is 0.
            header[22..].copy_from_slice(&(self.number << 4).to_le_bytes());
            self.number = self.number.wrapping_add(1);
            // The other end of the channel lives as long as the link.
            let _ = frames.send([&header, body].concat());
        }
    }
}

impl FrameCipher for Tap {
    fn overhead_bytes(&self) -> u32 {
        self.cipher.overhead_bytes()
    }

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
