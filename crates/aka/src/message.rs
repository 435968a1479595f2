//! Messages between mobile and SGSN (the paper's figures 2, 4 and 5).
//!
//! | message | from | protection |
//! | --- | --- | --- |
//! | [`AttachRequest`](Message::AttachRequest) | mobile | none: home network, perhaps a temporary identity |
//! | [`Tls`](Message::Tls) | both | TLS records, not protected further |
//! | [`Identity`](Message::Identity) | mobile | TLS; after a full handshake only |
//! | [`AttachAccept`](Message::AttachAccept) | SGSN | TLS |
//! | [`Reject`](Message::Reject) | SGSN | TLS, or none before the handshake is over |
//! | [`Protected`](Message::Protected) | both | derived keys: attach complete, then user data |

use crate::frame::{self, FrameError, Reader, Writer};
use crate::names::{Imsi, Network, NodeName, Temporary};

shakedown_trace::spelled! {
    /// Cause of a rejected attach.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Cause {
        /// No cross-certificate between home and serving network.
        NoRoamingAgreement = "no_roaming_agreement",
        /// The home network does not know the subscriber, or not with this certificate.
        UnknownSubscriber = "unknown_subscriber",
        /// The home network has barred the subscriber.
        Barred = "barred",
        /// An unexpected message, or an invalid one.
        Protocol = "protocol",
        Handshake = "handshake",
        /// Another node does not answer, or the SGSN's own state cannot be used.
        NetworkFailure = "network_failure",
        /// The SGSN knows no HSS for this home network.
        UnknownHome = "unknown_home",
    }
}

impl Cause {
    /// Its number on the wire, from 1.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number.checked_sub(1)?)).map(|row| row.0)
    }
}

/// Kind of traffic that derived keys protect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// Messages between mobile and network.
    Signalling,
    User,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    AttachRequest { home: Network, temporary: Option<Temporary> },
    Tls(Vec<u8>),
    Identity(Imsi),
    AttachAccept(Temporary),
    Reject(Cause),
    Protected { plane: Plane, sealed: Vec<u8> },
}

mod kind {
    pub const ATTACH_REQUEST: u8 = 1;
    pub const TLS: u8 = 2;
    pub const IDENTITY: u8 = 3;
    pub const ATTACH_ACCEPT: u8 = 4;
    pub const REJECT: u8 = 5;
    pub const SIGNALLING: u8 = 6;
    pub const USER: u8 = 7;
}

/// Maximum number of TLS bytes in a message; longer flights are split.
pub const MAX_TLS_BYTES: usize = 16_384;
/// Length that protection adds to a message: the tag of AES-GCM.
pub const TAG_BYTES: usize = 16;
/// Maximum length of the user data in a protected message.
pub const MAX_DATA_BYTES: usize = frame::MAX_BODY_BYTES - TAG_BYTES;

fn temporary(writer: &mut Writer, temporary: &Temporary) {
    writer.bytes(temporary.node.as_str().as_bytes()).u32(temporary.ptmsi);
}

fn read_temporary(reader: &mut Reader<'_>) -> Option<Temporary> {
    Some(Temporary { node: NodeName::new(reader.text()?).ok()?, ptmsi: reader.u32()? })
}

impl Message {
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::default();
        let kind = match self {
            Self::AttachRequest { home, temporary: given } => {
                writer.bytes(home.as_str().as_bytes()).u8(given.is_some().into());
                if let Some(given) = given {
                    temporary(&mut writer, given);
                }
                kind::ATTACH_REQUEST
            }
            Self::Tls(bytes) => {
                return bytes.chunks(MAX_TLS_BYTES).for_each(|chunk| frame::put(out, kind::TLS, chunk));
            }
            Self::Identity(imsi) => {
                writer.bytes(imsi.as_str().as_bytes());
                kind::IDENTITY
            }
            Self::AttachAccept(given) => {
                temporary(&mut writer, given);
                kind::ATTACH_ACCEPT
            }
            Self::Reject(cause) => {
                writer.u8(cause.number());
                kind::REJECT
            }
            Self::Protected { plane, sealed } => {
                let kind = if *plane == Plane::Signalling { kind::SIGNALLING } else { kind::USER };
                return frame::put(out, kind, sealed);
            }
        };
        frame::put(out, kind, &writer.0);
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    pub fn read(kind: u8, body: Vec<u8>) -> Result<Self, FrameError> {
        let mut reader = Reader(&body);
        let read = match kind {
            kind::ATTACH_REQUEST => (|| {
                let home = Network::new(reader.text()?).ok()?;
                let temporary = if reader.flag()? { Some(read_temporary(&mut reader)?) } else { None };
                reader.end(Self::AttachRequest { home, temporary })
            })(),
            kind::TLS => (!body.is_empty()).then_some(Self::Tls(body)),
            kind::IDENTITY => (|| {
                let imsi = Imsi::new(reader.text()?).ok()?;
                reader.end(Self::Identity(imsi))
            })(),
            kind::ATTACH_ACCEPT => {
                read_temporary(&mut reader).and_then(|given| reader.end(Self::AttachAccept(given)))
            }
            kind::REJECT => {
                let cause = reader.u8().and_then(Cause::from_number);
                cause.and_then(|cause| reader.end(Self::Reject(cause)))
            }
            kind::SIGNALLING => Some(Self::Protected { plane: Plane::Signalling, sealed: body }),
            kind::USER => Some(Self::Protected { plane: Plane::User, sealed: body }),
            kind => return Err(FrameError::Kind { kind }),
        };
        read.ok_or(FrameError::Body { kind })
    }
}
