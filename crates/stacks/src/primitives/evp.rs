//! Public-key operations as libssl 3.5 calls them, step by step, in a library context of choice.
//!
//! In a timed context each step writes its operations to the recorder, exactly as it does inside a handshake; the
//! functions here keep to the order of calls in `ssl/s3_lib.c`, `ssl/statem` and `crypto/asn1/a_verify.c`.

use super::Failure;
use super::ffi as more;
use foreign_types::{ForeignType, ForeignTypeRef};
use libc::{c_char, c_int, c_long};
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, PKeyRef, Params, Private, Public};
use openssl_sys as sys;
use shakedown_ossl::{Library, ffi};
use std::ffi::CStr;
use std::ptr;

/// How a signature is made.
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

/// An `EVP_PKEY_CTX`, freed when it goes.
struct Context(*mut sys::EVP_PKEY_CTX);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by OpenSSL, owned by this value alone.
        unsafe { sys::EVP_PKEY_CTX_free(self.0) }
    }
}

/// An `EVP_MD_CTX`, freed when it goes.
struct DigestContext(*mut sys::EVP_MD_CTX);

impl DigestContext {
    fn new() -> Result<Self, Failure> {
        // SAFETY: no arguments; a null result is checked.
        let context = unsafe { sys::EVP_MD_CTX_new() };
        if context.is_null() { Err(failed("make a digest context")) } else { Ok(Self(context)) }
    }
}

impl Drop for DigestContext {
    fn drop(&mut self) {
        // SAFETY: made by OpenSSL, owned by this value alone.
        unsafe { sys::EVP_MD_CTX_free(self.0) }
    }
}

/// OpenSSL's reason for refusing.
pub fn failed(what: &'static str) -> Failure {
    Failure::OpenSsl { what, stack: ErrorStack::get() }
}

/// OpenSSL's functions answer 1, or 0 or less where they fail.
pub fn check(answer: c_int, what: &'static str) -> Result<(), Failure> {
    if answer > 0 { Ok(()) } else { Err(failed(what)) }
}

fn generate(context: Context, group: Option<&CStr>) -> Result<PKey<Private>, Failure> {
    const WHAT: &str = "generate a key";
    let mut key = ptr::null_mut();
    // SAFETY: the context and the name live through the calls; the key is ours once made.
    unsafe {
        check(sys::EVP_PKEY_keygen_init(context.0), WHAT)?;
        if let Some(group) = group {
            check(more::EVP_PKEY_CTX_set_group_name(context.0, group.as_ptr()), WHAT)?;
        }
        check(sys::EVP_PKEY_keygen(context.0, &raw mut key), WHAT)?;
        Ok(PKey::from_ptr(key))
    }
}

impl Evp {
    /// Calls in `library`.
    pub fn new(library: Library) -> Self {
        Self { library }
    }

    /// The context, for FFI.
    pub fn library(self) -> *mut ffi::OSSL_LIB_CTX {
        self.library.as_ptr()
    }

    fn context_of<T>(self, key: &PKeyRef<T>) -> Result<Context, Failure> {
        // SAFETY: the library context lives for ever, the key for the call, which takes a reference of its own.
        let context = unsafe { ffi::EVP_PKEY_CTX_new_from_pkey(self.library(), key.as_ptr(), ptr::null()) };
        if context.is_null() { Err(failed("work with a key")) } else { Ok(Context(context)) }
    }

    fn context_named(self, algorithm: &CStr) -> Result<Context, Failure> {
        // SAFETY: the library context lives for ever, the name for the call.
        let context =
            unsafe { ffi::EVP_PKEY_CTX_new_from_name(self.library(), algorithm.as_ptr(), ptr::null()) };
        if context.is_null() { Err(failed("find an algorithm")) } else { Ok(Context(context)) }
    }

