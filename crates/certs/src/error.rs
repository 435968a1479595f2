//! Errors of certificates.

use shakedown_pki::credentials::ReadError;
use shakedown_pki::inspect::InspectError;
use shakedown_pki::{PkiError, UserError};
use shakedown_wtls::certificate::CertificateError;
use shakedown_wtls::crypto::CryptoError;
use std::path::PathBuf;

/// Why certificates could not be created, read or described. Each message states the problem, its place, and what is
/// accepted.
#[derive(Debug, thiserror::Error)]
pub enum CertsError {
    #[error(transparent)]
    Pki(#[from] PkiError),

    #[error(transparent)]
    Inspect(#[from] InspectError),

    #[error(transparent)]
    Read(#[from] ReadError),

    #[error(transparent)]
    User(#[from] UserError),

    #[error("WTLS: {0}")]
    Certificate(#[from] CertificateError),

    #[error("WTLS: {0}")]
    Crypto(#[from] CryptoError),

    #[error("{}: a WTLS peer would refuse it: {source}", path.display())]
    RefusedInWtls { path: PathBuf, source: CertificateError },

    #[error(transparent)]
    Suite(Box<shakedown_trace::suite::SuiteError>),

    #[error(
        "{suite}: the {side} presents no certificate in it; only a suite with '/mutual' uses the client's"
    )]
    NoUse { suite: String, side: &'static str },

    #[error("{}: not what the suite's protocol uses; accepted: {wanted} certificates", path.display())]
    WrongKind { path: PathBuf, wanted: &'static str },

    #[error("{}: unreadable; accepted: X.509 certificates in PEM, DER, PKCS #12, WTLS certificates in PEM or in binary form",
        path.display())]
    Unreadable { path: PathBuf },

    #[error("{}: holds no certificate; accepted: X.509 in PEM, DER, PKCS #12, WTLS in PEM or in binary form", path.display())]
    NoCertificate { path: PathBuf },

    #[error("{}: certificate {place} is unreadable as a WTLS certificate: {reason}", path.display())]
    BadWtlsCertificate { path: PathBuf, place: usize, reason: String },

    #[error(
        "a WTLS certificate cannot have a key of the kind {key}; accepted: RSA, and EC on the curves of WTLS"
    )]
    NoWtlsKey { key: String },

    #[error("a WTLS chain has either RSA keys or EC keys throughout, not both: {keys}")]
    MixedWtlsKeys { keys: String },

    #[error(
        "unknown key '{key}'; accepted: rsa512 … rsa4096 (rsa…e3), dsa512, dsa1024, dsa2048, a curve (p256, sect233k1, \
        160p …), ed25519, mldsa44, mldsa65, mldsa87; a chain is leaf@issuer@root"
    )]
    UnknownKey { key: String },

    #[error("unknown {what} '{value}'; accepted: {accepted}")]
    UnknownWord { what: &'static str, value: String, accepted: &'static str },

    #[error("{}: exists already; accepted: another folder, or --force", path.display())]
    Exists { path: PathBuf },

    #[error("{}: {action} failed: {source}", path.display())]
    File { path: PathBuf, action: &'static str, source: std::io::Error },

    #[error("a PKCS #12 archive holds X.509 certificates; it cannot hold WTLS certificates")]
    NoWtlsArchive,
}

impl From<shakedown_trace::suite::SuiteError> for CertsError {
    fn from(error: shakedown_trace::suite::SuiteError) -> Self {
        Self::Suite(Box::new(error))
    }
}
