//! One libssl connection over two memory BIOs.

use super::marks::{self, Watch};
use super::names;
use crate::rig::{SetupError, Subject};
use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslSession};
use openssl_sys as sys;
use shakedown_ossl::ffi;
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Failure, Side, Suite};
use std::ffi::CStr;
use std::rc::Rc;

/// A connection's end.
pub struct TlsEndpoint {
    // Declared first, dropped first: libssl calls back into the watch until it is freed.
    ssl: Ssl,
    watch: Box<Watch>,
    side: Side,
    suite: Rc<Suite>,
    read_bio: *mut sys::BIO,
    write_bio: *mut sys::BIO,
    /// Application data that has arrived.
    received: Vec<u8>,
}

const BIO_CTRL_PENDING: libc::c_int = 10;

impl TlsEndpoint {
    /// A connection that has not begun.
    pub fn new(
        context: &SslContext,
        side: Side,
        suite: Rc<Suite>,
        peer_name: Option<&str>,
    ) -> Result<Self, SetupError> {
        let refused = |what| move |stack| SetupError::OpenSsl { what, stack };
        let mut ssl = Ssl::new(context).map_err(refused("make a connection"))?;
        if let Some(name) = peer_name {
            ssl.param_mut().set_host(name).map_err(refused("check the peer's name"))?;
        }
        // SAFETY: BIO_s_mem is static; null results are checked.
        let (read_bio, write_bio) =
            unsafe { (sys::BIO_new(sys::BIO_s_mem()), sys::BIO_new(sys::BIO_s_mem())) };
        if read_bio.is_null() || write_bio.is_null() {
            return Err(SetupError::OpenSsl { what: "make a memory BIO", stack: ErrorStack::get() });
        }
        let watch = Box::<Watch>::default();
        // SAFETY: the connection is live and takes the BIOs over; they live as long as it does. The watch is
        // boxed and freed after the connection.
        unsafe {
            ffi::SSL_set_bio(raw(&ssl), read_bio, write_bio);
            marks::attach(raw(&ssl), &raw const *watch);
        }
        match side {
            Side::Client => ssl.set_connect_state(),
            Side::Server => ssl.set_accept_state(),
        }
        Ok(Self { ssl, watch, side, suite, read_bio, write_bio, received: Vec::new() })
    }

    /// Offers a session to resume.
    ///
    /// # Safety
    /// The session must come from a context with the same settings.
    pub unsafe fn offer(&mut self, session: &SslSession) -> Result<(), SetupError> {
        // SAFETY: handed on to the caller.
        unsafe { self.ssl.set_session(session) }
            .map_err(|stack| SetupError::OpenSsl { what: "offer a session", stack })
    }

    /// The session that this connection has made, if any.
    pub fn session(&self) -> Option<SslSession> {
        self.ssl.session().map(ToOwned::to_owned)
    }

    fn handshake(&mut self) -> Result<(), Failure> {
        // SAFETY: the connection is live.
        let result = unsafe { sys::SSL_do_handshake(raw(&self.ssl)) };
        self.check(result)
    }

    /// Turns libssl's answer into a failure, unless it only wants more bytes.
    fn check(&self, result: libc::c_int) -> Result<(), Failure> {
        if result > 0 {
            return Ok(());
        }
        const READING: libc::c_int = 3;
        // SSL_get_error would take any leftover in the error queue for a failure, and libcrypto leaves one there
        // when it is asked how secure a 512-bit key is.
        // SAFETY: the connection is live.
        if unsafe { ffi::SSL_want(raw(&self.ssl)) } == READING && self.watch.alert().is_none() {
            // SAFETY: no arguments.
            unsafe { sys::ERR_clear_error() };
            return Ok(());
        }
        let stack = ErrorStack::get();
        let reason =
            stack.errors().first().and_then(openssl::error::Error::reason).unwrap_or("connection closed");
        let verify = self.ssl.verify_result();
        let reason = if verify == openssl::x509::X509VerifyResult::OK
            || self.side == Side::Server && stack.errors().is_empty()
        {
            reason.to_owned()
        } else {
            format!("{reason} ({})", verify.error_string())
        };
        Err(Failure { side: self.side, state: self.state(), alert: self.watch.alert(), reason })
    }

    /// Reads what libssl has decrypted; post-handshake messages are processed on the way.
    fn read(&mut self) -> Result<(), Failure> {
        let mut chunk = [0_u8; 4096];
        loop {
            let mut length = 0;
            // SAFETY: the connection is live and the buffer is as long as said.
            let result = unsafe {
                sys::SSL_read_ex(raw(&self.ssl), chunk.as_mut_ptr().cast(), chunk.len(), &raw mut length)
            };
            if result != 1 {
                return self.check(result);
            }
            self.received.extend_from_slice(&chunk[..length]);
        }
    }

