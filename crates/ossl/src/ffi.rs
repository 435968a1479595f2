//! Declarations that `openssl-sys` lacks: providers, dispatch tables, and constructors that take a library
//! context. Names, types and numbers are those of OpenSSL 3.5's public headers.

#![allow(non_camel_case_types)] // OpenSSL's own names; documented there

use libc::{c_char, c_int, c_uint, c_void, size_t};
pub use openssl_sys::{OSSL_LIB_CTX, OSSL_PARAM, OSSL_PROVIDER};

pub enum OSSL_CORE_HANDLE {}

/// `OSSL_DISPATCH`: a function by its number; a table ends with number 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OSSL_DISPATCH {
    pub function_id: c_int,
    pub function: *const c_void,
}

/// `OSSL_ALGORITHM`: an implementation by its names; a table ends with null names.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OSSL_ALGORITHM {
    pub algorithm_names: *const c_char,
    pub property_definition: *const c_char,
    pub implementation: *const OSSL_DISPATCH,
    pub algorithm_description: *const c_char,
}

pub type ProviderInit = unsafe extern "C" fn(
    *const OSSL_CORE_HANDLE,
    *const OSSL_DISPATCH,
    *mut *const OSSL_DISPATCH,
    *mut *mut c_void,
) -> c_int;

pub type ParamsCallback = unsafe extern "C" fn(*const OSSL_PARAM, *mut c_void) -> c_int;

// core_dispatch.h: functions of a provider.
pub const OSSL_FUNC_PROVIDER_QUERY_OPERATION: c_int = 1027;
pub const OSSL_FUNC_PROVIDER_GET_CAPABILITIES: c_int = 1030;

// core_dispatch.h: operations.
pub const OSSL_OP_DIGEST: c_int = 1;
pub const OSSL_OP_CIPHER: c_int = 2;
pub const OSSL_OP_MAC: c_int = 3;
pub const OSSL_OP_KDF: c_int = 4;
pub const OSSL_OP_RAND: c_int = 5;
pub const OSSL_OP_KEYMGMT: c_int = 10;
pub const OSSL_OP_KEYEXCH: c_int = 11;
pub const OSSL_OP_SIGNATURE: c_int = 12;
pub const OSSL_OP_ASYM_CIPHER: c_int = 13;
pub const OSSL_OP_KEM: c_int = 14;
pub const OSSL_OP_DECODER: c_int = 21;

// core.h and evp.h: parts of a key.
pub const OSSL_KEYMGMT_SELECT_PUBLIC_KEY: c_int = 0x02;
pub const OSSL_KEYMGMT_SELECT_KEYPAIR: c_int = 0x03;

// core.h: types of parameters.
pub const OSSL_PARAM_UNSIGNED_INTEGER: c_uint = 2;
pub const OSSL_PARAM_INTEGER: c_uint = 1;
pub const OSSL_PARAM_UTF8_STRING: c_uint = 4;

unsafe extern "C" {
    pub fn OSSL_PROVIDER_add_builtin(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        init: ProviderInit,
    ) -> c_int;
    /// The init function of the default provider; in the static library, but not in a public header.
    pub fn ossl_default_provider_init(
        handle: *const OSSL_CORE_HANDLE,
        core: *const OSSL_DISPATCH,
        out: *mut *const OSSL_DISPATCH,
        provider_context: *mut *mut c_void,
    ) -> c_int;
    pub fn OSSL_PROVIDER_get0_provider_ctx(provider: *const OSSL_PROVIDER) -> *mut c_void;
    pub fn OSSL_PROVIDER_query_operation(
        provider: *const OSSL_PROVIDER,
        operation: c_int,
        no_cache: *mut c_int,
    ) -> *const OSSL_ALGORITHM;
    pub fn OSSL_PROVIDER_get_capabilities(
        provider: *const OSSL_PROVIDER,
        capability: *const c_char,
        callback: ParamsCallback,
        argument: *mut c_void,
    ) -> c_int;

    pub fn SSL_CTX_new_ex(
        library: *mut OSSL_LIB_CTX,
        query: *const c_char,
        method: *const openssl_sys::SSL_METHOD,
    ) -> *mut openssl_sys::SSL_CTX;
    pub fn X509_new_ex(library: *mut OSSL_LIB_CTX, query: *const c_char) -> *mut openssl_sys::X509;
    pub fn d2i_AutoPrivateKey_ex(
        key: *mut *mut openssl_sys::EVP_PKEY,
        data: *mut *const u8,
        length: libc::c_long,
        library: *mut OSSL_LIB_CTX,
        query: *const c_char,
    ) -> *mut openssl_sys::EVP_PKEY;
    pub fn EVP_PKEY_CTX_new_from_name(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        query: *const c_char,
    ) -> *mut openssl_sys::EVP_PKEY_CTX;
    pub fn EVP_PKEY_CTX_new_from_pkey(
        library: *mut OSSL_LIB_CTX,
        key: *mut openssl_sys::EVP_PKEY,
        query: *const c_char,
    ) -> *mut openssl_sys::EVP_PKEY_CTX;

    pub fn SSL_CTX_set_msg_callback(context: *mut openssl_sys::SSL_CTX, callback: Option<MessageCallback>);
    pub fn SSL_CTX_set_info_callback(context: *mut openssl_sys::SSL_CTX, callback: Option<InfoCallback>);
    pub fn SSL_CTX_set_security_callback(
        context: *mut openssl_sys::SSL_CTX,
        callback: Option<SecurityCallback>,
    );
    pub fn SSL_CTX_set_security_level(context: *mut openssl_sys::SSL_CTX, level: c_int);
    pub fn SSL_CTX_set_timeout(context: *mut openssl_sys::SSL_CTX, seconds: libc::c_long) -> libc::c_long;
    pub fn SSL_get_cipher_list(ssl: *const openssl_sys::SSL, place: c_int) -> *const c_char;
    pub fn SSL_set_shutdown(ssl: *mut openssl_sys::SSL, mode: c_int);
    pub fn SSL_want(ssl: *const openssl_sys::SSL) -> c_int;
    pub fn SSL_set_bio(ssl: *mut openssl_sys::SSL, read: *mut openssl_sys::BIO, write: *mut openssl_sys::BIO);
    pub fn SSL_state_string_long(ssl: *const openssl_sys::SSL) -> *const c_char;
    pub fn SSL_CTX_set_psk_use_session_callback(
        context: *mut openssl_sys::SSL_CTX,
        callback: Option<PskUseSession>,
    );
    pub fn SSL_CTX_set_psk_find_session_callback(
        context: *mut openssl_sys::SSL_CTX,
        callback: Option<PskFindSession>,
    );
    pub fn SSL_SESSION_set1_master_key(
        session: *mut openssl_sys::SSL_SESSION,
        key: *const u8,
        length: size_t,
    ) -> c_int;
    pub fn SSL_SESSION_set_cipher(
        session: *mut openssl_sys::SSL_SESSION,
        cipher: *const openssl_sys::SSL_CIPHER,
    ) -> c_int;
    pub fn SSL_SESSION_set_protocol_version(session: *mut openssl_sys::SSL_SESSION, version: c_int) -> c_int;
    pub fn SSL_SESSION_new() -> *mut openssl_sys::SSL_SESSION;
    pub fn SSL_CIPHER_find(ssl: *mut openssl_sys::SSL, id: *const u8) -> *const openssl_sys::SSL_CIPHER;
    pub fn BIO_ctrl(
        bio: *mut openssl_sys::BIO,
        command: c_int,
        number: libc::c_long,
        argument: *mut c_void,
    ) -> libc::c_long;
}

