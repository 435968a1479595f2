//! OpenSSL functions for which the `openssl` crate has no safe wrapper.

use crate::cancellation::is_wanted;
use crate::error::{Doing, PkiError};
use foreign_types::{ForeignType, ForeignTypeRef};
use libc::{c_char, c_int, c_uint, c_void, size_t};
use openssl::bn::BigNumRef;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKeyRef, Private};
use openssl::rsa::Rsa;
use openssl::x509::{X509, X509Extension, X509Ref};
use shakedown_trace::Side;

/// `<openssl/x509v3.h>`: the bit of key usage that allows signing certificates.
const KU_KEY_CERT_SIGN: u32 = 0x04;
/// `<openssl/x509v3.h>`: purposes of certificates.
const X509_PURPOSE_SSL_CLIENT: c_int = 1;
const X509_PURPOSE_SSL_SERVER: c_int = 2;

/// OpenSSL's `BN_GENCB`: called during its search for a prime.
#[repr(C)]
struct GenCallback {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn BN_GENCB_new() -> *mut GenCallback;
    fn BN_GENCB_free(callback: *mut GenCallback);
    fn BN_GENCB_set(
        callback: *mut GenCallback,
        function: Option<unsafe extern "C" fn(c_int, c_int, *mut GenCallback) -> c_int>,
        argument: *mut c_void,
    );
    fn X509_get_signature_info(
        certificate: *mut openssl_sys::X509,
        digest: *mut c_int,
        key: *mut c_int,
        security_bits: *mut c_int,
        flags: *mut u32,
    ) -> c_int;
    fn X509_supported_extension(extension: *mut openssl_sys::X509_EXTENSION) -> c_int;
    fn X509_check_ca(certificate: *mut openssl_sys::X509) -> c_int;
    fn X509_check_purpose(certificate: *mut openssl_sys::X509, purpose: c_int, as_ca: c_int) -> c_int;
    fn X509_check_host(
        certificate: *mut openssl_sys::X509,
        name: *const c_char,
        length: size_t,
        flags: c_uint,
        peer_name: *mut *mut c_char,
    ) -> c_int;
    fn X509_check_ip_asc(certificate: *mut openssl_sys::X509, address: *const c_char, flags: c_uint)
    -> c_int;
}

/// Decides whether the search for a prime continues; OpenSSL ends it at 0.
unsafe extern "C" fn search_on(_: c_int, _: c_int, _: *mut GenCallback) -> c_int {
    c_int::from(is_wanted())
}

/// Generates an RSA key like [`Rsa::generate_with_e`], but can be [cancelled](crate::cancellation).
pub(crate) fn generate_rsa(bits: c_int, exponent: &BigNumRef) -> Result<Rsa<Private>, ErrorStack> {
    // SAFETY: the key is created, filled, and freed or returned here; the exponent is alive for the call, and OpenSSL
    // copies it. The callback is a static function that ignores its arguments; OpenSSL calls it only during the call,
    // on this thread, and its structure is freed after the call. `openssl_sys` declares the same structure as a
    // different opaque type.
    unsafe {
        let callback = BN_GENCB_new();
        if callback.is_null() {
            return Err(ErrorStack::get());
        }
        BN_GENCB_set(callback, Some(search_on), std::ptr::null_mut());
        let key = openssl_sys::RSA_new();
        let made = !key.is_null()
            && openssl_sys::RSA_generate_key_ex(key, bits, exponent.as_ptr(), callback.cast()) == 1;
        BN_GENCB_free(callback);
        if made {
            return Ok(Rsa::from_ptr(key));
        }
        openssl_sys::RSA_free(key);
    }
    Err(ErrorStack::get())
}

/// Signs a certificate, and replaces an earlier signature. `digest` is `None` for schemes with a fixed digest.
pub(crate) fn sign(
    certificate: &mut X509,
    key: &PKeyRef<Private>,
    digest: Option<MessageDigest>,
) -> Result<(), PkiError> {
    let digest = digest.map_or(std::ptr::null(), |digest| digest.as_ptr());
    // SAFETY: both objects are alive for the call and the certificate is borrowed mutably, which X509_sign needs:
    // it replaces the signature and the cached encoding. A null digest is allowed; digests are static.
    let length = unsafe { openssl_sys::X509_sign(ForeignType::as_ptr(certificate), key.as_ptr(), digest) };
    if length > 0 { Ok(()) } else { Err(ErrorStack::get()).doing("sign a certificate") }
}

