//! Errors, and the alerts that report them to the peer.

use crate::alert::{Alert, AlertDescription};
use crate::certificate::{CertificateError, X509Error};
use crate::codec::{DecodeError, EncodeError};
use crate::config::Settings;
use crate::crypto::CryptoError;
use crate::numbers::KeyExchangeSuite;
use crate::observer::Message;
use crate::parameters::ParameterError;
use crate::protection::{RecordError, SequenceExhausted};

/// Why a handshake or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("malformed message: {0}")]
    Malformed(#[from] DecodeError),
    #[error("received {received} while waiting for {expected}")]
    UnexpectedMessage { expected: &'static str, received: Message },
    #[error("the flight ends where {expected} should follow")]
    Incomplete { expected: &'static str },
    #[error("the peer uses version {version}; accepted: 1")]
    Version { version: u8 },
    #[error("no cipher suite is common to both sides")]
    NoCommonCipherSuite,
    #[error("the client does not offer uncompressed records")]
    NoCommonCompression,
    #[error("none of the offered key exchanges can be served")]
    NoCommonKeyExchange,
    #[error("none of the client's offers would authenticate it, which this server requires")]
    CannotAuthenticate,
    #[error("the client trusts no issuer of our certificates")]
    NotTrustedByClient,
    #[error("the server chose a {what} that was not offered")]
    NotOffered { what: &'static str },
    /// The server selected a mode without explicit sequence numbers, which datagrams require.
    #[error("the server does not number its records explicitly")]
    SequenceMode,
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    #[error("a key of {bits} bits exceeds the limit of {suite}")]
    KeyTooLarge { bits: u32, suite: KeyExchangeSuite },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("the client presents no certificate")]
    NoClientCertificate,
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    #[error("the peer's Finished does not match this handshake")]
    FinishedMismatch,
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot encode a message: {0}")]
    Encode(#[from] EncodeError),
    #[error("the configuration lacks {what}")]
    Configuration { what: &'static str },
    #[error(transparent)]
    SequenceExhausted(#[from] SequenceExhausted),
}

impl Error {
    /// The alert that reports this error to the peer.
    pub fn alert(&self) -> Alert {
        use AlertDescription as D;
        Alert::fatal(match self {
            Self::Malformed(_) | Self::Parameters(ParameterError::Malformed(_)) => D::DecodeError,
            Self::UnexpectedMessage { .. } | Self::Incomplete { .. } => D::UnexpectedMessage,
            Self::Version { .. } => D::ProtocolVersion,
            Self::NoCommonCipherSuite | Self::NoCommonCompression | Self::NoClientCertificate => {
                D::HandshakeFailure
            }
            Self::NoCommonKeyExchange => D::UnknownKeyId,
            Self::CannotAuthenticate => D::InsufficientSecurity,
            Self::NotTrustedByClient => D::UnknownCa,
            Self::NotOffered { .. } | Self::SequenceMode | Self::KeyTooLarge { .. } => D::IllegalParameter,
            Self::Parameters(_) => D::UnknownParameterIndex,
            Self::Certificate(error) => certificate_alert(error),
            Self::Crypto(error) => crypto_alert(error),
            Self::FinishedMismatch => D::DecryptError,
            Self::Record(RecordError::BadPadding | RecordError::BadLength) => D::DecryptionFailed,
            Self::Record(RecordError::BadRecord | RecordError::Replayed) => D::BadRecordMac,
            Self::Encode(_) | Self::Configuration { .. } | Self::SequenceExhausted(_) => D::InternalError,
        })
    }
}

impl Error {
    /// The alert for a rejected flight of a handshake.
    ///
    /// A record that cannot be decrypted gets a *warning* in clear text, usually `bad_record_mac`, even in place of
    /// Finished. The specification gives these alerts this level. An attacker may have sent the record, so neither side
    /// ends the handshake because of it. A Finished that is protected with the keys of the handshake but does not match
    /// its messages gets the fatal alert `decrypt_error`, like every other error of a peer that has the keys.
    pub(crate) fn flight_alert(&self, settings: &Settings) -> Alert {
        match self {
            Self::Record(error) => Alert::warning(record_alert(*error, settings)),
            other => other.alert(),
        }
    }
}

/// The alert for a record that could not be decrypted: `bad_record_mac`, unless the settings distinguish the
/// specification's two alerts.
pub(crate) fn record_alert(error: RecordError, settings: &Settings) -> AlertDescription {
    match error {
        RecordError::BadPadding | RecordError::BadLength if settings.distinguish_record_errors => {
            AlertDescription::DecryptionFailed
        }
        _ => AlertDescription::BadRecordMac,
    }
}

fn certificate_alert(error: &CertificateError) -> AlertDescription {
    use AlertDescription as D;
    match error {
        CertificateError::Malformed(_) => D::DecodeError,
        CertificateError::NotValidNow { .. } => D::CertificateExpired,
        CertificateError::UnknownIssuer { .. } => D::UnknownCa,
        CertificateError::Crypto(_)
        | CertificateError::NotAuthority { .. }
        | CertificateError::Missing
        | CertificateError::WrongName { .. } => D::BadCertificate,
        CertificateError::X509(X509Error::Malformed(_)) => D::BadCertificate,
        CertificateError::X509(_)
        | CertificateError::Format
        | CertificateError::Unsuitable { .. }
        | CertificateError::Usage { .. } => D::UnsupportedCertificate,
        CertificateError::Parameters(_) => D::UnknownParameterIndex,
        CertificateError::IssuerKey | CertificateError::Encode(_) => D::InternalError,
    }
}

fn crypto_alert(error: &CryptoError) -> AlertDescription {
    use AlertDescription as D;
    match error {
        CryptoError::InvalidKey | CryptoError::DegenerateSecret => D::IllegalParameter,
        CryptoError::BadSignature | CryptoError::BadCiphertext => D::DecryptError,
        CryptoError::WrongKeyKind | CryptoError::Provider(_) => D::InternalError,
    }
}

/// Why data was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error("the connection is not open")]
    NotOpen,
    /// The data does not fit into a datagram. Data is never fragmented.
    #[error("{length} bytes do not fit into a datagram, at most {max} do")]
    TooLong { length: usize, max: usize },
    /// The data is empty.
    #[error("there is nothing to send")]
    Empty,
    #[error(transparent)]
    SequenceExhausted(#[from] SequenceExhausted),
}
