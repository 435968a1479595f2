//! Certificates of both kinds, X.509 and WTLS.
//!
//! - [`wtls`]: WTLS identities from the store and from a user's files;
//! - [`supplied`]: user-supplied certificates for a suite;
//! - [`describe`]: what any file of certificates is, costs, and what a peer would refuse about it;
//! - [`request`]: everything that the `certs` command does, as data in and data out.

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

/// Describes the certificates of a file, whichever kind they are. `key_path` is the file of the private key,
/// `ca_path` that of the roots that the peer trusts; without it the peer is taken to trust the issuer of the last.
///
/// # Errors
/// [`CertsError`] where a file can't be read; what is readable and wrong is among the violations.
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
