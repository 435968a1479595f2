//! Hashes, MACs, ciphers and key derivation functions as libssl uses them.

use super::Failure;
use super::evp::{Evp, check, end, failed, param};
use super::ffi as more;
use super::target::Target;
use foreign_types::ForeignType;
use libc::{c_int, c_void};
use openssl::pkey::{PKey, Private};
use openssl_sys as sys;
use shakedown_ossl::ffi;
use std::ffi::{CStr, CString};
use std::ptr;

type Sized = Box<dyn FnMut(usize) -> Result<(), Failure>>;

/// Maximum number of bytes that a workload processes.
pub const MAX_BYTES: usize = 8192;
/// Space after the output for a tag, a hash or a block.
const SPARE_BYTES: usize = 64;

/// Creates the workload of a symmetric target.
pub fn prepare(target: Target, evp: Evp) -> Result<Sized, Failure> {
    match target {
        Target::Digest(name) => digest(evp, name),
        Target::Hmac(name) => hmac(evp, name),
        Target::Cipher(name) => cipher(evp, name),
        Target::TlsPrf(name) => tls_prf(evp, name),
        Target::Hkdf(name) => hkdf(evp, name),
        Target::Key(_) | Target::Agreement(_) | Target::Encapsulation(_) | Target::Wtls(_) => {
            Ok(Box::new(|_| Ok(())))
        }
    }
}

/// An OpenSSL object and the function that frees it.
struct Owned<T>(*mut T, unsafe extern "C" fn(*mut T));

impl<T> Owned<T> {
    fn new(made: *mut T, free: unsafe extern "C" fn(*mut T), what: &'static str) -> Result<Self, Failure> {
        if made.is_null() { Err(failed(what).into()) } else { Ok(Self(made, free)) }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: created by OpenSSL, owned only by this value, and freed by the matching function.
        unsafe { (self.1)(self.0) }
    }
}

fn digest_context() -> Result<Owned<sys::EVP_MD_CTX>, Failure> {
    // SAFETY: no arguments; a null result is checked.
    let made = unsafe { sys::EVP_MD_CTX_new() };
    Owned::new(made, sys::EVP_MD_CTX_free, "make a digest context")
}

/// OpenSSL's name of a hash: the short name in upper case.
fn hash_name(name: &str) -> CString {
    CString::new(name.to_ascii_uppercase()).unwrap_or_default()
}

/// A transcript hash: a copy is finished, and the original can continue.
fn digest(evp: Evp, name: &str) -> Result<Sized, Failure> {
    const WHAT: &str = "hash";
    let name = hash_name(name);
    // SAFETY: the library context is never freed, and the name is live during the call; a null result is checked.
    let algorithm = Owned::new(
        unsafe { sys::EVP_MD_fetch(evp.library(), name.as_ptr(), ptr::null()) },
        sys::EVP_MD_free,
        WHAT,
    )?;
    let data = vec![0x5A; MAX_BYTES];
    Ok(Box::new(move |size| {
        let (running, copy) = (digest_context()?, digest_context()?);
        let mut value = [0_u8; 64];
        // SAFETY: contexts and buffers live through the calls; no hash is longer than 64 bytes.
        unsafe {
            check(sys::EVP_DigestInit_ex(running.0, algorithm.0, ptr::null_mut()), WHAT)?;
            check(sys::EVP_DigestUpdate(running.0, data.as_ptr().cast(), size.min(MAX_BYTES)), WHAT)?;
            check(sys::EVP_MD_CTX_copy_ex(copy.0, running.0), WHAT)?;
            Ok(check(sys::EVP_DigestFinal_ex(copy.0, value.as_mut_ptr(), ptr::null_mut()), WHAT)?)
        }
    }))
}