pub(crate) struct SignatureInfo {
    /// [`Nid::UNDEF`] for schemes with a fixed digest.
    pub digest: Nid,
    pub security_bits: u32,
}

/// Digest and strength of a certificate's signature; `None` for algorithms that OpenSSL does not know.
pub(crate) fn signature_info(certificate: &X509Ref) -> Option<SignatureInfo> {
    let (mut digest, mut key, mut bits, mut flags) = (0, 0, 0, 0);
    // SAFETY: the certificate is alive for the call, and the four results are local. OpenSSL fills its cache of the
    // certificate's extensions under a lock, so that a shared reference is enough.
    let known = unsafe {
        X509_get_signature_info(
            certificate.as_ptr(),
            &raw mut digest,
            &raw mut key,
            &raw mut bits,
            &raw mut flags,
        )
    };
    let _ = (ErrorStack::get(), key, flags);
    let security_bits = u32::try_from(bits).unwrap_or(0);
    (known == 1).then(|| SignatureInfo { digest: Nid::from_raw(digest), security_bits })
}

/// True if a certificate is marked as a CA, or is self-signed and of version 1, which has no such mark.
pub(crate) fn is_ca(certificate: &X509Ref) -> bool {
    // SAFETY: the certificate is alive for the call; OpenSSL fills its cache under a lock.
    let kind = unsafe { X509_check_ca(certificate.as_ptr()) };
    // 1: basic constraints; 3: self-signed, version 1. 4 and 5 are guesses that verification does not accept.
    matches!(kind, 1 | 3)
}

/// True if the key usage allows signing certificates, or is absent.
pub(crate) fn may_sign_certificates(certificate: &X509Ref) -> bool {
    // SAFETY: the certificate is alive for the call; without this extension, all bits are set.
    let usage = unsafe { openssl_sys::X509_get_key_usage(certificate.as_ptr()) };
    usage & KU_KEY_CERT_SIGN != 0
}

/// True if the usages of a certificate allow a side to present it.
pub(crate) fn is_for_side(certificate: &X509Ref, side: Side) -> bool {
    let purpose = match side {
        Side::Client => X509_PURPOSE_SSL_CLIENT,
        Side::Server => X509_PURPOSE_SSL_SERVER,
    };
    // SAFETY: the certificate is alive for the call.
    unsafe { X509_check_purpose(certificate.as_ptr(), purpose, 0) == 1 }
}

/// True if a certificate is for a host, given by name or by address.
pub(crate) fn is_for_host(certificate: &X509Ref, host: &str) -> bool {
    let Ok(text) = std::ffi::CString::new(host) else { return false };
    if host.parse::<std::net::IpAddr>().is_ok() {
        // SAFETY: the certificate and the text, which ends in a zero byte, are alive for the call.
        return unsafe { X509_check_ip_asc(certificate.as_ptr(), text.as_ptr(), 0) == 1 };
    }
    // SAFETY: as above; the length is that of the text, and no peer name is requested.
    unsafe { X509_check_host(certificate.as_ptr(), text.as_ptr(), host.len(), 0, std::ptr::null_mut()) == 1 }
}

/// True if OpenSSL's verification supports an extension.
pub(crate) fn is_supported(extension: &X509Extension) -> bool {
    // SAFETY: the extension is alive for the call.
    unsafe { X509_supported_extension(extension.as_ptr()) == 1 }
}

/// An extension as printed by OpenSSL; `None` if OpenSSL does not support it, or the value is malformed.
pub(crate) fn print_extension(extension: &X509Extension) -> Option<String> {
    // SAFETY: the BIO is created, used and freed here; the extension is alive for the call. The text is copied from
    // the BIO's memory, whose start and length BIO_get_mem_data returns, before the BIO is freed.
    unsafe {
        let bio = openssl_sys::BIO_new(openssl_sys::BIO_s_mem());
        if bio.is_null() {
            return None;
        }
        let printed = openssl_sys::X509V3_EXT_print(bio, extension.as_ptr().cast(), 0, 0);
        let mut start: *mut c_char = std::ptr::null_mut();
        let length = usize::try_from(openssl_sys::BIO_get_mem_data(bio, &raw mut start)).unwrap_or(0);
        let text = (printed == 1 && !start.is_null()).then(|| {
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length);
            String::from_utf8_lossy(bytes).into_owned()
        });
        openssl_sys::BIO_free_all(bio);
        let _ = ErrorStack::get();
        text
    }
}
