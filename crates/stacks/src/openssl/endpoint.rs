//! One libssl connection over two memory BIOs.

use super::boundaries::{self, Watch};
use super::hello::{Budget, HelloGate, Passed, Refusal};
use super::names::Expected;
use crate::stack::{SetupError, refused};
use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslSession, SslSessionRef, SslVersion};
use openssl_sys as sys;
use shakedown_ossl::ffi;
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::{KeyExchange, Protocol};
use shakedown_trace::{
    CloseReason, Endpoint, Event, ExportError, Failure, Negotiated, Session, Side, WriteError,
};
use std::ffi::{CStr, c_char};
use std::sync::Arc;

unsafe extern "C" {
    fn SSL_get0_group_name(ssl: *mut sys::SSL) -> *const c_char;
    fn SSL_get_state(ssl: *const sys::SSL) -> libc::c_int;
    fn SSL_set0_rbio(ssl: *mut sys::SSL, read: *mut sys::BIO);
    fn SSL_SESSION_is_resumable(session: *const sys::SSL_SESSION) -> libc::c_int;
}

pub struct TlsEndpoint {
    // Declared first, because it is dropped first: libssl uses the watch until it is freed.
    ssl: Ssl,
    watch: Box<Watch>,
    side: Side,
    /// One entry per suite, at least one.
    expected: Arc<[Expected]>,
    /// Owned by `ssl`.
    read_bio: *mut sys::BIO,
    write_bio: *mut sys::BIO,
    phase: Phase,
    /// Not returned by `poll_event` yet.
    established: Option<Box<Negotiated>>,
    received: Vec<u8>,
    /// Not returned by `poll_event` yet.
    closed: Option<CloseReason>,
    gate: Option<HelloGate>,
    /// Groups that a server sets after its ServerHello: its own and those of its clients' certificates. libssl performs
    /// the key exchange on any listed group, and accepts certificates only on listed groups.
    later_groups: Option<Arc<CStr>>,
    /// The address of the session that a client offered; a session that it received later has another.
    offered: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Handshaking,
    Established,
    Over,
}

// SAFETY: different threads may use a libssl connection one after another, but not at the same time (man 7
// ossl-guide-libraries-introduction, "Thread safety"), which `&mut self` ensures. Its two memory BIOs belong only to it
// and move with it; the raw pointers are used only through `self`. The watch is boxed, so libssl's pointer to it stays
// valid when the endpoint moves, and only callbacks within calls on this connection access its cells.
unsafe impl Send for TlsEndpoint {}

const BIO_CTRL_PENDING: libc::c_int = 10;
/// After a larger input, an unfinished handshake replaces the BIO, because a memory BIO keeps a buffer of the size of
/// its largest input.
const MAX_KEPT_INPUT_BYTES: usize = 4 * 1024;

impl TlsEndpoint {
    pub fn new(
        context: &SslContext,
        side: Side,
        expected: Arc<[Expected]>,
        peer_name: Option<&str>,
    ) -> Result<Self, SetupError> {
        let mut ssl = Ssl::new(context).map_err(refused("make a connection"))?;
        if let Some(name) = peer_name {
            let checked = match name.parse() {
                Ok(address) => ssl.param_mut().set_ip(address),
                Err(_) => ssl.param_mut().set_host(name),
            };
            checked.map_err(refused("check the peer's name"))?;
        }
        // SAFETY: BIO_s_mem is static; null results are checked.
        let (read_bio, write_bio) =
            unsafe { (sys::BIO_new(sys::BIO_s_mem()), sys::BIO_new(sys::BIO_s_mem())) };
        if read_bio.is_null() || write_bio.is_null() {
            return Err(SetupError::OpenSsl { what: "make a memory BIO", stack: ErrorStack::get() });
        }
        let watch = Box::<Watch>::default();
        // SAFETY: the connection is live and takes ownership of the BIOs, which live as long as it does. The watch is
        // boxed, so it does not move, and it is declared after the connection, so it is freed later.
        unsafe {
            ffi::SSL_set_bio(raw(&ssl), read_bio, write_bio);
            boundaries::attach(raw(&ssl), &raw const *watch);
        }
        match side {
            Side::Client => ssl.set_connect_state(),
            Side::Server => ssl.set_accept_state(),
        }
        Ok(Self {
            ssl,
            watch,
            side,
            expected,
            read_bio,
            write_bio,
            phase: Phase::Waiting,
            established: None,
            received: Vec::new(),
            closed: None,
            gate: None,
            later_groups: None,
            offered: None,
        })
    }

