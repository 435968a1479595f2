//! The lifetime of sessions of a server on a network.
//!
//! A session expires a week after its full handshake (RFC 8446 section 4.6.1), or as soon as any certificate of
//! the peer's chain expires. TLS 1.3 creates a new session in each resumption, and libssl gives it the
//! same lifetime as the first one. Here it inherits the first one's expiry, because no certificate has been presented
//! since (RFC 9190 section 5.7). The expiry is the session's own time plus timeout, so tickets do not become longer.
//! Sessions in an external cache also contain the time of their full handshake, as libssl's application data.

use foreign_types::ForeignTypeRef;
use openssl::asn1::Asn1Time;
use openssl::ex_data::Index;
use openssl::ssl::{Ssl, SslContextBuilder, SslRef, SslSessionRef};
use openssl::x509::X509Ref;
use openssl_sys as sys;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

const MAX_LIFETIME_S: i64 = 7 * 24 * 3600;

type Generate = unsafe extern "C" fn(*mut sys::SSL, *mut libc::c_void) -> libc::c_int;
type Decrypted = unsafe extern "C" fn(
    *mut sys::SSL,
    *mut sys::SSL_SESSION,
    *const u8,
    usize,
    libc::c_int,
    *mut libc::c_void,
) -> libc::c_int;

unsafe extern "C" {
    fn SSL_CTX_set_session_ticket_cb(
        context: *mut sys::SSL_CTX,
        generate: Generate,
        decrypted: Decrypted,
        argument: *mut libc::c_void,
    ) -> libc::c_int;
    fn SSL_SESSION_set1_ticket_appdata(
        session: *mut sys::SSL_SESSION,
        data: *const libc::c_void,
        length: usize,
    ) -> libc::c_int;
    fn SSL_SESSION_get0_ticket_appdata(
        session: *mut sys::SSL_SESSION,
        data: *mut *mut libc::c_void,
        length: *mut usize,
    ) -> libc::c_int;
    fn SSL_SESSION_set_timeout(session: *mut sys::SSL_SESSION, seconds: libc::c_long) -> libc::c_long;
}

/// Seconds since 1970; 0 for earlier times, at which no certificate is valid.
fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The time at which a certificate expires; `None` if it cannot be parsed.
fn ends_s(certificate: &X509Ref) -> Option<i64> {
    let difference = Asn1Time::from_unix(0).ok()?.diff(certificate.not_after()).ok()?;
    Some(i64::from(difference.days) * 86_400 + i64::from(difference.secs))
}

/// The expiry of a session whose full handshake was at `made_s`. A certificate whose time cannot be parsed has expired.
fn begin_s(ssl: &SslRef, made_s: i64) -> i64 {
    let chain = ssl.verified_chain().into_iter().flatten();
    let first_end = chain.map(|certificate| ends_s(certificate).unwrap_or(made_s)).min();
    let limit = made_s + MAX_LIFETIME_S;
    first_end.map_or(limit, |end| end.min(limit))
}

/// The expiry of the session that a connection resumes, in seconds since 1970.
#[derive(Clone, Copy)]
struct Inherited(i64);

fn inherited() -> Option<Index<Ssl, Inherited>> {
    static INDEX: OnceLock<Option<Index<Ssl, Inherited>>> = OnceLock::new();
    *INDEX.get_or_init(|| Ssl::new_ex_index().ok())
}

/// Limits a session that libssl has just created on a connection: to the expiry of the resumed one, or after a full
/// handshake by the session's time and the peer's certificates. The session's own time counts, because libssl adds the
/// timeout to it; the clock may have advanced since.
pub fn bound(ssl: &SslRef, session: &SslSessionRef) -> bool {
    let made_s = session.time();
    // libssl reports a handshake with an external key as a resumption; it inherits nothing.
    let inherits = inherited().filter(|_| ssl.session_reused()).and_then(|index| ssl.ex_data(index));
    let until_s = inherits.map_or_else(|| begin_s(ssl, made_s), |inherits| inherits.0);
    // libssl decodes a timeout of 0 as 3 s.
    let left_s = libc::c_long::try_from((until_s - made_s).max(1)).unwrap_or(libc::c_long::MAX);
    // SAFETY: the session is live, and libssl has just created it on this thread; if it is already in libssl's cache,
    // it is moved within it under the cache's lock.
    unsafe { SSL_SESSION_set_timeout(session.as_ptr(), left_s) == 1 }
}