    /// Bytes that wait in a BIO.
    fn pending(bio: *mut sys::BIO) -> usize {
        // SAFETY: the BIO lives as long as the connection, which outlives this borrow of it.
        usize::try_from(unsafe { ffi::BIO_ctrl(bio, BIO_CTRL_PENDING, 0, std::ptr::null_mut()) }).unwrap_or(0)
    }
}

impl Drop for TlsEndpoint {
    fn drop(&mut self) {
        // libssl forgets the session of a connection that ends without a word; both sides are done here.
        const SENT_AND_RECEIVED: libc::c_int = 3;
        // SAFETY: the connection is live until this returns.
        unsafe { ffi::SSL_set_shutdown(raw(&self.ssl), SENT_AND_RECEIVED) };
    }
}

fn raw(ssl: &Ssl) -> *mut sys::SSL {
    use foreign_types::ForeignTypeRef;
    std::ops::Deref::deref(ssl).as_ptr()
}

impl Endpoint for TlsEndpoint {
    fn side(&self) -> Side {
        self.side
    }

    fn transport(&self) -> Transport {
        Transport::Stream
    }

    fn start(&mut self, _: Time) -> Result<(), Failure> {
        match self.side {
            Side::Client => self.handshake(),
            Side::Server => Ok(()),
        }
    }

    fn receive(&mut self, _: Time, bytes: &[u8]) -> Result<(), Failure> {
        let length = libc::c_int::try_from(bytes.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the BIO lives as long as the connection; the slice is readable for its length.
        unsafe { sys::BIO_write(self.read_bio, bytes.as_ptr().cast(), length) };
        if !self.is_established() {
            self.handshake()?;
        }
        if self.is_established() && Self::pending(self.read_bio) > 0 {
            self.read()?;
        }
        Ok(())
    }

    fn transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        let pending = Self::pending(self.write_bio);
        if pending == 0 {
            return false;
        }
        let start = buffer.len();
        buffer.resize(start + pending, 0);
        let length = libc::c_int::try_from(pending).unwrap_or(libc::c_int::MAX);
        // SAFETY: the BIO lives as long as the connection; the buffer has room for `pending` bytes.
        let read = unsafe { sys::BIO_read(self.write_bio, buffer[start..].as_mut_ptr().cast(), length) };
        buffer.truncate(start + usize::try_from(read).unwrap_or(0));
        buffer.len() > start
    }

    fn is_established(&self) -> bool {
        self.ssl.is_init_finished()
    }

    fn is_resumed(&self) -> bool {
        self.ssl.session_reused()
    }

    fn state(&self) -> String {
        // SAFETY: the connection is live; the text is static.
        let text = unsafe { CStr::from_ptr(ffi::SSL_state_string_long(raw(&self.ssl))) };
        text.to_string_lossy().into_owned()
    }

    fn send(&mut self, _: Time, data: &[u8]) -> Result<(), Failure> {
        let mut written = 0;
        // SAFETY: the connection is live; the slice is readable for its length. A memory BIO takes all at once.
        let result =
            unsafe { sys::SSL_write_ex(raw(&self.ssl), data.as_ptr().cast(), data.len(), &raw mut written) };
        self.check(result)
    }

    fn take_received(&mut self, _: Time, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
        if self.is_established() && (Self::pending(self.read_bio) > 0 || self.ssl.pending() > 0) {
            self.read()?;
        }
        buffer.append(&mut self.received);
        Ok(!buffer.is_empty())
    }
}

impl Subject for TlsEndpoint {
    fn confirm(&self) -> Result<(), String> {
        let version = match self.suite.protocol {
            Protocol::Ssl3 => "SSLv3",
            Protocol::Tls10 => "TLSv1",
            Protocol::Tls11 => "TLSv1.1",
            Protocol::Tls12 => "TLSv1.2",
            _ => "TLSv1.3",
        };
        if self.ssl.version_str() != version {
            return Err(format!("asked for {version}, got {}", self.ssl.version_str()));
        }
        let wanted = names::cipher_suite(&self.suite);
        let cipher = self.ssl.current_cipher().map_or("none", openssl::ssl::SslCipherRef::name);
        if cipher != wanted {
            return Err(format!("asked for {wanted}, got {cipher}"));
        }
        if self.is_resumed() != (self.suite.is_resumption() || is_tls13_psk(&self.suite)) {
            let resumed = if self.is_resumed() { "was resumed" } else { "was not resumed" };
            return Err(format!("the session {resumed}"));
        }
        Ok(())
    }
}

/// To libssl, a handshake by a TLS 1.3 pre-shared key is a resumption.
fn is_tls13_psk(suite: &Suite) -> bool {
    use shakedown_trace::suite::KeyExchange;
    suite.protocol == Protocol::Tls13 && matches!(suite.key_exchange, KeyExchange::Psk | KeyExchange::PskDhe)
}