    /// Buffers an incomplete hello until it is complete, within a budget.
    pub fn hold_hellos(&mut self, budget: Arc<Budget>) {
        self.gate = Some(HelloGate::new(budget));
    }

    pub fn set_groups_later(&mut self, groups: Arc<CStr>) {
        self.later_groups = Some(groups);
    }

    pub fn offer(&mut self, session: &SslSession) -> Result<(), SetupError> {
        // SAFETY: `set_session` requires a session of a context with the same settings, because libssl trusts its data
        // about the peer. Sessions here come from clients of this stack; libssl checks protocol and cipher itself.
        unsafe { self.ssl.set_session(session) }.map_err(refused("offer a session"))?;
        self.offered = Some(std::ptr::from_ref::<SslSessionRef>(session).addr());
        Ok(())
    }

    /// Names the server that a client wants to reach (RFC 6066 section 3).
    pub fn ask_for(&mut self, server_name: &str) -> Result<(), SetupError> {
        self.ssl.set_hostname(server_name).map_err(refused("name the server"))
    }

    /// Sets how many tickets a server of TLS 1.3 issues on this connection.
    pub fn issue_tickets(&mut self, tickets: usize) -> Result<(), SetupError> {
        self.ssl.set_num_tickets(tickets).map_err(refused("set the number of tickets"))
    }

    /// Continues the handshake with the available bytes.
    fn handshake(&mut self) {
        let begins = self.phase == Phase::Waiting;
        self.phase = Phase::Handshaking;
        // SAFETY: the connection is live.
        let result = unsafe { sys::SSL_do_handshake(raw(&self.ssl)) };
        self.check(result);
        if begins && self.side == Side::Server && self.phase == Phase::Handshaking {
            self.hello_answered();
        }
        if self.phase == Phase::Handshaking && self.ssl.is_init_finished() {
            self.phase = Phase::Established;
            self.established = self.negotiated().map(Box::new);
        }
    }

    /// A server has read the complete first hello and responded.
    fn hello_answered(&mut self) {
        if let Some(groups) = self.later_groups.take() {
            const SET_GROUPS_LIST: libc::c_int = 92;
            // SAFETY: the connection is live; libssl copies the list.
            unsafe { sys::SSL_ctrl(raw(&self.ssl), SET_GROUPS_LIST, 0, groups.as_ptr().cast_mut().cast()) };
        }
        // SAFETY: the connection is live.
        let version = unsafe { sys::SSL_version(raw(&self.ssl)) };
        if version >= sys::TLS1_3_VERSION
            && let Some(gate) = &mut self.gate
        {
            gate.await_second();
        }
    }

