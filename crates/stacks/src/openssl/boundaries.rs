//! Message boundaries from libssl's callbacks.
//!
//! The message callback is called when a record header has been read or written, when a complete message has been read,
//! and when a message has been passed to the record layer. The info callback's LOOP events come between two messages,
//! after the work that follows sending. Together they cut each side's time into spans (see
//! [`shakedown_trace::half_trace`]).

use openssl_sys as sys;
use shakedown_ossl::ffi;
use shakedown_trace::{MessageName, alert, recorder};
use std::cell::Cell;

/// A connection's state between callbacks.
#[derive(Default)]
pub struct Watch {
    /// Bytes of records written since the last message.
    written: Cell<u32>,
    /// Bytes of records read since the last message.
    read: Cell<u32>,
    /// Bytes of the latest message read, according to its header; 0 after the start of another record.
    latest_read: Cell<u32>,
    /// Bytes that were reported for the latest message read.
    latest_reported: Cell<u32>,
    /// The latest record read is a ChangeCipherSpec.
    change_cipher_spec: Cell<bool>,
    /// The last fatal alert, sent or received.
    alert: Cell<Option<u8>>,
}

impl Watch {
    pub fn alert(&self) -> Option<String> {
        self.alert.get().map(alert::name)
    }

    fn record_read(&self, kind: u8, bytes: u32) {
        if self.change_cipher_spec.replace(libc::c_int::from(kind) == CHANGE_CIPHER_SPEC) {
            // If nothing else has ended the span.
            recorder::boundary();
        }
        recorder::boundary();
        self.read.set(self.read.get() + bytes);
        self.latest_read.set(0);
        if self.change_cipher_spec.get() {
            // libssl reports no message for it: its processing begins with libssl's next step.
            recorder::announce(MessageName::ChangeCipherSpec, self.read.take());
        }
    }

    /// A message of `length` bytes, including its header, has been read. All bytes of the record are reported for the
    /// first message in it. If another message follows in the record, the bytes beyond the first one's length are moved
    /// to it: record header, MAC and padding belong to the last message.
    fn message_read(&self, name: MessageName, length: u32) {
        let mut bytes = self.read.take();
        let before = self.latest_read.get();
        if bytes == 0 && before > 0 {
            bytes = self.latest_reported.get().saturating_sub(before);
            recorder::adjust_received(-bytes.cast_signed());
        }
        recorder::received(name, bytes);
        self.latest_read.set(length);
        self.latest_reported.set(bytes);
    }
}

const HEADER: libc::c_int = 256;
const CHANGE_CIPHER_SPEC: libc::c_int = 20;
const ALERT: libc::c_int = 21;
const HANDSHAKE: libc::c_int = 22;
const FATAL: u8 = 2;
/// `SSL_CB_LOOP`.
const LOOP: libc::c_int = 1;
/// `SSL_CB_ALERT`.
const ALERT_EVENT: libc::c_int = 0x4000;
const RECORD_HEADER_BYTES: u32 = 5;

/// ServerHello with this random is a HelloRetryRequest (RFC 8446 section 4.1.3); it starts with these bytes.
const RETRY_RANDOM: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// Sets the callbacks of a context. Its connections must be [`attach`]ed.
///
/// # Safety
/// `context` must be live.
pub unsafe fn install(context: *mut sys::SSL_CTX) {
    // SAFETY: the caller guarantees a live context; the callbacks are static functions.
    unsafe {
        ffi::SSL_CTX_set_msg_callback(context, Some(on_message));
        ffi::SSL_CTX_set_info_callback(context, Some(on_info));
    }
}

/// Sets a callback that records only alerts, for connections that are not measured.
///
/// # Safety
/// `context` must be live.
pub unsafe fn install_alerts(context: *mut sys::SSL_CTX) {
    // SAFETY: the caller guarantees a live context; the callback is a static function.
    unsafe { ffi::SSL_CTX_set_info_callback(context, Some(on_alert)) };
}

/// Attaches a watch to a connection.
///
/// # Safety
/// `ssl` must be live, and `watch` must outlive it.
pub unsafe fn attach(ssl: *mut sys::SSL, watch: *const Watch) {
    const SET_MSG_CALLBACK_ARG: libc::c_int = 16;
    // SAFETY: the caller guarantees both. Index 0 of the extra data belongs to the application.
    unsafe {
        sys::SSL_ctrl(ssl, SET_MSG_CALLBACK_ARG, 0, watch.cast_mut().cast());
        sys::SSL_set_ex_data(ssl, 0, watch.cast_mut().cast());
    }
}

unsafe extern "C" fn on_message(
    write: libc::c_int,
    version: libc::c_int,
    content_type: libc::c_int,
    data: *const libc::c_void,
    length: usize,
    _: *mut sys::SSL,
    watch: *mut libc::c_void,
) {
    // SAFETY: `attach` stored a watch that outlives the connection; null before that.
    let Some(watch) = (unsafe { watch.cast::<Watch>().as_ref() }) else { return };
    if data.is_null() {
        return;
    }
    // SAFETY: libssl passes `length` readable bytes.
    let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    let sending = write == 1;
    match (content_type, data) {
        (HEADER, [kind, _, _, high, low, ..]) => {
            let bytes = RECORD_HEADER_BYTES + u32::from(u16::from_be_bytes([*high, *low]));
            if sending {
                watch.written.set(watch.written.get() + bytes);
            } else {
                watch.record_read(*kind, bytes);
            }
        }
        (HANDSHAKE, [kind, ..]) => {
            let Some(mut name) = MessageName::from_tls(*kind) else { return };
            if name == MessageName::ServerHello && data.get(6..14) == Some(&RETRY_RANDOM) {
                name = MessageName::HelloRetryRequest;
            }
            if sending {
                recorder::sent(name, watch.written.take());
            } else {
                watch.message_read(name, u32::try_from(length).unwrap_or(u32::MAX));
            }
        }
        (CHANGE_CIPHER_SPEC, _) if sending => {
            recorder::sent(MessageName::ChangeCipherSpec, watch.written.take());
            if version >= sys::TLS1_3_VERSION {
                // Sent for compatibility only; libssl then changes its keys for the message before.
                recorder::attribute_to_previous();
            }
        }
        (ALERT, [FATAL, number, ..]) => watch.alert.set(Some(*number)),
        _ => {}
    }
}

unsafe extern "C" fn on_alert(ssl: *const sys::SSL, kind: libc::c_int, value: libc::c_int) {
    if kind & ALERT_EVENT == 0 || value >> 8 != libc::c_int::from(FATAL) {
        return;
    }
    // SAFETY: the connection is live; `attach` stored a watch that outlives it, null before that.
    if let Some(watch) = unsafe { sys::SSL_get_ex_data(ssl, 0).cast::<Watch>().as_ref() } {
        watch.alert.set(u8::try_from(value & 0xff).ok());
    }
}

unsafe extern "C" fn on_info(_: *const sys::SSL, kind: libc::c_int, _: libc::c_int) {
    if kind & LOOP != 0 {
        recorder::boundary();
    }
}