/// The MAC of a record: keyed once, finished on a copy.
fn hmac(evp: Evp, name: &str) -> Result<Sized, Failure> {
    const WHAT: &str = "compute a MAC";
    let name = hash_name(name);
    let secret = [0x5A_u8; 32];
    // SAFETY: the library context is never freed; name and secret are live during the call; a null result is checked.
    let key: PKey<Private> = unsafe {
        let key = sys::EVP_PKEY_new_raw_private_key_ex(
            evp.library(),
            c"HMAC".as_ptr(),
            ptr::null(),
            secret.as_ptr(),
            secret.len(),
        );
        if key.is_null() {
            return Err(failed(WHAT).into());
        }
        PKey::from_ptr(key)
    };
    let data = vec![0x5A; MAX_BYTES];
    Ok(Box::new(move |size| {
        let (running, copy) = (digest_context()?, digest_context()?);
        let mut value = [0_u8; 64];
        let mut length = value.len();
        // SAFETY: contexts, key and buffers live through the calls; no MAC is longer than 64 bytes.
        unsafe {
            let begun = more::EVP_DigestSignInit_ex(
                running.0,
                ptr::null_mut(),
                name.as_ptr(),
                evp.library(),
                ptr::null(),
                key.as_ptr(),
                ptr::null(),
            );
            check(begun, WHAT)?;
            check(sys::EVP_MD_CTX_copy_ex(copy.0, running.0), WHAT)?;
            check(more::EVP_DigestSignUpdate(copy.0, data.as_ptr().cast(), size.min(MAX_BYTES)), WHAT)?;
            Ok(check(sys::EVP_DigestSignFinal(copy.0, value.as_mut_ptr(), &raw mut length), WHAT)?)
        }
    }))
}

/// The calls that a cipher needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Plain,
    Aead,
    /// The length of the input must be set before the input.
    Ccm,
}

/// One record with a new key.
fn cipher(evp: Evp, name: &str) -> Result<Sized, Failure> {
    const WHAT: &str = "encrypt a record";
    const TAG_BYTES: c_int = 16;
    let usage = match name {
        _ if name.ends_with("-ccm") => Use::Ccm,
        _ if name.ends_with("-gcm") || name.ends_with("-poly1305") => Use::Aead,
        _ => Use::Plain,
    };
    let name = CString::new(name.to_ascii_uppercase()).unwrap_or_default();
    // SAFETY: the library context is never freed, and the name is live during the call; a null result is checked.
    let algorithm = Owned::new(
        unsafe { sys::EVP_CIPHER_fetch(evp.library(), name.as_ptr(), ptr::null()) },
        sys::EVP_CIPHER_free,
        "find a cipher",
    )?;
    // Different bytes, because a key of equal bytes would be a weak key of DES.
    let key: Vec<u8> = (1..=32).collect();
    let iv = [0x5A_u8; 16];
    let header = [0x5A_u8; 13];
    let data = vec![0x5A_u8; MAX_BYTES];
    let mut out = vec![0_u8; MAX_BYTES + SPARE_BYTES];
    Ok(Box::new(move |size| {
        let size = c_int::try_from(size.min(MAX_BYTES)).unwrap_or(0);
        // SAFETY: no arguments; a null result is checked.
        let context = Owned::new(unsafe { sys::EVP_CIPHER_CTX_new() }, sys::EVP_CIPHER_CTX_free, WHAT)?;
        let mut length = 0;
        // SAFETY: context and buffers live through the calls; keys have at most 32 bytes and IVs at most 16; the output
        // has space for the input and one more block.
        unsafe {
            let (none, encrypt) = (ptr::null_mut(), 1);
            if usage == Use::Ccm {
                let begun =
                    sys::EVP_CipherInit_ex(context.0, algorithm.0, none, ptr::null(), ptr::null(), encrypt);
                check(begun, WHAT)?;
                let tag = sys::EVP_CTRL_GCM_SET_TAG;
                check(sys::EVP_CIPHER_CTX_ctrl(context.0, tag, TAG_BYTES, ptr::null_mut::<c_void>()), WHAT)?;
                check(
                    sys::EVP_CipherInit_ex(context.0, ptr::null(), none, key.as_ptr(), iv.as_ptr(), encrypt),
                    WHAT,
                )?;
                check(
                    sys::EVP_CipherUpdate(context.0, ptr::null_mut(), &raw mut length, ptr::null(), size),
                    WHAT,
                )?;
            } else {
                let (cipher, key) = (algorithm.0, key.as_ptr());
                check(sys::EVP_CipherInit_ex(context.0, cipher, none, key, iv.as_ptr(), encrypt), WHAT)?;
                // libssl pads records itself.
                check(sys::EVP_CIPHER_CTX_set_padding(context.0, 0), WHAT)?;
            }
            if usage != Use::Plain {
                let (data, size) = (header.as_ptr(), 13);
                check(sys::EVP_CipherUpdate(context.0, ptr::null_mut(), &raw mut length, data, size), WHAT)?;
            }
            check(
                sys::EVP_CipherUpdate(context.0, out.as_mut_ptr(), &raw mut length, data.as_ptr(), size),
                WHAT,
            )?;
            let end = out.as_mut_ptr().add(usize::try_from(length).unwrap_or(0));
            Ok(check(more::EVP_CipherFinal_ex(context.0, end, &raw mut length), WHAT)?)
        }
    }))
}

