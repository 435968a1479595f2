//! Alerts, and the checksum that refers to a record of the peer (§10.2).

use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer};
use crate::numbers::assigned;
use crate::record::Records;

assigned! {
    AlertLevel, "alert level":
    Warning = 1, "warning";
    Critical = 2, "critical";
    Fatal = 3, "fatal";
}

assigned! {
    AlertDescription, "alert description":
    ConnectionCloseNotify = 0, "connection_close_notify";
    SessionCloseNotify = 1, "session_close_notify";
    NoConnection = 5, "no_connection";
    UnexpectedMessage = 10, "unexpected_message";
    TimeRequired = 11, "time_required";
    BadRecordMac = 20, "bad_record_mac";
    DecryptionFailed = 21, "decryption_failed";
    RecordOverflow = 22, "record_overflow";
    DecompressionFailure = 30, "decompression_failure";
    HandshakeFailure = 40, "handshake_failure";
    BadCertificate = 42, "bad_certificate";
    UnsupportedCertificate = 43, "unsupported_certificate";
    CertificateRevoked = 44, "certificate_revoked";
    CertificateExpired = 45, "certificate_expired";
    CertificateUnknown = 46, "certificate_unknown";
    IllegalParameter = 47, "illegal_parameter";
    UnknownCa = 48, "unknown_ca";
    AccessDenied = 49, "access_denied";
    DecodeError = 50, "decode_error";
    DecryptError = 51, "decrypt_error";
    UnknownKeyId = 52, "unknown_key_id";
    DisabledKeyId = 53, "disabled_key_id";
    KeyExchangeDisabled = 54, "key_exchange_disabled";
    SessionNotReady = 55, "session_not_ready";
    UnknownParameterIndex = 56, "unknown_parameter_index";
    DuplicateFinishedReceived = 57, "duplicate_finished_received";
    ExportRestriction = 60, "export_restriction";
    ProtocolVersion = 70, "protocol_version";
    InsufficientSecurity = 71, "insufficient_security";
    InternalError = 80, "internal_error";
    UserCanceled = 90, "user_canceled";
    NoRenegotiation = 100, "no_renegotiation";
}

/// A level and a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alert {
    pub level: AlertLevel,
    pub description: AlertDescription,
}

impl Alert {
    pub fn warning(description: AlertDescription) -> Self {
        Self { level: AlertLevel::Warning, description }
    }

    /// An alert that ends the connection, not the session.
    pub fn critical(description: AlertDescription) -> Self {
        Self { level: AlertLevel::Critical, description }
    }

    /// An alert that ends connection and session.
    pub fn fatal(description: AlertDescription) -> Self {
        Self { level: AlertLevel::Fatal, description }
    }

    pub fn ends_connection(self) -> bool {
        self.level != AlertLevel::Warning
    }
}

impl core::fmt::Display for Alert {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{} ({})", self.description, self.level)
    }
}

/// XOR of the 4-byte blocks of a record, header included, zero-padded at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Checksum(pub [u8; 4]);

impl Checksum {
    /// The checksum that a side sends before it has received a record.
    pub const NOTHING: Self = Self([0; 4]);

    /// The checksum of a record as it is on the wire.
    pub fn of(record: &[u8]) -> Self {
        let (blocks, end) = record.as_chunks::<4>();
        let mut last = [0; 4];
        last[..end.len()].copy_from_slice(end);
        let sum = blocks.iter().fold(u32::from_ne_bytes(last), |sum, block| sum ^ u32::from_ne_bytes(*block));
        Self(sum.to_ne_bytes())
    }
}

/// Number of sent records to which an alert may refer.
const REMEMBERED: usize = 32;

/// The checksums of the last records sent, for comparison with those of received alerts.
#[derive(Debug, Clone, Default)]
pub struct SentChecksums {
    sums: [Checksum; REMEMBERED],
    count: usize,
}

impl SentChecksums {
    pub fn remember(&mut self, datagram: &[u8]) {
        for record in Records::new(datagram).map_while(Result::ok) {
            self.sums[self.count % REMEMBERED] = Checksum::of(record.raw);
            self.count += 1;
        }
    }

    /// Whether a checksum is that of a remembered record.
    pub fn matches(&self, checksum: Checksum) -> bool {
        self.sums[..self.count.min(REMEMBERED)].contains(&checksum)
    }
}

/// Whether an alert is sent in clear text even if keys exist (§10.2.2): it is about an undecryptable record, so the
/// peer may have other keys.
pub(crate) fn is_clear_text(description: AlertDescription) -> bool {
    matches!(
        description,
        AlertDescription::NoConnection
            | AlertDescription::BadRecordMac
            | AlertDescription::DecryptionFailed
            | AlertDescription::RecordOverflow
            | AlertDescription::DecompressionFailure
    )
}

/// An alert as it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertMessage {
    pub alert: Alert,
    pub checksum: Checksum,
}

impl Codec for AlertMessage {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(self.alert.level.number());
        to.u8(self.alert.description.number());
        to.raw(&self.checksum.0);
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            alert: Alert {
                level: AlertLevel::from_number(from.u8("alert level")?)?,
                description: AlertDescription::from_number(from.u8("alert description")?)?,
            },
            checksum: Checksum(from.array("alert checksum")?),
        })
    }
}
