//! Public-key operations as libssl 3.5 calls them, step by step, in a given library context.
//!
//! In a timed context each step writes its operations to the recorder, as it does inside a handshake. The order of
//! calls is that of `ssl/s3_lib.c`, `ssl/statem` and `crypto/asn1/a_verify.c`.

use super::ffi as more;
use crate::stack::{SetupError, refused};
use foreign_types::{ForeignType, ForeignTypeRef};
use libc::{c_int, c_long};
use openssl::error::ErrorStack;
use openssl::md_ctx::MdCtx;
use openssl::pkey::{PKey, PKeyRef, Params, Private, Public};
use openssl::pkey_ctx::PkeyCtx;
use openssl_sys as sys;
use shakedown_ossl::{Library, ffi};
use std::ffi::CStr;
use std::ptr;

/// The parameters of a signature.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// `None` for schemes that hash by themselves.
    pub digest: Option<&'static CStr>,
    /// RSASSA-PSS with a salt as long as the digest, instead of PKCS #1 v1.5.
    pub pss: bool,
}

/// Calls in one library context.
#[derive(Clone, Copy, Debug)]
pub struct Evp {
    library: Library,
}

/// OpenSSL's error for a failed call.
pub fn failed(what: &'static str) -> SetupError {
    refused(what)(ErrorStack::get())
}

/// OpenSSL's functions return 1, or on failure 0 or a negative number.
pub fn check(answer: c_int, what: &'static str) -> Result<(), SetupError> {
    if answer > 0 { Ok(()) } else { Err(failed(what)) }
}

fn generate<T>(mut context: PkeyCtx<T>, group: Option<&CStr>) -> Result<PKey<Private>, SetupError> {
    const WHAT: &str = "generate a key";
    context.keygen_init().map_err(refused(WHAT))?;
    if let Some(group) = group {
        set_group(&context, group)?;
    }
    context.keygen().map_err(refused(WHAT))
}

fn set_group<T>(context: &PkeyCtx<T>, group: &CStr) -> Result<(), SetupError> {
    // SAFETY: the context and the name live through the call.
    check(unsafe { more::EVP_PKEY_CTX_set_group_name(context.as_ptr(), group.as_ptr()) }, "choose a group")
}

impl Evp {
    pub fn new(library: Library) -> Self {
        Self { library }
    }

    pub fn library(self) -> *mut ffi::OSSL_LIB_CTX {
        self.library.as_ptr()
    }

    fn context_of<T>(self, key: &PKeyRef<T>) -> Result<PkeyCtx<T>, SetupError> {
        // SAFETY: the library context is never freed; the key is live during the call, which takes its own reference;
        // this function owns a result that is not null.
        unsafe {
            let context = ffi::EVP_PKEY_CTX_new_from_pkey(self.library(), key.as_ptr(), ptr::null());
            if context.is_null() { Err(failed("work with a key")) } else { Ok(PkeyCtx::from_ptr(context)) }
        }
    }

    fn context_named(self, algorithm: &CStr) -> Result<PkeyCtx<()>, SetupError> {
        // SAFETY: the library context is never freed; the name is live during the call; this function owns the result.
        unsafe {
            let context = ffi::EVP_PKEY_CTX_new_from_name(self.library(), algorithm.as_ptr(), ptr::null());
            if context.is_null() { Err(failed("find an algorithm")) } else { Ok(PkeyCtx::from_ptr(context)) }
        }
    }

    /// Decodes a private key from PKCS #8, as a server does when it starts.
    pub fn private_key(self, pkcs8: &[u8]) -> Result<PKey<Private>, SetupError> {
        let mut data = pkcs8.as_ptr();
        let length = c_long::try_from(pkcs8.len()).unwrap_or(c_long::MAX);
        // SAFETY: the data is readable for its length; a null result is checked.
        unsafe {
            let key = ffi::d2i_AutoPrivateKey_ex(
                ptr::null_mut(),
                &raw mut data,
                length,
                self.library(),
                ptr::null(),
            );
            if key.is_null() { Err(failed("read a private key")) } else { Ok(PKey::from_ptr(key)) }
        }
    }