// Properties of keys, from the structures in which the default provider stores them.
unsafe extern "C" {
    pub fn RSA_bits(key: *const c_void) -> c_int;
    pub fn RSA_get0_n(key: *const c_void) -> *const openssl_sys::BIGNUM;
    pub fn RSA_get0_e(key: *const c_void) -> *const openssl_sys::BIGNUM;
    pub fn BN_is_word(number: *const openssl_sys::BIGNUM, word: openssl_sys::BN_ULONG) -> c_int;
    pub fn DSA_bits(key: *const c_void) -> c_int;
    pub fn DH_bits(key: *const c_void) -> c_int;
    pub fn DH_get_nid(key: *const c_void) -> c_int;
}

/// `RAND_METHOD`: the functions behind `RAND_bytes` and its like, in every library context.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RAND_METHOD {
    pub seed: Option<unsafe extern "C" fn(*const c_void, c_int) -> c_int>,
    pub bytes: Option<unsafe extern "C" fn(*mut u8, c_int) -> c_int>,
    pub cleanup: Option<unsafe extern "C" fn()>,
    pub add: Option<unsafe extern "C" fn(*const c_void, c_int, f64) -> c_int>,
    pub pseudorand: Option<unsafe extern "C" fn(*mut u8, c_int) -> c_int>,
    pub status: Option<unsafe extern "C" fn() -> c_int>,
}

pub enum EVP_RAND_CTX {}

unsafe extern "C" {
    pub fn RAND_OpenSSL() -> *const RAND_METHOD;
    pub fn RAND_set_rand_method(method: *const RAND_METHOD) -> c_int;
    pub fn RAND_get0_private(library: *mut OSSL_LIB_CTX) -> *mut EVP_RAND_CTX;
    pub fn EVP_RAND_generate(
        generator: *mut EVP_RAND_CTX,
        out: *mut u8,
        length: size_t,
        strength: c_uint,
        prediction_resistance: c_int,
        additional: *const u8,
        additional_length: size_t,
    ) -> c_int;
}

pub type MessageCallback = unsafe extern "C" fn(
    write: c_int,
    version: c_int,
    content_type: c_int,
    data: *const c_void,
    length: size_t,
    ssl: *mut openssl_sys::SSL,
    argument: *mut c_void,
);
pub type InfoCallback = unsafe extern "C" fn(ssl: *const openssl_sys::SSL, kind: c_int, value: c_int);
pub type SecurityCallback = unsafe extern "C" fn(
    ssl: *const openssl_sys::SSL,
    context: *const openssl_sys::SSL_CTX,
    operation: c_int,
    bits: c_int,
    nid: c_int,
    other: *mut c_void,
    extra: *mut c_void,
) -> c_int;
pub type PskUseSession = unsafe extern "C" fn(
    ssl: *mut openssl_sys::SSL,
    digest: *const openssl_sys::EVP_MD,
    id: *mut *const u8,
    id_length: *mut size_t,
    session: *mut *mut openssl_sys::SSL_SESSION,
) -> c_int;
pub type PskFindSession = unsafe extern "C" fn(
    ssl: *mut openssl_sys::SSL,
    identity: *const u8,
    identity_length: size_t,
    session: *mut *mut openssl_sys::SSL_SESSION,
) -> c_int;
