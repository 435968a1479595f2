//! The pre-shared key that both sides hold.

use openssl::ssl::SslContextBuilder;
use openssl_sys as sys;
use shakedown_ossl::ffi;
use shakedown_trace::suite::{Cipher, Protocol, TlsCipher};
use shakedown_trace::{Side, Suite};

/// The client's identity: the default of OpenSSL's own tools.
pub const IDENTITY: &str = "Client_identity";

/// 32 bytes, so that TLS 1.3 can use it with SHA-256.
pub const KEY: [u8; 32] = *b"shakedown laboratory key of both";

/// Installs the key of a side for suites up to TLS 1.2.
pub fn install(side: Side, builder: &mut SslContextBuilder) {
    match side {
        Side::Client => builder.set_psk_client_callback(|_, _, identity, key| {
            identity[..IDENTITY.len()].copy_from_slice(IDENTITY.as_bytes());
            identity[IDENTITY.len()] = 0;
            key[..KEY.len()].copy_from_slice(&KEY);
            Ok(KEY.len())
        }),
        Side::Server => builder.set_psk_server_callback(|_, identity, key| {
            if identity != Some(IDENTITY.as_bytes()) {
                return Ok(0);
            }
            key[..KEY.len()].copy_from_slice(&KEY);
            Ok(KEY.len())
        }),
    }
}

/// Installs the key of a side for TLS 1.3.
pub fn install_tls13(side: Side, suite: &Suite, builder: &mut SslContextBuilder) {
    debug_assert_eq!(suite.protocol, Protocol::Tls13);
    let (offer, find): (ffi::PskUseSession, ffi::PskFindSession) = match suite.cipher {
        Cipher::Tls(TlsCipher::Aes256Gcm) => (use_session::<0x02>, find_session::<0x02>),
        Cipher::Tls(TlsCipher::Chacha20) => (use_session::<0x03>, find_session::<0x03>),
        Cipher::Tls(TlsCipher::Aes128Ccm) => (use_session::<0x04>, find_session::<0x04>),
        Cipher::Tls(TlsCipher::Aes128Ccm8) => (use_session::<0x05>, find_session::<0x05>),
        _ => (use_session::<0x01>, find_session::<0x01>),
    };
    // SAFETY: a live context; the callbacks are static functions of the right type.
    unsafe {
        match side {
            Side::Client => ffi::SSL_CTX_set_psk_use_session_callback(builder.as_ptr(), Some(offer)),
            Side::Server => ffi::SSL_CTX_set_psk_find_session_callback(builder.as_ptr(), Some(find)),
        }
    }
}

/// The client offers the key, which is bound to the cipher suite 0x13, `CIPHER`.
unsafe extern "C" fn use_session<const CIPHER: u8>(
    ssl: *mut sys::SSL,
    _: *const sys::EVP_MD,
    id: *mut *const u8,
    id_length: *mut usize,
    session: *mut *mut sys::SSL_SESSION,
) -> libc::c_int {
    // SAFETY: libssl passes a live connection and valid pointers for the results.
    unsafe {
        *id = IDENTITY.as_ptr();
        *id_length = IDENTITY.len();
        *session = make_session(ssl, CIPHER);
        libc::c_int::from(!(*session).is_null())
    }
}

/// The server looks the key up.
unsafe extern "C" fn find_session<const CIPHER: u8>(
    ssl: *mut sys::SSL,
    identity: *const u8,
    identity_length: usize,
    session: *mut *mut sys::SSL_SESSION,
) -> libc::c_int {
    // SAFETY: libssl passes a live connection, a readable identity and a valid pointer for the result.
    unsafe {
        let given = std::slice::from_raw_parts(identity, identity_length);
        *session =
            if given == IDENTITY.as_bytes() { make_session(ssl, CIPHER) } else { std::ptr::null_mut() };
    }
    1
}

/// A session with the key; null if OpenSSL has no memory or no such cipher.
///
/// # Safety
/// `ssl` must be live.
unsafe fn make_session(ssl: *mut sys::SSL, cipher: u8) -> *mut sys::SSL_SESSION {
    // SAFETY: the connection is live; every result is checked before it is used.
    unsafe {
        let cipher = ffi::SSL_CIPHER_find(ssl, [0x13, cipher].as_ptr());
        let session = ffi::SSL_SESSION_new();
        if cipher.is_null()
            || session.is_null()
            || ffi::SSL_SESSION_set1_master_key(session, KEY.as_ptr(), KEY.len()) != 1
            || ffi::SSL_SESSION_set_cipher(session, cipher) != 1
            || ffi::SSL_SESSION_set_protocol_version(session, sys::TLS1_3_VERSION) != 1
        {
            sys::SSL_SESSION_free(session);
            return std::ptr::null_mut();
        }
        session
    }
}