/// Limits a session for an external cache, and returns the time of its full handshake. `None` if it cannot be limited
/// and must not be resumed.
pub fn bound_kept(ssl: &SslRef, session: &SslSessionRef) -> Option<i64> {
    bound(ssl, session).then_some(())?;
    // A new session in a resumption has a copy of the resumed one's application data.
    let made_s = made_s(session).filter(|_| ssl.session_reused()).unwrap_or(session.time());
    let bytes = made_s.to_be_bytes();
    // SAFETY: the session is live, and libssl has just created it on this thread; the bytes are copied.
    let written =
        unsafe { SSL_SESSION_set1_ticket_appdata(session.as_ptr(), bytes.as_ptr().cast(), bytes.len()) == 1 };
    written.then_some(made_s)
}

/// The time of a session's full handshake, as [`bound_kept`] stored it.
fn made_s(session: &SslSessionRef) -> Option<i64> {
    let (mut data, mut length) = (std::ptr::null_mut(), 0);
    // SAFETY: the session is live; libssl owns the data, which is readable for its length while the session lives.
    let bytes = unsafe {
        let found = SSL_SESSION_get0_ticket_appdata(session.as_ptr(), &raw mut data, &raw mut length) == 1;
        if !found || data.is_null() {
            return None;
        }
        std::slice::from_raw_parts(data.cast::<u8>(), length).try_into().ok()?
    };
    Some(i64::from_be_bytes(bytes))
}

/// Whether a session whose handshake was at `made_s` can be resumed now; if so, new sessions of the connection inherit
/// its expiry. If its time is in the future, the clock has been set back, and its age is unknown.
fn is_resumable(ssl: &mut SslRef, session: &SslSessionRef, made_s: i64) -> bool {
    let (now_s, until_s) = (now_s(), session.time().saturating_add(session.timeout()));
    let Some(index) = inherited() else { return false };
    let lives = made_s.max(session.time()) <= now_s && now_s <= until_s;
    if lives {
        ssl.set_ex_data(index, Inherited(until_s));
    }
    lives
}

/// The same for a session of an external cache, after [`bound_kept`].
pub fn is_kept_resumable(ssl: &mut SslRef, session: &SslSessionRef) -> bool {
    made_s(session).is_some_and(|made_s| is_resumable(ssl, session, made_s))
}

/// Limits the sessions that tickets contain or name.
pub fn bound_tickets(builder: &SslContextBuilder) {
    // SAFETY: the context is live; the callbacks are static functions of the right types and take no argument.
    unsafe {
        SSL_CTX_set_session_ticket_cb(builder.as_ptr(), generate, decrypted, std::ptr::null_mut());
    }
}

/// A ticket is about to be created from the connection's session.
unsafe extern "C" fn generate(ssl: *mut sys::SSL, _: *mut libc::c_void) -> libc::c_int {
    // SAFETY: libssl passes a live connection.
    let ssl = unsafe { SslRef::from_ptr(ssl) };
    libc::c_int::from(ssl.session().is_some_and(|session| bound(ssl, session)))
}

/// A ticket has been decrypted, or decryption has failed.
unsafe extern "C" fn decrypted(
    ssl: *mut sys::SSL,
    session: *mut sys::SSL_SESSION,
    _: *const u8,
    _: usize,
    status: libc::c_int,
    _: *mut libc::c_void,
) -> libc::c_int {
    // SSL_TICKET_SUCCESS, _SUCCESS_RENEW; SSL_TICKET_RETURN_IGNORE_RENEW, _USE, _USE_RENEW (ssl.h).
    const SUCCESS: libc::c_int = 5;
    const SUCCESS_RENEW: libc::c_int = 6;
    const IGNORE_RENEW: libc::c_int = 2;
    const USE: libc::c_int = 3;
    const USE_RENEW: libc::c_int = 4;
    let wanted = match status {
        SUCCESS => USE,
        SUCCESS_RENEW => USE_RENEW,
        _ => return IGNORE_RENEW,
    };
    if session.is_null() {
        return IGNORE_RENEW;
    }
    // SAFETY: libssl passes a live connection, and the session that it has just decoded, which has no other owner yet.
    let (ssl, session) = unsafe { (SslRef::from_ptr_mut(ssl), SslSessionRef::from_ptr(session)) };
    if is_resumable(ssl, session, session.time()) { wanted } else { IGNORE_RENEW }
}
