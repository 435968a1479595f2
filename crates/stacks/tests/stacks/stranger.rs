//! An attacker on the path without keys, who changes one datagram of a WTLS handshake. The tests over sockets
//! (crates/live) use it too.

use shakedown_trace::Side;

/// Every key exchange, with and without a client's certificate; full, resumed and optimised.
pub const SUITES: &[&str] = &[
    "wtls/rsa/rsa1024/server",
    "wtls/rsa/rsa1024/requested",
    "wtls/rsa/rsa1024/mutual",
    "wtls/rsa/rsa1024/mutual/resumed",
    "wtls/rsa_anon/rsa1024",
    "wtls/dh_anon+dh512",
    "wtls/dh_anon+dh768/resumed",
    "wtls/ecdh_anon+160p",
    "wtls/ecdh_ecdsa/160p/server",
    "wtls/ecdh_ecdsa/160p/mutual",
    "wtls/ecdh_ecdsa/160p/mutual/optimized",
    "wtls/ecdh_ecdsa/160p/mutual/resumed",
    "wtls/shared_secret",
];

/// Types of WTLS handshake messages, assigned and unassigned.
const MESSAGES: [u8; 12] = [0, 1, 2, 11, 12, 13, 14, 15, 16, 20, 21, 255];
/// Descriptions of alerts, assigned and unassigned.
const ALERTS: [u8; 9] = [0, 1, 10, 20, 40, 42, 48, 100, 255];
/// One bit is flipped in each group of this many bits.
const BITS_APART: usize = 41;

/// A record's type, sequence number and length.
const HEADER_BYTES: usize = 5;

/// The datagrams that arrive instead of a sent one, with their receivers.
pub type Arrivals = Vec<(Side, Vec<u8>)>;

#[derive(Clone, Debug)]
pub enum Change {
    Forged { to: Side, datagram: Vec<u8>, first: bool },
    Cut { length: usize, replaced: bool },
    Flipped { bit: usize, replaced: bool },
    Twice,
    Reflected,
    EarlierAgain,
    AfterTheNext,
}

/// A change of one datagram, identified by its number and its sender.
#[derive(Clone, Debug)]
pub struct Case {
    pub at: usize,
    pub from: Side,
    pub change: Change,
}

/// A plaintext record with a sequence number and a length.
fn plain(content: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[0xc0 | content, 0, 0], &length[..], body].concat()
}

/// Records of every content type that can be built without keys.
fn forgeries() -> Vec<Vec<u8>> {
    let mut all = vec![plain(1, &[1]), plain(4, b"data"), plain(3, &[]), vec![0xc3], vec![0xff; 40]];
    for message in MESSAGES {
        for body in [&[][..], &[0], &[0x5a; 35]] {
            let length = u16::try_from(body.len()).unwrap().to_be_bytes();
            all.push(plain(3, &[&[message], &length[..], body].concat()));
        }
    }
    for description in ALERTS {
        for level in [1, 2, 3] {
            all.push(plain(2, &[level, description, 0, 0, 0, 0]));
        }
    }
    all
}

/// Offsets of the records of a datagram.
pub fn headers(datagram: &[u8]) -> Vec<usize> {
    let mut headers = Vec::new();
    let mut at = 0;
    while let Some([_, _, _, high, low]) = datagram.get(at..at + HEADER_BYTES) {
        headers.push(at);
        at += HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
    }
    headers
}

/// All changes that are tested for a handshake of these datagrams.
pub fn cases(datagrams: &[(Side, Vec<u8>)]) -> Vec<Case> {
    let forgeries = forgeries();
    let mut cases = Vec::new();
    for (at, (from, datagram)) in datagrams.iter().enumerate() {
        let mut add = |change| cases.push(Case { at, from: *from, change });
        for to in Side::BOTH {
            for forged in &forgeries {
                for first in [true, false] {
                    add(Change::Forged { to, datagram: forged.clone(), first });
                }
            }
        }
        for replaced in [true, false] {
            for length in [0, 1, 2, datagram.len() / 2, datagram.len() - 1] {
                add(Change::Cut { length, replaced });
            }
            for bit in (0..datagram.len() * 8).step_by(BITS_APART) {
                add(Change::Flipped { bit, replaced });
            }
        }
        for header in headers(datagram) {
            for bit in 8 * header..8 * (header + HEADER_BYTES) {
                add(Change::Flipped { bit, replaced: false });
            }
        }
        for change in [Change::Twice, Change::Reflected, Change::EarlierAgain, Change::AfterTheNext] {
            add(change);
        }
    }
    cases
}

/// Passes on one handshake's datagrams, and changes one.
pub struct Stranger<'a> {
    pub case: &'a Case,
    earlier: Vec<(Side, Vec<u8>)>,
    held: Option<(Side, Vec<u8>)>,
    /// The change has been made.
    pub done: bool,
}

impl<'a> Stranger<'a> {
    pub fn new(case: &'a Case) -> Self {
        Self { case, earlier: Vec::new(), held: None, done: false }
    }

    /// The datagrams that arrive instead of the next one.
    pub fn pass(&mut self, from: Side, datagram: &[u8]) -> Arrivals {
        let whole = (from.peer(), datagram.to_vec());
        // On a busy machine the other side may retransmit before the datagram to change is sent.
        let is_turn = !self.done && self.earlier.len() >= self.case.at && from == self.case.from;
        let arrivals = if is_turn {
            self.done = true;
            self.change(from, whole.clone())
        } else {
            std::iter::once(whole.clone()).chain(self.held.take()).collect()
        };
        self.earlier.push(whole);
        arrivals
    }

    fn change(&mut self, from: Side, whole: (Side, Vec<u8>)) -> Arrivals {
        let altered = |datagram: Vec<u8>, replaced| {
            let altered = (from.peer(), datagram);
            if replaced { vec![altered] } else { vec![altered, whole.clone()] }
        };
        match self.case.change {
            Change::Forged { to, ref datagram, first } => {
                let forged = (to, datagram.clone());
                if first { vec![forged, whole] } else { vec![whole, forged] }
            }
            Change::Cut { length, replaced } => {
                altered(whole.1[..length.min(whole.1.len())].to_vec(), replaced)
            }
            // Signatures differ in length, so the bit may be beyond the end.
            Change::Flipped { bit, replaced } => {
                let mut flipped = whole.1.clone();
                let byte = (bit / 8).min(flipped.len() - 1);
                flipped[byte] ^= 1 << (bit % 8);
                altered(flipped, replaced)
            }
            Change::Twice => vec![whole.clone(), whole],
            Change::Reflected => vec![(from, whole.1.clone()), whole],
            Change::EarlierAgain => self.earlier.iter().cloned().chain([whole]).collect(),
            Change::AfterTheNext => {
                self.held = Some(whole);
                vec![]
            }
        }
    }
}
