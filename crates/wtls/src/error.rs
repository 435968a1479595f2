//! What can go wrong, and which alert tells the peer.

use crate::alert::{Alert, AlertDescription};
use crate::certificate::{CertificateError, X509Error};
use crate::codec::{DecodeError, EncodeError};
use crate::config::Settings;
use crate::connection::record_alert;
use crate::crypto::CryptoError;
use crate::numbers::KeyExchangeSuite;
use crate::observer::Message;
use crate::parameters::ParameterError;
use crate::protection::{RecordError, SequenceExhausted};

/// Why a handshake or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The peer sent a malformed message.
    #[error("malformed message: {0}")]
    Malformed(#[from] DecodeError),
    /// The peer sent a message out of turn.
    #[error("received {received} while waiting for {expected}")]
    UnexpectedMessage {
        /// What was expected.
        expected: &'static str,
        /// What came.
        received: Message,
    },
    /// The peer's flight ended too early.
    #[error("the flight ends where {expected} should follow")]
    Incomplete {
        /// What was expected.
        expected: &'static str,
    },
    /// The peer speaks another version.
    #[error("the peer speaks version {version}, ours is 1")]
    Version {
        /// The peer's version.
        version: u8,
    },
    /// No cipher suite suits both.
    #[error("no cipher suite is common to both sides")]
    NoCommonCipherSuite,
    /// The client insists on compression.
    #[error("the client does not offer to go without compression")]
    NoCommonCompression,
    /// No offered key exchange can be served.
    #[error("none of the offered key exchanges can be served")]
    NoCommonKeyExchange,
    /// The server must know who the client is, and nothing that the client offers would prove it.
    #[error("none of the client's offers would authenticate it, which this server requires")]
    CannotAuthenticate,
    /// The client trusts none of our issuers.
    #[error("the client trusts no issuer of our certificates")]
    NotTrustedByClient,
    /// The server chose something that was not offered.
    #[error("the server chose a {what} that was not offered")]
    NotOffered {
        /// What it chose.
        what: &'static str,
    },
    /// The server does not number its records, which datagrams need.
    #[error("the server does not number its records explicitly")]
    SequenceMode,
    /// Unknown curve or group.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A key larger than the suite allows.
    #[error("a key of {bits} bits exceeds the limit of {suite}")]
    KeyTooLarge {
        /// Size of the key.
        bits: u32,
        /// The suite.
        suite: KeyExchangeSuite,
    },
    /// A certificate or chain that is not accepted.
    #[error(transparent)]
    Certificate(CertificateError),
    /// The client has to present a certificate and did not.
    #[error("the client presents no certificate")]
    NoClientCertificate,
    /// A key, a ciphertext or a signature that is not valid.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    /// The peer's Finished does not match the messages that we saw.
    #[error("the peer's Finished does not match this handshake")]
    FinishedMismatch,
    /// A protected record that cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Our own message does not fit its frame.
    #[error("cannot encode a message: {0}")]
    Encode(#[from] EncodeError),
    /// The configuration lacks what the negotiated suite needs.
    #[error("the configuration lacks {what}")]
    Configuration {
        /// What is missing.
        what: &'static str,
    },
    /// The connection ran out of sequence numbers.
    #[error(transparent)]
    SequenceExhausted(#[from] SequenceExhausted),
}

impl From<CertificateError> for Error {
    fn from(error: CertificateError) -> Self {
        Self::Certificate(error)
    }
}

impl Error {
    /// The alert that tells the peer.
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
    /// The alert about a flight of a handshake that was not accepted.
    ///
    /// A record that cannot be read is a *warning*, `bad_record_mac` as a rule, in clear text, even if
    /// it stands where Finished should. The specification gives these alerts that level, and it is
    /// what they are: such a record proves nothing, not even that the peer sent it, so it ends
    /// nothing, and the peer had better not end anything either. A Finished that *was* made with the
    /// keys of the exchange but does not match its messages is another matter: `decrypt_error`,
    /// fatal, as everything that a peer with the keys got wrong.
    pub(crate) fn complaint(&self, settings: &Settings) -> Alert {
        match self {
            Self::Record(error) => Alert::warning(record_alert(*error, settings)),
            other => other.alert(),
        }
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
    /// There is no connection yet, or no longer.
    #[error("the connection is not open")]
    NotOpen,
    /// More than fits into a datagram; nothing is fragmented here.
    #[error("{length} bytes do not fit into a datagram, at most {max} do")]
    TooLong {
        /// How much was to be sent.
        length: usize,
        /// How much fits.
        max: usize,
    },
    /// Nothing at all, which is not sent.
    #[error("there is nothing to send")]
    Empty,
    /// The connection ran out of sequence numbers and has been closed.
    #[error(transparent)]
    SequenceExhausted(#[from] SequenceExhausted),
}