const OCTETS: libc::c_uint = 5; // OSSL_PARAM_OCTET_STRING (core.h)
const INTEGER: libc::c_uint = ffi::OSSL_PARAM_INTEGER;
const TEXT: libc::c_uint = ffi::OSSL_PARAM_UTF8_STRING;

fn derivation(evp: Evp, name: &CStr) -> Result<Owned<sys::EVP_KDF>, Failure> {
    // SAFETY: the library context is never freed, and the name is live during the call; a null result is checked.
    let found = unsafe { sys::EVP_KDF_fetch(evp.library(), name.as_ptr(), ptr::null()) };
    Owned::new(found, sys::EVP_KDF_free, "find a key derivation function")
}

fn derive(
    algorithm: &Owned<sys::EVP_KDF>,
    params: &[ffi::OSSL_PARAM],
    out: &mut [u8],
) -> Result<(), Failure> {
    const WHAT: &str = "derive keys";
    // SAFETY: the function is live; a null result is checked.
    let context = Owned::new(unsafe { sys::EVP_KDF_CTX_new(algorithm.0) }, sys::EVP_KDF_CTX_free, WHAT)?;
    // SAFETY: the context, the output and the parameters' values live through the call.
    let derived = unsafe { sys::EVP_KDF_derive(context.0, out.as_mut_ptr(), out.len(), params.as_ptr()) };
    Ok(check(derived, WHAT)?)
}

/// The PRF of secret, label and two randoms.
fn tls_prf(evp: Evp, name: &str) -> Result<Sized, Failure> {
    let algorithm = derivation(evp, c"TLS1-PRF")?;
    let mut hash = hash_name(name).into_bytes_with_nul();
    let (mut secret, mut label, mut seed) = ([0x5A; 48], *b"key expansion", [0x5A; 64]);
    let mut out = vec![0; MAX_BYTES];
    Ok(Box::new(move |size| {
        let text = hash.len() - 1;
        let params = [
            param(c"digest", TEXT, &mut hash[..text]),
            param(c"secret", OCTETS, &mut secret),
            param(c"seed", OCTETS, &mut label),
            param(c"seed", OCTETS, &mut seed),
            end(),
        ];
        derive(&algorithm, &params, &mut out[..size.min(MAX_BYTES)])
    }))
}

/// HKDF-Expand-Label (RFC 8446 section 7.1).
fn hkdf(evp: Evp, name: &str) -> Result<Sized, Failure> {
    const EXPAND_ONLY: c_int = 2; // EVP_KDF_HKDF_MODE_EXPAND_ONLY (kdf.h)
    let algorithm = derivation(evp, c"TLS13-KDF")?;
    let mut hash = hash_name(name).into_bytes_with_nul();
    let hash_bytes = if name == "sha384" { 48 } else { 32 };
    let (mut key, mut context) = (vec![0x5A; hash_bytes], vec![0x5A; hash_bytes]);
    let (mut mode, mut prefix, mut label) = (EXPAND_ONLY.to_ne_bytes(), *b"tls13 ", *b"c hs traffic");
    let mut out = vec![0; MAX_BYTES];
    Ok(Box::new(move |size| {
        let text = hash.len() - 1;
        let params = [
            param(c"mode", INTEGER, &mut mode),
            param(c"digest", TEXT, &mut hash[..text]),
            param(c"key", OCTETS, &mut key),
            param(c"prefix", OCTETS, &mut prefix),
            param(c"label", OCTETS, &mut label),
            param(c"data", OCTETS, &mut context),
            end(),
        ];
        derive(&algorithm, &params, &mut out[..size.min(MAX_BYTES)])
    }))
}
