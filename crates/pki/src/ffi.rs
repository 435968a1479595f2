//! The calls that the `openssl` crate has no safe face for.

use crate::error::{Doing, PkiError};
use foreign_types::ForeignTypeRef;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKeyRef, Private};
use openssl::x509::X509;

/// Signs a certificate, again if it has been signed before. `digest` is `None` for schemes that have their own.
pub(crate) fn sign(
    certificate: &mut X509,
    key: &PKeyRef<Private>,
    digest: Option<MessageDigest>,
) -> Result<(), PkiError> {
    let digest = digest.map_or(std::ptr::null(), |digest| digest.as_ptr());
    // SAFETY: both objects are alive for the call and the certificate is borrowed mutably, which X509_sign needs:
    // it replaces the signature and the cached encoding. A null digest is allowed; digests are static.
    let length = unsafe { openssl_sys::X509_sign(certificate.as_ptr(), key.as_ptr(), digest) };
    if length > 0 { Ok(()) } else { Err(ErrorStack::get()).doing("sign a certificate") }
}
