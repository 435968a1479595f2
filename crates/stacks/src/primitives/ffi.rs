//! Functions that libssl calls and the `openssl` crates do not declare. Names and types are those of OpenSSL 3.5's
//! public headers.

use libc::{c_char, c_int, c_long, size_t};
use openssl_sys::{EVP_CIPHER_CTX, EVP_MD_CTX, EVP_PKEY, EVP_PKEY_CTX};
use shakedown_ossl::ffi::{OSSL_LIB_CTX, OSSL_PARAM};

/// `rsa.h`: PKCS #1 v1.5 with TLS's check of the version inside.
pub const RSA_PKCS1_WITH_TLS_PADDING: c_int = 7;
/// `rsa.h`: a salt as long as the digest.
pub const RSA_PSS_SALTLEN_DIGEST: c_int = -1;
/// `evp.h`: parameters without a key.
pub const EVP_PKEY_KEY_PARAMETERS: c_int = 0x84;
/// `evp.h`: public and private key with parameters.
pub const EVP_PKEY_KEYPAIR: c_int = 0x87;

/// Begins a signature or its verification.
pub type DigestInit = unsafe extern "C" fn(
    *mut EVP_MD_CTX,
    *mut *mut EVP_PKEY_CTX,
    *const c_char,
    *mut OSSL_LIB_CTX,
    *const c_char,
    *mut EVP_PKEY,
    *const OSSL_PARAM,
) -> c_int;

unsafe extern "C" {
    pub fn d2i_PUBKEY_ex(
        key: *mut *mut EVP_PKEY,
        data: *mut *const u8,
        length: c_long,
        library: *mut OSSL_LIB_CTX,
        query: *const c_char,
    ) -> *mut EVP_PKEY;
    pub fn EVP_PKEY_CTX_set_group_name(context: *mut EVP_PKEY_CTX, name: *const c_char) -> c_int;
    pub fn EVP_PKEY_set1_encoded_public_key(key: *mut EVP_PKEY, data: *const u8, length: size_t) -> c_int;
    pub fn EVP_PKEY_get1_encoded_public_key(key: *mut EVP_PKEY, data: *mut *mut u8) -> size_t;
    pub fn EVP_PKEY_param_check_quick(context: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_public_check(context: *mut EVP_PKEY_CTX) -> c_int;
    pub fn EVP_PKEY_CTX_set_dh_pad(context: *mut EVP_PKEY_CTX, pad: c_int) -> c_int;
    pub fn EVP_DigestSignInit_ex(
        context: *mut EVP_MD_CTX,
        key_context: *mut *mut EVP_PKEY_CTX,
        digest: *const c_char,
        library: *mut OSSL_LIB_CTX,
        query: *const c_char,
        key: *mut EVP_PKEY,
        params: *const OSSL_PARAM,
    ) -> c_int;
    pub fn EVP_DigestVerifyInit_ex(
        context: *mut EVP_MD_CTX,
        key_context: *mut *mut EVP_PKEY_CTX,
        digest: *const c_char,
        library: *mut OSSL_LIB_CTX,
        query: *const c_char,
        key: *mut EVP_PKEY,
        params: *const OSSL_PARAM,
    ) -> c_int;
    pub fn EVP_CipherFinal_ex(context: *mut EVP_CIPHER_CTX, out: *mut u8, length: *mut c_int) -> c_int;
    pub fn EVP_DigestSignUpdate(context: *mut EVP_MD_CTX, data: *const libc::c_void, length: size_t)
    -> c_int;
}
