//! Errors of keys and certificates.

use std::path::PathBuf;

/// Why a key or certificate could not be created, read or used. Each message states the problem, its place, and what is
/// accepted.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("{}: {action} failed: {source}", path.display())]
    File { path: PathBuf, action: &'static str, source: std::io::Error },

    #[error("{}: larger than {max_kib} KiB; accepted: a certificate profile", path.display())]
    TooLarge { path: PathBuf, max_kib: u64 },

    #[error(transparent)]
    Time(#[from] crate::date::TimeError),

    #[error("certificate profile {origin}{}: {detail}", line.map(|line| format!(" line {line}")).unwrap_or_default())]
    ProfileSyntax { origin: String, line: Option<usize>, detail: String },

    #[error("certificate profile {origin}: {key}: '{value}' is not accepted; accepted: {accepted}")]
    ProfileValue { origin: String, key: String, value: String, accepted: String },

    #[error("unknown certificate profile '{name}'; accepted: {accepted}, or the path of a TOML file")]
    UnknownProfile { name: String, accepted: String },

    #[error("a chain needs a leaf and a root at least; given: {given} key(s)")]
    ChainTooShort { given: usize },

    #[error(
        "the {digest} digest is too long for a signature by a {issuer} key; take a shorter one in the profile"
    )]
    DigestTooLong { digest: &'static str, issuer: String },

    #[error("{what} is valid from {not_before} to {not_after}, not at {at}")]
    OutsideValidity { what: String, not_before: String, not_after: String, at: String },

    #[error("an issuer is needed for everything but a root: give its certificate and key")]
    IssuerNeeded,

    #[error("a root issues itself: no issuer is accepted")]
    IssuerWithoutUse,

    #[error("the issuer's key is not that of its certificate '{issuer}'")]
    ForeignIssuerKey { issuer: String },

    #[error("no folder for the cache of keys: set SHAKEDOWN_CACHE, XDG_CACHE_HOME or HOME")]
    NoCacheDirectory,

    #[error("interrupted")]
    Interrupted,

    #[error("OpenSSL could not {doing}: {source}")]
    OpenSsl { doing: String, source: openssl::error::ErrorStack },

    #[error("the {what} could not be encoded: {detail}")]
    Encoding { what: &'static str, detail: String },
}

/// Adds the failed action to an error of OpenSSL.
pub(crate) trait Doing<T> {
    fn doing(self, doing: impl Into<String>) -> Result<T, PkiError>;
}

impl<T> Doing<T> for Result<T, openssl::error::ErrorStack> {
    fn doing(self, doing: impl Into<String>) -> Result<T, PkiError> {
        self.map_err(|source| PkiError::OpenSsl { doing: doing.into(), source })
    }
}

/// The system's error message without its number.
pub fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
