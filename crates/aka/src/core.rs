//! Queries between nodes of the core network: SGSN and HSS, new and old SGSN.
//!
//! Queries are not encrypted: operators protect these links by other means (3GPP TS 33.210), and in the laboratory all
//! nodes run on one host.

use crate::frame::{self, FrameError, Reader, Writer};
use crate::message::Cause;
use crate::names::{Imsi, Network, NodeName};
use crate::sessions::SessionRecord;
use shakedown_trace::endpoint::Time;

/// A query of an SGSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// To a home network's HSS: the cross-certificate that it issued for the serving network's authority.
    CrossCertificate { serving: Network },
    /// To a home network's HSS: whether the subscriber may attach here; the HSS stores the subscriber's location.
    Location {
        serving: Network,
        node: NodeName,
        imsi: Imsi,
        /// The leaf that the subscriber presented, DER; `None` if the subscriber resumed a session.
        certificate: Option<Vec<u8>>,
    },
    /// To the SGSN that assigned a temporary identity: its subscriber and session. An attacker who has overheard a
    /// temporary identity can cause this query, so the old SGSN keeps both.
    Context { ptmsi: u32 },
    /// The same after the subscriber has authenticated: the old SGSN returns subscriber and session, and deletes them.
    Claim {
        ptmsi: u32,
        /// The authenticated subscriber. If the temporary identity is another's by now, nothing is deleted.
        imsi: Imsi,
    },
}

impl Query {
    /// True for queries to SGSNs; all others are for HSSs.
    pub fn is_for_sgsn(&self) -> bool {
        matches!(self, Self::Context { .. } | Self::Claim { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    CrossCertificate(Vec<u8>),
    /// The subscriber may attach.
    Located,
    /// The subscriber with the temporary identity, and the session that can be resumed.
    Context {
        imsi: Imsi,
        home: Network,
        session: Option<(Vec<u8>, SessionRecord)>,
    },
    /// The temporary identity is not known.
    UnknownContext,
    Refused(Cause),
}

/// Reason for a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// No node is known for the query.
    Unknown,
    /// The node sent no answer, or an unreadable one.
    Silent,
}

mod kind {
    pub const CROSS_CERTIFICATE: u8 = 32;
    pub const LOCATION: u8 = 33;
    pub const CONTEXT: u8 = 34;
    pub const CLAIM: u8 = 35;
    pub const CERTIFIED: u8 = 48;
    pub const LOCATED: u8 = 49;
    pub const CONTEXT_FOUND: u8 = 50;
    pub const CONTEXT_UNKNOWN: u8 = 51;
    pub const REFUSED: u8 = 52;
}

impl Query {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let kind = match self {
            Self::CrossCertificate { serving } => {
                writer.bytes(serving.as_str().as_bytes());
                kind::CROSS_CERTIFICATE
            }
            Self::Location { serving, node, imsi, certificate } => {
                writer.bytes(serving.as_str().as_bytes()).bytes(node.as_str().as_bytes());
                writer.bytes(imsi.as_str().as_bytes()).u8(certificate.is_some().into());
                if let Some(certificate) = certificate {
                    writer.bytes(certificate);
                }
                kind::LOCATION
            }
            Self::Context { ptmsi } => {
                writer.u32(*ptmsi);
                kind::CONTEXT
            }
            Self::Claim { ptmsi, imsi } => {
                writer.u32(*ptmsi).bytes(imsi.as_str().as_bytes());
                kind::CLAIM
            }
        };
        let mut out = Vec::new();
        frame::put(&mut out, kind, &writer.0);
        out
    }

    pub fn read(kind: u8, body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader(body);
        let read = match kind {
            kind::CROSS_CERTIFICATE => {
                let serving = reader.text().and_then(|text| Network::new(text).ok());
                serving.and_then(|serving| reader.end(Self::CrossCertificate { serving }))
            }
            kind::LOCATION => (|| {
                let serving = Network::new(reader.text()?).ok()?;
                let node = NodeName::new(reader.text()?).ok()?;
                let imsi = Imsi::new(reader.text()?).ok()?;
                let certificate = if reader.flag()? { Some(reader.bytes()?.to_vec()) } else { None };
                reader.end(Self::Location { serving, node, imsi, certificate })
            })(),
            kind::CONTEXT => reader.u32().and_then(|ptmsi| reader.end(Self::Context { ptmsi })),
            kind::CLAIM => (|| {
                let ptmsi = reader.u32()?;
                let imsi = Imsi::new(reader.text()?).ok()?;
                reader.end(Self::Claim { ptmsi, imsi })
            })(),
            kind => return Err(FrameError::Kind { kind }),
        };
        read.ok_or(FrameError::Body { kind })
    }
}

impl Answer {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let kind = match self {
            Self::CrossCertificate(certificate) => {
                writer.bytes(certificate);
                kind::CERTIFIED
            }
            Self::Located => kind::LOCATED,
            Self::Context { imsi, home, session } => {
                writer.bytes(imsi.as_str().as_bytes()).bytes(home.as_str().as_bytes());
                writer.u8(session.is_some().into());
                if let Some((id, record)) = session {
                    let last_ns = u64::try_from(record.last.as_nanos()).unwrap_or(u64::MAX);
                    writer.bytes(id).bytes(&record.secret).u32(record.resumptions).u64(last_ns);
                    writer.bytes(&record.basis);
                }
                kind::CONTEXT_FOUND
            }
            Self::UnknownContext => kind::CONTEXT_UNKNOWN,
            Self::Refused(cause) => {
                writer.u8(cause.number());
                kind::REFUSED
            }
        };
        let mut out = Vec::new();
        frame::put(&mut out, kind, &writer.0);
        out
    }

    pub fn read(kind: u8, body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader(body);
        let read = match kind {
            kind::CERTIFIED => {
                let certificate = reader.bytes().map(<[u8]>::to_vec);
                certificate.and_then(|certificate| reader.end(Self::CrossCertificate(certificate)))
            }
            kind::LOCATED => reader.end(Self::Located),
            kind::CONTEXT_FOUND => (|| {
                let imsi = Imsi::new(reader.text()?).ok()?;
                let home = Network::new(reader.text()?).ok()?;
                let session = if reader.flag()? {
                    let id = reader.bytes()?.to_vec();
                    let secret = reader.bytes()?.to_vec();
                    let resumptions = reader.u32()?;
                    let last = Time::from_nanos(reader.u64()?);
                    let basis = reader.bytes()?.try_into().ok()?;
                    let (imsi, home) = (imsi.clone(), home.clone());
                    Some((id, SessionRecord { secret, imsi, home, resumptions, last, basis }))
                } else {
                    None
                };
                reader.end(Self::Context { imsi, home, session })
            })(),
            kind::CONTEXT_UNKNOWN => reader.end(Self::UnknownContext),
            kind::REFUSED => {
                let cause = reader.u8().and_then(Cause::from_number);
                cause.and_then(|cause| reader.end(Self::Refused(cause)))
            }
            kind => return Err(FrameError::Kind { kind }),
        };
        read.ok_or(FrameError::Body { kind })
    }
}
