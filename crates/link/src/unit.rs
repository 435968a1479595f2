//! Units that links carry, and their fates.

/// A carried unit: its length on the wire and, optionally, its payload.
///
/// The length is separate from the payload, because headers outside the payload (IP, TCP, link) also take time, and
/// because a simulator has no payload bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit<P = Vec<u8>> {
    /// Length on the wire so far, in bytes; links add to it.
    pub bytes: u32,
    pub fragment: Fragment,
    pub payload: Option<P>,
}

impl<P> Unit<P> {
    pub fn new(bytes: u32, payload: P) -> Self {
        Self { bytes, fragment: Fragment::WHOLE, payload: Some(payload) }
    }
}

/// Position of a fragment in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub of: u32,
    /// Index of the fragment, from 0.
    pub index: u16,
    pub count: u16,
}

impl Fragment {
    /// A unit that is not fragmented.
    pub const WHOLE: Self = Self { of: 0, index: 0, count: 1 };
}

/// The payload of a unit.
///
/// The defaults are for payloads that only represent bytes, such as a simulator's packets: there is nothing to encrypt,
/// each fragment carries a copy, and any of the copies is the whole payload.
pub trait Payload: Clone {
    /// True if it represents several packets, each within the MTU, that are carried as one unit.
    fn is_super_packet(&self) -> bool {
        false
    }

    fn frame(&mut self) -> Option<&mut Vec<u8>> {
        None
    }

    /// Splits the payload into `count` parts.
    fn cut(self, count: u16) -> Vec<Self> {
        vec![self; count.into()]
    }

    /// Joins the parts, which are in order.
    fn join(mut parts: Vec<Self>) -> Option<Self> {
        parts.pop()
    }
}

impl Payload for () {}

impl Payload for Vec<u8> {
    fn frame(&mut self) -> Option<&mut Vec<u8>> {
        Some(self)
    }

    fn cut(self, count: u16) -> Vec<Self> {
        let each = self.len().div_ceil(count.into()).max(1);
        let mut parts: Vec<Self> = self.chunks(each).map(<[u8]>::to_vec).collect();
        parts.resize(count.into(), Self::new());
        parts
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        Some(parts.concat())
    }
}

/// The fate of an offered unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    Accepted,
    /// It is in flight twice.
    Duplicated,
    /// It will not arrive. The sender does not know.
    Dropped(Drop),
}

/// Why a unit will not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    Lost,
    QueueFull,
    /// It needs more fragments than can be numbered.
    TooLong,
    /// It could not be encrypted.
    Unencryptable,
}

impl Drop {
    /// Every cause, in order.
    pub const ALL: [Self; 4] = [Self::Lost, Self::QueueFull, Self::TooLong, Self::Unencryptable];

    /// The word used in files and on screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::QueueFull => "queue-full",
            Self::TooLong => "too-long",
            Self::Unencryptable => "unencryptable",
        }
    }
}
