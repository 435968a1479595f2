//! Certificates of both kinds, X.509 and WTLS.
//!
//! - [`wtls`]: WTLS identities, generated or user-supplied;
//! - [`supplied`]: user-supplied certificates for a suite;
//! - [`describe`]: describes any file of certificates, its sizes, and why a peer would reject it;
//! - [`request`]: the `certs` command as a function of a request, which returns a response.

#![forbid(unsafe_code)]

mod error;
mod files;
pub mod request;
pub mod supplied;
pub mod wtls;

pub use error::CertsError;

use shakedown_pki::credentials::{ReadError, read_bytes};
use shakedown_pki::inspect::{self, Criteria, Description, InspectError};
use std::path::Path;

/// Describes the certificates of a file, of either kind. `key_path` is the file of the private key, `ca_path` that of
/// the roots that the peer trusts; without it, the peer is assumed to trust the issuer of the last certificate.
///
/// # Errors
/// [`CertsError`] if a file cannot be read; errors in readable certificates are among the violations.
pub fn describe(
    path: &Path,
    key_path: Option<&Path>,
    ca_path: Option<&Path>,
    password: Option<&str>,
    criteria: &Criteria,
) -> Result<Description, CertsError> {
    let bytes = read_bytes(path)?;
    if let Some(certificates) = wtls::read_certificates(&bytes, path)? {
        return wtls::describe(&certificates, key_path, ca_path, password, criteria);
    }
    inspect::describe(path, key_path, ca_path, password, criteria).map_err(|error| match error {
        InspectError::Read(ReadError::Unreadable { path }) => CertsError::Unreadable { path },
        InspectError::Read(ReadError::NoCertificate { path }) => CertsError::NoCertificate { path },
        other => other.into(),
    })
}