    /// Writes bytes to libssl's BIO.
    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = libc::c_int::try_from(bytes.len()).unwrap_or(libc::c_int::MAX);
            // SAFETY: the BIO lives as long as the connection; the slice is readable for its length.
            let taken = unsafe { sys::BIO_write(self.read_bio, bytes.as_ptr().cast(), length) };
            // A memory BIO accepts all bytes.
            bytes = bytes.get(usize::try_from(taken).unwrap_or(bytes.len()).max(1)..).unwrap_or_default();
        }
    }

    /// Limits the memory of an unfinished handshake.
    fn limit_unfinished(&mut self, fed_bytes: usize) {
        const TLS_ST_SR_CERT: libc::c_int = 30;
        if self.phase != Phase::Handshaking {
            return;
        }
        // SAFETY: the connection is live.
        let state = unsafe { SSL_get_state(raw(&self.ssl)) };
        let limited = self.gate.as_mut().map_or(Ok(()), |gate| gate.in_certificates(state == TLS_ST_SR_CERT));
        if let Err(refusal) = limited {
            return self.refuse(refusal, false);
        }
        if fed_bytes > MAX_KEPT_INPUT_BYTES && Self::pending(self.read_bio) == 0 {
            // SAFETY: BIO_s_mem is static; a null result is checked.
            let fresh = unsafe { sys::BIO_new(sys::BIO_s_mem()) };
            if !fresh.is_null() {
                // SAFETY: the connection is live; it takes ownership of the new BIO and frees the old one.
                unsafe { SSL_set0_rbio(raw(&self.ssl), fresh) };
                self.read_bio = fresh;
            }
        }
    }

    /// Ends a handshake that exceeds its limits. libssl has not seen a rejected hello, so its alert is sent here.
    fn refuse(&mut self, refusal: Refusal, is_hello: bool) {
        const FATAL: u8 = 2;
        let alert = [21, 3, 3, 0, 2, FATAL, refusal.alert()];
        if is_hello {
            // SAFETY: the BIO lives as long as the connection; the slice is readable for its length.
            unsafe { sys::BIO_write(self.write_bio, alert.as_ptr().cast(), 7) };
        }
        let failure = Failure {
            side: self.side,
            state: self.state(),
            alert: is_hello.then(|| shakedown_trace::alert::name(refusal.alert())),
            reason: refusal.reason(),
        };
        self.gate = None;
        self.end(CloseReason::Failed(failure));
    }

    /// Ends the connection if libssl reports a failure, and not only a need for more bytes.
    fn check(&mut self, result: libc::c_int) {
        if result > 0 {
            return;
        }
        const READING: libc::c_int = 3;
        // SSL_get_error would take any entry in the error queue for a failure, and libcrypto leaves one there when it
        // is asked for the security of a 512-bit key.
        // SAFETY: the connection is live.
        let wants_bytes = unsafe { ffi::SSL_want(raw(&self.ssl)) } == READING;
        if wants_bytes && self.watch.alert().is_none() && !input_is_not_tls() {
            // SAFETY: no arguments.
            unsafe { sys::ERR_clear_error() };
            return;
        }
        const RECEIVED_SHUTDOWN: libc::c_int = 2;
        // SAFETY: the connection is live.
        let closed_by_peer = unsafe { sys::SSL_get_shutdown(raw(&self.ssl)) } & RECEIVED_SHUTDOWN != 0;
        if closed_by_peer && self.watch.alert().is_none() {
            return self.end(CloseReason::Peer);
        }
        let failure = self.failure();
        self.end(CloseReason::Failed(failure));
    }

    fn failure(&self) -> Failure {
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
        Failure { side: self.side, state: self.state(), alert: self.watch.alert(), reason }
    }

    fn end(&mut self, reason: CloseReason) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.closed = Some(reason);
        }
    }

    /// Reads decrypted data; libssl processes post-handshake messages in the same calls.
    fn read(&mut self) {
        let mut chunk = [0_u8; 4096];
        while self.phase == Phase::Established {
            let mut length = 0;
            // SAFETY: the connection is live and the buffer has this length.
            let result = unsafe {
                sys::SSL_read_ex(raw(&self.ssl), chunk.as_mut_ptr().cast(), chunk.len(), &raw mut length)
            };
            if result != 1 {
                return self.check(result);
            }
            self.received.extend_from_slice(&chunk[..length]);
        }
    }

    fn negotiated(&self) -> Option<Negotiated> {
        // SAFETY: the connection is live.
        let version = unsafe { sys::SSL_version(raw(&self.ssl)) };
        let protocol = match version {
            sys::SSL3_VERSION => Protocol::Ssl3,
            sys::TLS1_VERSION => Protocol::Tls10,
            sys::TLS1_1_VERSION => Protocol::Tls11,
            sys::TLS1_2_VERSION => Protocol::Tls12,
            _ => Protocol::Tls13,
        };
        // SAFETY: the connection is live; names of ciphers are static, null becomes "(NONE)".
        let cipher_suite = unsafe {
            let cipher = sys::SSL_get_current_cipher(raw(&self.ssl));
            CStr::from_ptr(sys::SSL_CIPHER_get_name(cipher)).to_str().unwrap_or("")
        };
        let expected = Expected::closest(&self.expected, protocol, cipher_suite)?;
        let suite = &expected.suite;
        let (named, cipher) = expected.cipher(cipher_suite);
        // SAFETY: the connection is live; names of groups belong to its context and are copied at once.
        let group = unsafe {
            let name = SSL_get0_group_name(raw(&self.ssl));
            (!name.is_null())
                .then(|| CStr::from_ptr(name))
                .and_then(|name| expected.group(&name.to_string_lossy()))
        };
        let reused = self.ssl.session_reused();
        // libssl reports a handshake with a TLS 1.3 pre-shared key as a resumption.
        let psk = matches!(suite.key_exchange, KeyExchange::Psk | KeyExchange::PskDhe) && reused;
        let (key_exchange, resumed) = match protocol {
            Protocol::Tls13 if psk => (Some(suite.key_exchange), false),
            Protocol::Tls13 => (Some(KeyExchange::Ephemeral), reused),
            _ => (named, reused),
        };
        Some(Negotiated { protocol, key_exchange, cipher, cipher_suite, group, resumed, optimized: false })
    }

    fn pending(bio: *mut sys::BIO) -> usize {
        // SAFETY: the BIO lives as long as the connection, which outlives this borrow of it.
        usize::try_from(unsafe { ffi::BIO_ctrl(bio, BIO_CTRL_PENDING, 0, std::ptr::null_mut()) }).unwrap_or(0)
    }
}