    /// Decodes a public key from a `SubjectPublicKeyInfo`, as from a certificate.
    pub fn public_key(self, spki: &[u8]) -> Result<PKey<Public>, SetupError> {
        let mut data = spki.as_ptr();
        let length = c_long::try_from(spki.len()).unwrap_or(c_long::MAX);
        // SAFETY: the data is readable for its length; a null result is checked.
        unsafe {
            let key =
                more::d2i_PUBKEY_ex(ptr::null_mut(), &raw mut data, length, self.library(), ptr::null());
            if key.is_null() { Err(failed("read a public key")) } else { Ok(PKey::from_ptr(key)) }
        }
    }

    /// Signs as `tls_construct_server_key_exchange` and `tls_construct_cert_verify` do: requests the size first.
    pub fn sign(self, key: &PKeyRef<Private>, scheme: Scheme, message: &[u8]) -> Result<Vec<u8>, SetupError> {
        const WHAT: &str = "sign";
        let mut context = self.begin(more::EVP_DigestSignInit_ex, key, scheme, WHAT)?;
        let mut signature = Vec::new();
        context.digest_sign_to_vec(message, &mut signature).map_err(refused(WHAT))?;
        Ok(signature)
    }

    pub fn verify(
        self,
        key: &PKeyRef<Public>,
        scheme: Scheme,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SetupError> {
        const WHAT: &str = "verify a signature";
        let context = self.begin(more::EVP_DigestVerifyInit_ex, key, scheme, WHAT)?;
        let (data, size) = (message.as_ptr(), message.len());
        // SAFETY: context, message and signature live through the call.
        let verified = unsafe {
            sys::EVP_DigestVerify(context.as_ptr(), signature.as_ptr(), signature.len(), data, size)
        };
        check(verified, WHAT)
    }

    /// The context of a signature or a verification, which OpenSSL's function `init` begins.
    fn begin<T>(
        self,
        init: more::DigestInit,
        key: &PKeyRef<T>,
        scheme: Scheme,
        what: &'static str,
    ) -> Result<MdCtx, SetupError> {
        let context = MdCtx::new().map_err(refused(what))?;
        let digest = scheme.digest.map_or(ptr::null(), CStr::as_ptr);
        let (library, key, mut key_context) = (self.library(), key.as_ptr(), ptr::null_mut());
        // SAFETY: contexts, key and names live through the calls; `init` creates the key context of a signature.
        unsafe {
            let begun =
                init(context.as_ptr(), &raw mut key_context, digest, library, ptr::null(), key, ptr::null());
            check(begun, what)?;
            if scheme.pss {
                let padding = sys::RSA_PKCS1_PSS_PADDING;
                check(sys::EVP_PKEY_CTX_set_rsa_padding(key_context, padding), "set PSS padding")?;
                let salt = more::RSA_PSS_SALTLEN_DIGEST;
                check(
                    sys::EVP_PKEY_CTX_set_rsa_pss_saltlen(key_context, salt),
                    "set the length of the salt",
                )?;
            }
        }
        Ok(context)
    }

    /// Encrypts a secret with RSA, as `tls_construct_cke_rsa` does.
    pub fn encrypt(self, key: &PKeyRef<Public>, secret: &[u8]) -> Result<Vec<u8>, SetupError> {
        let mut context = self.context_of(key)?;
        let mut out = Vec::new();
        let encrypted = context.encrypt_init().and_then(|()| context.encrypt_to_vec(secret, &mut out));
        encrypted.map_err(refused("encrypt"))?;
        Ok(out)
    }

    /// Decrypts a pre-master secret, as `tls_process_cke_rsa` does; `version` is the version inside it.
    pub fn decrypt(
        self,
        key: &PKeyRef<Private>,
        ciphertext: &[u8],
        version: u16,
    ) -> Result<[u8; 48], SetupError> {
        const WHAT: &str = "decrypt";
        let mut context = self.context_of(key)?;
        context.decrypt_init().map_err(refused(WHAT))?;
        let mut version = libc::c_uint::from(version);
        // SAFETY: the context and the parameters live through the calls.
        unsafe {
            let padding = more::RSA_PKCS1_WITH_TLS_PADDING;
            check(sys::EVP_PKEY_CTX_set_rsa_padding(context.as_ptr(), padding), WHAT)?;
            let params = [
                sys::OSSL_PARAM_construct_uint(c"tls-client-version".as_ptr(), &raw mut version),
                sys::OSSL_PARAM_construct_end(),
            ];
            check(sys::EVP_PKEY_CTX_set_params(context.as_ptr(), params.as_ptr()), WHAT)?;
        }
        let mut secret = [0; 48];
        context.decrypt(ciphertext, Some(&mut secret)).map_err(refused(WHAT))?;
        Ok(secret)
    }

    /// Generates a key in a named group: `ssl_generate_pkey_group`.
    pub fn generate_in(self, algorithm: &CStr, group: &CStr) -> Result<PKey<Private>, SetupError> {
        generate(self.context_named(algorithm)?, Some(group))
    }

    /// Generates a key in the group of another: `ssl_generate_pkey`.
    pub fn generate_like<T>(self, other: &PKeyRef<T>) -> Result<PKey<Private>, SetupError> {
        generate(self.context_of(other)?, None)
    }

    /// The parameters of a named group, without a key: `ssl_generate_param_group`.
    pub fn parameters_in(self, algorithm: &CStr, group: &CStr) -> Result<PKey<Params>, SetupError> {
        const WHAT: &str = "make parameters";
        let mut context = self.context_named(algorithm)?;
        context.paramgen_init().map_err(refused(WHAT))?;
        set_group(&context, group)?;
        context.paramgen().map_err(refused(WHAT))
    }

    /// The parameters of another key, as a server creates them for a client's share.
    pub fn parameters_of<T>(self, other: &PKeyRef<T>) -> Result<PKey<Params>, SetupError> {
        // SAFETY: both keys live through the calls; null is checked.
        unsafe {
            let key = sys::EVP_PKEY_new();
            if key.is_null() {
                return Err(failed("make a key"));
            }
            let key: PKey<Params> = PKey::from_ptr(key);
            check(sys::EVP_PKEY_copy_parameters(key.as_ptr(), other.as_ptr()), "copy parameters")?;
            Ok(key)
        }
    }

    /// The encoded public key, as in a key share.
    pub fn share<T>(self, key: &PKeyRef<T>) -> Result<Vec<u8>, SetupError> {
        let mut data = ptr::null_mut();
        // SAFETY: the key lives through the call; this function owns the buffer, which is freed after it is copied.
        unsafe {
            let length = more::EVP_PKEY_get1_encoded_public_key(key.as_ptr(), &raw mut data);
            if length == 0 {
                return Err(failed("encode a share"));
            }
            let share = std::slice::from_raw_parts(data, length).to_vec();
            sys::CRYPTO_free(data.cast(), c"".as_ptr(), 0);
            Ok(share)
        }
    }

    /// Decodes a peer's share with these parameters.
    pub fn import_share(self, parameters: PKey<Params>, share: &[u8]) -> Result<PKey<Public>, SetupError> {
        // SAFETY: the share is readable for its length; the caller gets ownership of the key, now with a public part.
        unsafe {
            let key = parameters.as_ptr();
            check(more::EVP_PKEY_set1_encoded_public_key(key, share.as_ptr(), share.len()), "read a share")?;
            std::mem::forget(parameters);
            Ok(PKey::from_ptr(key))
        }
    }

    /// Derives a shared secret: `ssl_derive`.
    pub fn derive(
        self,
        own: &PKeyRef<Private>,
        peer: &PKeyRef<Public>,
        padded: bool,
    ) -> Result<Vec<u8>, SetupError> {
        const WHAT: &str = "derive a secret";
        let mut context = self.context_of(own)?;
        let set = context.derive_init().and_then(|()| context.derive_set_peer(peer));
        let length = set.and_then(|()| context.derive(None)).map_err(refused(WHAT))?;
        if padded {
            // SAFETY: the context lives through the call.
            check(unsafe { more::EVP_PKEY_CTX_set_dh_pad(context.as_ptr(), 1) }, WHAT)?;
        }
        let mut secret = vec![0; length];
        let length = context.derive(Some(&mut secret)).map_err(refused(WHAT))?;
        secret.truncate(length);
        Ok(secret)
    }

    /// Encapsulates a secret to a peer's key: `ssl_encapsulate`. Returns ciphertext and secret.
    pub fn encapsulate(self, peer: &PKeyRef<Public>) -> Result<(Vec<u8>, Vec<u8>), SetupError> {
        const WHAT: &str = "encapsulate";
        let context = self.context_of(peer)?;
        let (mut out_length, mut length) = (0, 0);
        // SAFETY: the context lives through the calls; both outputs have the sizes that the first call returned.
        unsafe {
            check(sys::EVP_PKEY_encapsulate_init(context.as_ptr(), ptr::null()), WHAT)?;
            let sized = sys::EVP_PKEY_encapsulate(
                context.as_ptr(),
                ptr::null_mut(),
                &raw mut out_length,
                ptr::null_mut(),
                &raw mut length,
            );
            check(sized, WHAT)?;
            let (mut out, mut secret) = (vec![0; out_length], vec![0; length]);
            let done = sys::EVP_PKEY_encapsulate(
                context.as_ptr(),
                out.as_mut_ptr(),
                &raw mut out_length,
                secret.as_mut_ptr(),
                &raw mut length,
            );
            check(done, WHAT)?;
            Ok((out, secret))
        }
    }

    /// Decapsulates a ciphertext: `ssl_decapsulate`.
    pub fn decapsulate(self, own: &PKeyRef<Private>, ciphertext: &[u8]) -> Result<Vec<u8>, SetupError> {
        const WHAT: &str = "decapsulate";
        let context = self.context_of(own)?;
        let mut length = 0;
        let (data, size) = (ciphertext.as_ptr(), ciphertext.len());
        // SAFETY: the context and ciphertext live through the calls; the secret has the size from the first call.
        unsafe {
            check(sys::EVP_PKEY_decapsulate_init(context.as_ptr(), ptr::null()), WHAT)?;
            check(
                sys::EVP_PKEY_decapsulate(context.as_ptr(), ptr::null_mut(), &raw mut length, data, size),
                WHAT,
            )?;
            let mut secret = vec![0; length];
            check(
                sys::EVP_PKEY_decapsulate(context.as_ptr(), secret.as_mut_ptr(), &raw mut length, data, size),
                WHAT,
            )?;
            Ok(secret)
        }
    }

    /// Parameters of a finite-field group, or with `public` a peer's key in it; numbers are big-endian.
    pub fn finite_field(
        self,
        prime: &[u8],
        generator: &[u8],
        public: Option<&[u8]>,
    ) -> Result<PKey<Public>, SetupError> {
        const WHAT: &str = "make a DH key";
        // Integer parameters are in the machine's byte order, which is little-endian on all supported machines.
        let little = |number: &[u8]| -> Vec<u8> { number.iter().rev().copied().collect() };
        let (mut p, mut g, mut y) = (little(prime), little(generator), public.map(little));
        let number = |key, value: &mut [u8]| param(key, ffi::OSSL_PARAM_UNSIGNED_INTEGER, value);
        let mut params = [number(c"p", &mut p), number(c"g", &mut g), end(), end()];
        let mut selection = more::EVP_PKEY_KEY_PARAMETERS;
        if let Some(y) = &mut y {
            params[2] = number(c"pub", y);
            selection = more::EVP_PKEY_KEYPAIR;
        }
        let context = self.context_named(c"DH")?;
        let mut key = ptr::null_mut();
        // SAFETY: the context, numbers and parameters live through the calls; this function owns the new key.
        unsafe {
            check(sys::EVP_PKEY_fromdata_init(context.as_ptr()), WHAT)?;
            check(
                sys::EVP_PKEY_fromdata(context.as_ptr(), &raw mut key, selection, params.as_mut_ptr()),
                WHAT,
            )?;
            Ok(PKey::from_ptr(key))
        }
    }

    /// The client's checks of the server's group and share: the end of `tls_process_ske_dhe`.
    pub fn check_finite_field(self, key: &PKeyRef<Public>) -> Result<(), SetupError> {
        let context = self.context_of(key)?;
        // SAFETY: the context lives through the calls.
        unsafe {
            check(more::EVP_PKEY_param_check_quick(context.as_ptr()), "check DH parameters")?;
            check(more::EVP_PKEY_public_check(context.as_ptr()), "check a DH share")
        }
    }
}

/// An entry of a list of parameters, which points to its value.
pub fn param(key: &'static CStr, kind: libc::c_uint, value: &mut [u8]) -> ffi::OSSL_PARAM {
    ffi::OSSL_PARAM {
        key: key.as_ptr(),
        data_type: kind as _,
        data: value.as_mut_ptr().cast(),
        data_size: value.len(),
        return_size: 0,
    }
}

/// The end of the list.
pub fn end() -> ffi::OSSL_PARAM {
    ffi::OSSL_PARAM { key: ptr::null(), data_type: 0, data: ptr::null_mut(), data_size: 0, return_size: 0 }
}
