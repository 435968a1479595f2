//! How long the sessions of a server that faces a network may be resumed.
//!
//! A session ends a week after the full handshake that made it (RFC 8446 section 4.6.1), or with the first certificate of
//! the peer's chain that ends, whichever comes first. TLS 1.3 makes a new session of each resumption, and libssl lets it
//! live as long as the first one; here it inherits the end of the first, for no certificate has been presented since
//! (RFC 9190 section 5.7). The end is the session's own time and timeout, so tickets are no longer for it. Sessions that are
//! kept elsewhere also hold when they were made, as libssl's application data.

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

/// Seconds since 1970; 0 before, where no certificate of today is valid.
fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// When a certificate ends; `None` where its time cannot be read.
fn ends_s(certificate: &X509Ref) -> Option<i64> {
    let difference = Asn1Time::from_unix(0).ok()?.diff(certificate.not_after()).ok()?;
    Some(i64::from(difference.days) * 86_400 + i64::from(difference.secs))
}

/// When a session ends that a full handshake made at `made_s`; what cannot be read has ended.
fn begin_s(ssl: &SslRef, made_s: i64) -> i64 {
    let chain = ssl.verified_chain().into_iter().flatten();
    let first_end = chain.map(|certificate| ends_s(certificate).unwrap_or(made_s)).min();
    let limit = made_s + MAX_LIFETIME_S;
    first_end.map_or(limit, |end| end.min(limit))
}

/// The end of the session that a connection resumes, in seconds since 1970.
#[derive(Clone, Copy)]
struct Inherited(i64);

fn inherited() -> Option<Index<Ssl, Inherited>> {
    static INDEX: OnceLock<Option<Index<Ssl, Inherited>>> = OnceLock::new();
    *INDEX.get_or_init(|| Ssl::new_ex_index().ok())
}

/// Bounds a session that libssl has just made on a connection: by the end of the one that was resumed, or, after a full
/// handshake, by the session's time and the peer's certificates. The session's own time counts, which libssl adds the
/// timeout to; the clock may have gone on since.
pub fn bound(ssl: &SslRef, session: &SslSessionRef) -> bool {
    let made_s = session.time();
    // A handshake by an external key counts as a resumption to libssl, and inherits nothing.
    let inherits = inherited().filter(|_| ssl.session_reused()).and_then(|index| ssl.ex_data(index));
    let until_s = inherits.map_or_else(|| begin_s(ssl, made_s), |inherits| inherits.0);
    // What is written with a timeout of 0 is read with one of 3 s.
    let left_s = libc::c_long::try_from((until_s - made_s).max(1)).unwrap_or(libc::c_long::MAX);
    // SAFETY: the session is live, and libssl has just made it on this thread; one that is in libssl's cache already is
    // moved within it under the cache's lock.
    unsafe { SSL_SESSION_set_timeout(session.as_ptr(), left_s) == 1 }
}

/// Bounds a session that is to be kept elsewhere; the time of the full handshake behind it. `None` where it cannot be
/// bounded, and is not to be resumed.
pub fn bound_kept(ssl: &SslRef, session: &SslSessionRef) -> Option<i64> {
    bound(ssl, session).then_some(())?;
    // A session that was resumed has left its own to the one made of it.
    let made_s = made_s(session).filter(|_| ssl.session_reused()).unwrap_or(session.time());
    let bytes = made_s.to_be_bytes();
    // SAFETY: the session is live, and libssl has just made it on this thread; the bytes are copied.
    let written =
        unsafe { SSL_SESSION_set1_ticket_appdata(session.as_ptr(), bytes.as_ptr().cast(), bytes.len()) == 1 };
    written.then_some(made_s)
}

/// When the full handshake behind a session was, as [`bound_kept`] wrote it.
fn made_s(session: &SslSessionRef) -> Option<i64> {
    let (mut data, mut length) = (std::ptr::null_mut(), 0);
    // SAFETY: the session is live; what libssl points to is its own and readable for its length while it lives.
    let bytes = unsafe {
        let found = SSL_SESSION_get0_ticket_appdata(session.as_ptr(), &raw mut data, &raw mut length) == 1;
        if !found || data.is_null() {
            return None;
        }
        std::slice::from_raw_parts(data.cast::<u8>(), length).try_into().ok()?
    };
    Some(i64::from_be_bytes(bytes))
}

/// Whether a session may be resumed now that was made, by a handshake of either kind, at `made_s`; if so, what is made
/// of it ends when it does. One that was made later than now is of a clock that has been set back since: its age
/// is unknown.
fn is_resumable(ssl: &mut SslRef, session: &SslSessionRef, made_s: i64) -> bool {
    let (now_s, until_s) = (now_s(), session.time().saturating_add(session.timeout()));
    let Some(index) = inherited() else { return false };
    let lives = made_s.max(session.time()) <= now_s && now_s <= until_s;
    if lives {
        ssl.set_ex_data(index, Inherited(until_s));
    }
    lives
}

/// The same of a session that was kept elsewhere, after [`bound_kept`].
pub fn is_kept_resumable(ssl: &mut SslRef, session: &SslSessionRef) -> bool {
    made_s(session).is_some_and(|made_s| is_resumable(ssl, session, made_s))
}

/// Bounds what tickets hold or name.
pub fn bound_tickets(builder: &SslContextBuilder) {
    // SAFETY: the context is live; the callbacks are static functions of the right types and take no argument.
    unsafe {
        SSL_CTX_set_session_ticket_cb(builder.as_ptr(), generate, decrypted, std::ptr::null_mut());
    }
}

/// A ticket is about to be made of the connection's session.
unsafe extern "C" fn generate(ssl: *mut sys::SSL, _: *mut libc::c_void) -> libc::c_int {
    // SAFETY: libssl passes a live connection.
    let ssl = unsafe { SslRef::from_ptr(ssl) };
    libc::c_int::from(ssl.session().is_some_and(|session| bound(ssl, session)))
}

/// A ticket has been decrypted, or could not be.
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
    // SAFETY: libssl passes a live connection, and the session that it has just read, which has no other owner yet.
    let (ssl, session) = unsafe { (SslRef::from_ptr_mut(ssl), SslSessionRef::from_ptr(session)) };
    if is_resumable(ssl, session, session.time()) { wanted } else { IGNORE_RENEW }
}