    /// Reads a private key from PKCS #8, as a server does when it starts.
    pub fn private_key(self, pkcs8: &[u8]) -> Result<PKey<Private>, Failure> {
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

    /// Reads a public key from a `SubjectPublicKeyInfo`, as out of a certificate.
    pub fn public_key(self, spki: &[u8]) -> Result<PKey<Public>, Failure> {
        let mut data = spki.as_ptr();
        let length = c_long::try_from(spki.len()).unwrap_or(c_long::MAX);
        // SAFETY: the data is readable for its length; a null result is checked.
        unsafe {
            let key =
                more::d2i_PUBKEY_ex(ptr::null_mut(), &raw mut data, length, self.library(), ptr::null());
            if key.is_null() { Err(failed("read a public key")) } else { Ok(PKey::from_ptr(key)) }
        }
    }

    /// Signs as `tls_construct_server_key_exchange` and `tls_construct_cert_verify` do: asks for the size first.
    pub fn sign(self, key: &PKeyRef<Private>, scheme: Scheme, message: &[u8]) -> Result<Vec<u8>, Failure> {
        const WHAT: &str = "sign";
        let context = DigestContext::new()?;
        let mut key_context = ptr::null_mut();
        let mut length = 0;
        // SAFETY: contexts, key, names and message live through the calls; the signature has room for what the first
        // call said.
        unsafe {
            let digest = scheme.digest.map_or(ptr::null(), CStr::as_ptr);
            let begun = more::EVP_DigestSignInit_ex(
                context.0,
                &raw mut key_context,
                digest,
                self.library(),
                ptr::null(),
                key.as_ptr(),
                ptr::null(),
            );
            check(begun, WHAT)?;
            pad(key_context, scheme)?;
            let (data, size) = (message.as_ptr(), message.len());
            check(sys::EVP_DigestSign(context.0, ptr::null_mut(), &raw mut length, data, size), WHAT)?;
            let mut signature = vec![0; length];
            check(sys::EVP_DigestSign(context.0, signature.as_mut_ptr(), &raw mut length, data, size), WHAT)?;
            signature.truncate(length);
            Ok(signature)
        }
    }

    /// Verifies a signature.
    pub fn verify(
        self,
        key: &PKeyRef<Public>,
        scheme: Scheme,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Failure> {
        const WHAT: &str = "verify a signature";
        let context = DigestContext::new()?;
        let mut key_context = ptr::null_mut();
        // SAFETY: contexts, key, names, message and signature live through the calls.
        unsafe {
            let digest = scheme.digest.map_or(ptr::null(), CStr::as_ptr);
            let begun = more::EVP_DigestVerifyInit_ex(
                context.0,
                &raw mut key_context,
                digest,
                self.library(),
                ptr::null(),
                key.as_ptr(),
                ptr::null(),
            );
            check(begun, WHAT)?;
            pad(key_context, scheme)?;
            let (data, size) = (message.as_ptr(), message.len());
            check(sys::EVP_DigestVerify(context.0, signature.as_ptr(), signature.len(), data, size), WHAT)
        }
    }

    /// Encrypts a secret under RSA, as `tls_construct_cke_rsa` does.
    pub fn encrypt(self, key: &PKeyRef<Public>, secret: &[u8]) -> Result<Vec<u8>, Failure> {
        const WHAT: &str = "encrypt";
        let context = self.context_of(key)?;
        let mut length = 0;
        let (data, size) = (secret.as_ptr(), secret.len());
        // SAFETY: the context and the secret live through the calls; the output has room for what the sizing call said.
        unsafe {
            check(sys::EVP_PKEY_encrypt_init(context.0), WHAT)?;
            check(sys::EVP_PKEY_encrypt(context.0, ptr::null_mut(), &raw mut length, data, size), WHAT)?;
            let mut out = vec![0; length];
            check(sys::EVP_PKEY_encrypt(context.0, out.as_mut_ptr(), &raw mut length, data, size), WHAT)?;
            out.truncate(length);
            Ok(out)
        }
    }

    /// Decrypts a pre-master secret, as `tls_process_cke_rsa` does; `version` is the one inside it.
    pub fn decrypt(
        self,
        key: &PKeyRef<Private>,
        ciphertext: &[u8],
        version: u16,
    ) -> Result<[u8; 48], Failure> {
        const WHAT: &str = "decrypt";
        let context = self.context_of(key)?;
        let mut secret = [0; 48];
        let mut length = secret.len();
        let mut version = libc::c_uint::from(version);
        // SAFETY: the context, parameters and buffers live through the calls; the output is as long as promised.
        unsafe {
            check(sys::EVP_PKEY_decrypt_init(context.0), WHAT)?;
            check(sys::EVP_PKEY_CTX_set_rsa_padding(context.0, more::RSA_PKCS1_WITH_TLS_PADDING), WHAT)?;
            let params = [
                sys::OSSL_PARAM_construct_uint(c"tls-client-version".as_ptr(), &raw mut version),
                sys::OSSL_PARAM_construct_end(),
            ];
            check(sys::EVP_PKEY_CTX_set_params(context.0, params.as_ptr()), WHAT)?;
            let (data, size) = (ciphertext.as_ptr(), ciphertext.len());
            check(sys::EVP_PKEY_decrypt(context.0, secret.as_mut_ptr(), &raw mut length, data, size), WHAT)?;
        }
        Ok(secret)
    }

    /// Generates a key in a named group: `ssl_generate_pkey_group`.
    pub fn generate_in(self, algorithm: &CStr, group: &CStr) -> Result<PKey<Private>, Failure> {
        generate(self.context_named(algorithm)?, Some(group))
    }

    /// Generates a key in the group of another: `ssl_generate_pkey`.
    pub fn generate_like<T>(self, other: &PKeyRef<T>) -> Result<PKey<Private>, Failure> {
        generate(self.context_of(other)?, None)
    }

    /// A key of a named group that has no key yet: `ssl_generate_param_group`.
    pub fn parameters_in(self, algorithm: &CStr, group: &CStr) -> Result<PKey<Params>, Failure> {
        const WHAT: &str = "make parameters";
        let context = self.context_named(algorithm)?;
        let mut key = ptr::null_mut();
        // SAFETY: the context and the name live through the calls; the key is ours once made.
        unsafe {
            check(sys::EVP_PKEY_paramgen_init(context.0), WHAT)?;
            check(more::EVP_PKEY_CTX_set_group_name(context.0, group.as_ptr()), WHAT)?;
            check(sys::EVP_PKEY_paramgen(context.0, &raw mut key), WHAT)?;
            Ok(PKey::from_ptr(key))
        }
    }

    /// A key without a key that has the parameters of another, as servers make for a client's share.
    pub fn parameters_of<T>(self, other: &PKeyRef<T>) -> Result<PKey<Params>, Failure> {
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

    /// What is sent as a key share.
    pub fn share<T>(self, key: &PKeyRef<T>) -> Result<Vec<u8>, Failure> {
        let mut data = ptr::null_mut();
        // SAFETY: the key lives through the call; the buffer is ours and is freed once copied.
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

    /// Reads a peer's share into parameters.
    pub fn import_share(self, parameters: PKey<Params>, share: &[u8]) -> Result<PKey<Public>, Failure> {
        // SAFETY: the share is readable for its length; the key, which now has a public part, is handed on.
        unsafe {
            let key = parameters.as_ptr();
            check(more::EVP_PKEY_set1_encoded_public_key(key, share.as_ptr(), share.len()), "read a share")?;
            std::mem::forget(parameters);
            Ok(PKey::from_ptr(key))
        }
    }

    /// Agrees on a secret: `ssl_derive`.
    pub fn derive(
        self,
        own: &PKeyRef<Private>,
        peer: &PKeyRef<Public>,
        padded: bool,
    ) -> Result<Vec<u8>, Failure> {
        const WHAT: &str = "derive a secret";
        let context = self.context_of(own)?;
        let mut length = 0;
        // SAFETY: the context and keys live through the calls; the secret has room for what the sizing call said.
        unsafe {
            check(sys::EVP_PKEY_derive_init(context.0), WHAT)?;
            check(sys::EVP_PKEY_derive_set_peer(context.0, peer.as_ptr()), WHAT)?;
            check(sys::EVP_PKEY_derive(context.0, ptr::null_mut(), &raw mut length), WHAT)?;
            if padded {
                check(more::EVP_PKEY_CTX_set_dh_pad(context.0, 1), WHAT)?;
            }
            let mut secret = vec![0; length];
            check(sys::EVP_PKEY_derive(context.0, secret.as_mut_ptr(), &raw mut length), WHAT)?;
            secret.truncate(length);
            Ok(secret)
        }
    }

    /// Encapsulates a secret to a peer's key: `ssl_encapsulate`. Ciphertext and secret.
    pub fn encapsulate(self, peer: &PKeyRef<Public>) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        const WHAT: &str = "encapsulate";
        let context = self.context_of(peer)?;
        let (mut out_length, mut length) = (0, 0);
        // SAFETY: the context lives through the calls; both outputs have room for what the sizing call said.
        unsafe {
            check(sys::EVP_PKEY_encapsulate_init(context.0, ptr::null()), WHAT)?;
            let sized = sys::EVP_PKEY_encapsulate(
                context.0,
                ptr::null_mut(),
                &raw mut out_length,
                ptr::null_mut(),
                &raw mut length,
            );
            check(sized, WHAT)?;
            let (mut out, mut secret) = (vec![0; out_length], vec![0; length]);
            let done = sys::EVP_PKEY_encapsulate(
                context.0,
                out.as_mut_ptr(),
                &raw mut out_length,
                secret.as_mut_ptr(),
                &raw mut length,
            );
            check(done, WHAT)?;
            Ok((out, secret))
        }
    }

    /// Opens a ciphertext: `ssl_decapsulate`.
    pub fn decapsulate(self, own: &PKeyRef<Private>, ciphertext: &[u8]) -> Result<Vec<u8>, Failure> {
        const WHAT: &str = "decapsulate";
        let context = self.context_of(own)?;
        let mut length = 0;
        let (data, size) = (ciphertext.as_ptr(), ciphertext.len());
        // SAFETY: the context and ciphertext live through the calls; the secret has room for what the sizing call said.
        unsafe {
            check(sys::EVP_PKEY_decapsulate_init(context.0, ptr::null()), WHAT)?;
            check(sys::EVP_PKEY_decapsulate(context.0, ptr::null_mut(), &raw mut length, data, size), WHAT)?;
            let mut secret = vec![0; length];
            check(
                sys::EVP_PKEY_decapsulate(context.0, secret.as_mut_ptr(), &raw mut length, data, size),
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
    ) -> Result<PKey<Public>, Failure> {
        const WHAT: &str = "make a DH key";
        // Parameters take integers in the machine's order, which is little-endian on all that we run on.
        let little = |number: &[u8]| -> Vec<u8> { number.iter().rev().copied().collect() };
        let (mut p, mut g, mut y) = (little(prime), little(generator), public.map(little));
        let end = || number_param(ptr::null(), &mut []);
        let mut params =
            [number_param(c"p".as_ptr(), &mut p), number_param(c"g".as_ptr(), &mut g), end(), end()];
        let mut selection = more::EVP_PKEY_KEY_PARAMETERS;
        if let Some(y) = &mut y {
            params[2] = number_param(c"pub".as_ptr(), y);
            selection = more::EVP_PKEY_KEYPAIR;
        }
        let context = self.context_named(c"DH")?;
        let mut key = ptr::null_mut();
        // SAFETY: the context, numbers and parameters live through the calls; the key is ours once made.
        unsafe {
            check(sys::EVP_PKEY_fromdata_init(context.0), WHAT)?;
            check(sys::EVP_PKEY_fromdata(context.0, &raw mut key, selection, params.as_mut_ptr()), WHAT)?;
            Ok(PKey::from_ptr(key))
        }
    }

    /// What a client checks of a server's group and share: the end of `tls_process_ske_dhe`.
    pub fn check_finite_field(self, key: &PKeyRef<Public>) -> Result<(), Failure> {
        let context = self.context_of(key)?;
        // SAFETY: the context lives through the calls.
        unsafe {
            check(more::EVP_PKEY_param_check_quick(context.0), "check DH parameters")?;
            check(more::EVP_PKEY_public_check(context.0), "check a DH share")
        }
    }
}

fn number_param(key: *const c_char, number: &mut [u8]) -> ffi::OSSL_PARAM {
    ffi::OSSL_PARAM {
        key,
        data_type: if key.is_null() { 0 } else { ffi::OSSL_PARAM_UNSIGNED_INTEGER as _ },
        data: if key.is_null() { ptr::null_mut() } else { number.as_mut_ptr().cast() },
        data_size: number.len(),
        return_size: 0,
    }
}

/// Sets RSA-PSS where the scheme asks for it.
///
/// # Safety
/// `context` must be the live key context of a signature.
unsafe fn pad(context: *mut sys::EVP_PKEY_CTX, scheme: Scheme) -> Result<(), Failure> {
    if !scheme.pss {
        return Ok(());
    }
    // SAFETY: by the caller's promise.
    unsafe {
        check(sys::EVP_PKEY_CTX_set_rsa_padding(context, sys::RSA_PKCS1_PSS_PADDING), "set PSS padding")?;
        check(
            sys::EVP_PKEY_CTX_set_rsa_pss_saltlen(context, more::RSA_PSS_SALTLEN_DIGEST),
            "set the length of the salt",
        )
    }
}