impl Drop for TlsEndpoint {
    fn drop(&mut self) {
        // libssl removes the session of a connection that ends without close_notify from its cache. To keep it, both
        // directions are marked as closed.
        const SENT_AND_RECEIVED: libc::c_int = 3;
        // SAFETY: the connection is live until this returns.
        unsafe { ffi::SSL_set_shutdown(raw(&self.ssl), SENT_AND_RECEIVED) };
    }
}

/// Whether libssl has just received bytes that are not TLS records. It then fails without an alert, and continues to
/// report that it wants to read.
fn input_is_not_tls() -> bool {
    const LIB_SSL: libc::c_int = 20;
    const WRONG_VERSION_NUMBER: libc::c_int = 267;
    const HTTP_REQUEST: libc::c_int = 156;
    const HTTPS_PROXY_REQUEST: libc::c_int = 155;
    // SAFETY: reads the thread's error queue.
    let last = unsafe { sys::ERR_peek_last_error() };
    let reason = sys::ERR_GET_REASON(last);
    sys::ERR_GET_LIB(last) == LIB_SSL
        && matches!(reason, WRONG_VERSION_NUMBER | HTTP_REQUEST | HTTPS_PROXY_REQUEST)
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

    fn handle_input(&mut self, _: Time, bytes: &[u8]) {
        if self.phase == Phase::Over {
            return;
        }
        let passed = match self.gate.as_mut().map(|gate| gate.pass(bytes)) {
            None => Passed::Input(bytes),
            Some(Ok(Passed::Nothing)) => return,
            Some(Ok(passed)) => passed,
            Some(Err(refusal)) => return self.refuse(refusal, true),
        };
        let fed = match &passed {
            Passed::Input(input) => input,
            Passed::Held(held) => held.as_slice(),
            Passed::Nothing => return,
        };
        self.feed(fed);
        if self.phase != Phase::Established {
            self.handshake();
        }
        if self.phase == Phase::Established && Self::pending(self.read_bio) > 0 {
            self.read();
        }
        self.limit_unfinished(fed.len());
    }

    fn handle_close(&mut self, _: Time) {
        self.end(CloseReason::Truncated);
    }

    fn write(&mut self, _: Time, data: &[u8]) -> Result<(), WriteError> {
        let side = self.side;
        match self.phase {
            Phase::Established => {}
            Phase::Over => return Err(WriteError::Closed { side }),
            Phase::Waiting | Phase::Handshaking => return Err(WriteError::NotEstablished { side }),
        }
        if data.is_empty() {
            return Ok(());
        }
        let mut written = 0;
        // SAFETY: the connection is live; the slice is readable for its length. A memory BIO accepts all bytes at once.
        let result =
            unsafe { sys::SSL_write_ex(raw(&self.ssl), data.as_ptr().cast(), data.len(), &raw mut written) };
        if result == 1 {
            return Ok(());
        }
        let failure = self.failure();
        let reason = failure.reason.clone();
        self.end(CloseReason::Failed(failure));
        Err(WriteError::Refused { side, reason })
    }

    fn close(&mut self, _: Time) {
        if self.phase == Phase::Established {
            // Queues close_notify, without waiting for the peer's.
            // SAFETY: the connection is live, and past its handshake.
            unsafe { sys::SSL_shutdown(raw(&self.ssl)) };
        }
        self.end(CloseReason::Local);
    }

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        if self.phase == Phase::Waiting && self.side == Side::Client {
            self.handshake();
        }
        let pending = Self::pending(self.write_bio);
        if pending == 0 {
            return false;
        }
        let start = buffer.len();
        buffer.resize(start + pending, 0);
        let length = libc::c_int::try_from(pending).unwrap_or(libc::c_int::MAX);
        // SAFETY: the BIO lives as long as the connection; the buffer has space for `pending` bytes.
        let read = unsafe { sys::BIO_read(self.write_bio, buffer[start..].as_mut_ptr().cast(), length) };
        buffer.truncate(start + usize::try_from(read).unwrap_or(0));
        buffer.len() > start
    }

    fn poll_event(&mut self) -> Option<Event> {
        if let Some(negotiated) = self.established.take() {
            return Some(Event::Established(negotiated));
        }
        if !self.received.is_empty() {
            return Some(Event::Data(std::mem::take(&mut self.received)));
        }
        self.closed.take().map(Event::Closed)
    }

    fn state(&self) -> String {
        // SAFETY: the connection is live; the text is static.
        let text = unsafe { CStr::from_ptr(ffi::SSL_state_string_long(raw(&self.ssl))) };
        text.to_string_lossy().into_owned()
    }

    fn session(&self) -> Option<Session> {
        let session = self.ssl.session()?;
        // A TLS 1.3 ticket creates a new session; without one, the offered session remains.
        let offered = self.offered == Some(std::ptr::from_ref(session).addr());
        if offered && self.ssl.version2() == Some(SslVersion::TLS1_3) {
            return None;
        }
        // SAFETY: the session is live while the connection is borrowed.
        let resumable =
            unsafe { SSL_SESSION_is_resumable(foreign_types::ForeignTypeRef::as_ptr(session)) } == 1;
        resumable.then(|| Session::new(session.to_owned()))
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let der = |certificate: &openssl::x509::X509Ref| certificate.to_der().ok();
        // On a server, libssl's chain does not contain the leaf.
        let leaf = self.ssl.peer_certificate().and_then(|leaf| der(&leaf));
        let chain: Vec<_> = self.ssl.peer_cert_chain().into_iter().flatten().filter_map(der).collect();
        match leaf {
            Some(leaf) if chain.first() != Some(&leaf) => std::iter::once(leaf).chain(chain).collect(),
            _ => chain,
        }
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &str,
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        if !self.ssl.is_init_finished() {
            return Err(ExportError::NotEstablished { side: self.side });
        }
        let exported = self.ssl.export_keying_material(output, label, context);
        exported.map_err(|error| ExportError::Refused { side: self.side, reason: error.to_string() })
    }
}
