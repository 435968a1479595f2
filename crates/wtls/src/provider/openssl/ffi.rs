//! Low-level functions of libcrypto that the `openssl` crates do not declare, with the layouts of
//! `rc5.h`, `idea.h`, `des.h`, `md5.h` and `ec.h`.

use libc::{c_int, c_long, c_uchar, c_uint, c_void, size_t};
use openssl_sys::{BIGNUM, BN_CTX, EC_KEY, ECDSA_SIG, SHA_CTX};

pub const ENCRYPT: c_int = 1;
pub const DECRYPT: c_int = 0;

/// RC5_32_KEY, with space for 16 rounds.
#[repr(C)]
pub struct Rc5Key {
    rounds: c_int,
    data: [c_uint; 34],
}

#[repr(C)]
pub struct IdeaKey {
    data: [[c_uint; 6]; 9],
}

#[repr(C)]
pub struct DesKey {
    subkeys: [[c_uint; 2]; 16],
}

/// MD5_CTX.
#[repr(C)]
#[derive(Clone)]
pub struct Md5Context {
    pub state: [c_uint; 4],
    length: [c_uint; 2],
    data: [c_uint; 16],
    count: c_uint,
}

unsafe extern "C" {
    pub fn RC5_32_set_key(key: *mut Rc5Key, length: c_int, data: *const c_uchar, rounds: c_int) -> c_int;
    pub fn RC5_32_cbc_encrypt(
        input: *const c_uchar,
        output: *mut c_uchar,
        length: c_long,
        key: *mut Rc5Key,
        iv: *mut c_uchar,
        encrypt: c_int,
    );

    pub fn IDEA_set_encrypt_key(data: *const c_uchar, key: *mut IdeaKey);
    pub fn IDEA_set_decrypt_key(encrypt_key: *mut IdeaKey, decrypt_key: *mut IdeaKey);
    pub fn IDEA_cbc_encrypt(
        input: *const c_uchar,
        output: *mut c_uchar,
        length: c_long,
        key: *mut IdeaKey,
        iv: *mut c_uchar,
        encrypt: c_int,
    );

    pub fn DES_set_key_unchecked(data: *const c_uchar, key: *mut DesKey);
    pub fn DES_ncbc_encrypt(
        input: *const c_uchar,
        output: *mut c_uchar,
        length: c_long,
        key: *mut DesKey,
        iv: *mut c_uchar,
        encrypt: c_int,
    );
    pub fn DES_ede3_cbc_encrypt(
        input: *const c_uchar,
        output: *mut c_uchar,
        length: c_long,
        key1: *mut DesKey,
        key2: *mut DesKey,
        key3: *mut DesKey,
        iv: *mut c_uchar,
        encrypt: c_int,
    );

    pub fn MD5_Init(context: *mut Md5Context) -> c_int;
    pub fn MD5_Update(context: *mut Md5Context, data: *const c_void, length: size_t) -> c_int;
    pub fn MD5_Final(digest: *mut c_uchar, context: *mut Md5Context) -> c_int;
    pub fn MD5_Transform(context: *mut Md5Context, block: *const c_uchar);
    pub fn SHA1_Transform(context: *mut SHA_CTX, block: *const c_uchar);

    pub fn BN_GF2m_poly2arr(polynomial: *const BIGNUM, exponents: *mut c_int, room: c_int) -> c_int;
    pub fn BN_GF2m_add(sum: *mut BIGNUM, one: *const BIGNUM, other: *const BIGNUM) -> c_int;
    pub fn BN_GF2m_mod_sqr_arr(
        square: *mut BIGNUM,
        of: *const BIGNUM,
        exponents: *const c_int,
        context: *mut BN_CTX,
    ) -> c_int;
    pub fn BN_GF2m_mod_mul_arr(
        product: *mut BIGNUM,
        one: *const BIGNUM,
        other: *const BIGNUM,
        exponents: *const c_int,
        context: *mut BN_CTX,
    ) -> c_int;
    pub fn BN_GF2m_mod_div(
        quotient: *mut BIGNUM,
        dividend: *const BIGNUM,
        divisor: *const BIGNUM,
        polynomial: *const BIGNUM,
        context: *mut BN_CTX,
    ) -> c_int;

    pub fn ECDSA_do_sign_ex(
        digest: *const c_uchar,
        length: c_int,
        inverse_nonce: *const BIGNUM,
        r: *const BIGNUM,
        key: *mut EC_KEY,
    ) -> *mut ECDSA_SIG;
}
