//! Key logs: the secrets of connections, which many programs can write to a file.
//!
//! One secret per line: `LABEL CLIENT_RANDOM SECRET`, the latter two in hexadecimal
//! (draft-ietf-tls-keylogfile). Empty lines, lines that begin with `#`, and lines with unused labels are ignored.

use crate::CaptureError;
use crate::limits::{MAX_KEY_LOG_BYTES, MAX_KEY_LOG_LINE_BYTES};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// Limit of the connections whose secrets are kept from captures; at most about 800 bytes each.
pub const MAX_CARRIED: usize = 1 << 16;

/// Lines read between two calls of `step`.
const LINES_A_STEP: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// Up to TLS 1.2: the master secret.
    Master,
    ClientEarlyTraffic,
    ClientHandshakeTraffic,
    ServerHandshakeTraffic,
    ClientTraffic,
    ServerTraffic,
}

impl Label {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "CLIENT_RANDOM" => Self::Master,
            "CLIENT_EARLY_TRAFFIC_SECRET" => Self::ClientEarlyTraffic,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Self::ClientHandshakeTraffic,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Self::ServerHandshakeTraffic,
            "CLIENT_TRAFFIC_SECRET_0" => Self::ClientTraffic,
            "SERVER_TRAFFIC_SECRET_0" => Self::ServerTraffic,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Secrets(Vec<(Label, Box<[u8]>)>);

impl Secrets {
    pub(crate) fn get(&self, label: Label) -> Option<&[u8]> {
        self.0.iter().find(|entry| entry.0 == label).map(|entry| &*entry.1)
    }
}

/// The source of a secret, which determines how long the secret is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A key log file, whose secrets are all kept.
    File,
    /// A capture of any length; its earliest secrets are dropped at the limit.
    Capture,
}

/// Invalid key log lines in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) lines: u64,
    /// The error in the first of them.
    pub(crate) first: String,
}

/// Secrets by client random.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLog {
    connections: HashMap<[u8; 32], Secrets>,
    /// Connections whose secrets are only from captures, the earliest first.
    carried: VecDeque<[u8; 32]>,
    let_go: u64,
    unreadable: Option<Unreadable>,
}

impl KeyLog {
    /// Reads a key log file.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let file = std::fs::File::open(path)
            .map_err(|source| CaptureError::OpenKeyLog { path: path.to_path_buf(), source })?;
        let mut log = Self::default();
        log.read_from(file)?;
        Ok(log)
    }

    /// Adds all secrets of a key log.
    pub fn read_from(&mut self, source: impl Read) -> Result<(), CaptureError> {
        self.read(source, MAX_KEY_LOG_BYTES, &mut || ControlFlow::Continue(()))
    }

    /// The same; `step` is called regularly and can end the reading.
    ///
    /// # Errors
    /// As [`Self::read_from`]; also if `step` ends the reading, with the current line.
    pub fn read_watched(
        &mut self,
        source: impl Read,
        step: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), CaptureError> {
        self.read(source, MAX_KEY_LOG_BYTES, step)
    }

    /// Adds secrets from a capture, kept for the last [`MAX_CARRIED`] connections. Invalid lines are skipped and
    /// counted, because the packets are still readable. `lines_before` lines of the same log were read before; returns
    /// the new number of lines.
    pub(crate) fn read_carried(&mut self, text: &[u8], lines_before: u64) -> u64 {
        let mut number = lines_before;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            number += 1;
            if let Err(reason) = self.line(line, Origin::Capture) {
                let first = || Unreadable { lines: 0, first: format!("line {number} {reason}") };
                self.unreadable.get_or_insert_with(first).lines += 1;
            }
        }
        number
    }

    /// Invalid key log lines in the capture.
    pub(crate) fn unreadable(&self) -> Option<&Unreadable> {
        self.unreadable.as_ref()
    }

    fn read(
        &mut self,
        source: impl Read,
        most_bytes: u64,
        step: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), CaptureError> {
        let mut line = Vec::new();
        let mut reader = BufReader::new(source);
        let mut total = 0;
        for number in 1.. {
            if number % LINES_A_STEP == 0 && step().is_break() {
                return Err(CaptureError::KeyLog {
                    line: number,
                    reason: "was not read: interrupted".into(),
                });
            }
            line.clear();
            let read = reader.by_ref().take(MAX_KEY_LOG_LINE_BYTES).read_until(b'\n', &mut line);
            let read =
                read.map_err(|error| CaptureError::KeyLog { line: number, reason: error.to_string() })?;
            if read == 0 {
                break;
            }
            total += read as u64;
            if total > most_bytes {
                let reason = format!("the key log is larger than {most_bytes} bytes");
                return Err(CaptureError::KeyLog { line: number, reason });
            }
            self.line(&line, Origin::File).map_err(|reason| CaptureError::KeyLog { line: number, reason })?;
        }
        Ok(())
    }

    /// True if there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Number of connections whose secrets from captures were dropped at the limit.
    pub(crate) fn let_go(&self) -> u64 {
        self.let_go
    }

    pub(crate) fn find(&self, client_random: &[u8; 32]) -> Option<&Secrets> {
        self.connections.get(client_random)
    }

    fn line(&mut self, line: &[u8], origin: Origin) -> Result<(), String> {
        let text = std::str::from_utf8(line).map_err(|_| "is not text".to_owned())?.trim();
        // `RSA` lines have an older format, with encrypted pre-master secrets.
        if text.is_empty() || text.starts_with('#') || text.starts_with("RSA ") {
            return Ok(());
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let &[name, random, secret] = fields.as_slice() else {
            return Err(format!("has {} fields instead of 3", fields.len()));
        };
        if !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_') {
            return Err("does not begin with a label".to_owned());
        }
        let random_bytes = from_hexadecimal(random).ok_or("the client random is not hexadecimal")?;
        let secret_bytes = from_hexadecimal(secret).ok_or("the secret is not hexadecimal")?;
        let Some(label) = Label::from_name(name) else { return Ok(()) };
        let random = <[u8; 32]>::try_from(random_bytes)
            .map_err(|bytes| format!("the client random has {} bytes instead of 32", bytes.len()))?;
        let fits = if label == Label::Master {
            secret_bytes.len() == 48
        } else {
            (16..=64).contains(&secret_bytes.len())
        };
        if !fits {
            return Err(format!("the secret has {} bytes", secret_bytes.len()));
        }
        self.add(random, label, secret_bytes.into_boxed_slice(), origin);
        Ok(())
    }

    fn add(&mut self, random: [u8; 32], label: Label, secret: Box<[u8]>, origin: Origin) {
        let secrets = self.connections.entry(random).or_insert_with(|| {
            if origin == Origin::Capture {
                self.carried.push_back(random);
            }
            Secrets::default()
        });
        // A later secret with the same label replaces the earlier one: only tests repeat a random.
        secrets.0.retain(|entry| entry.0 != label);
        secrets.0.push((label, secret));
        while self.carried.len() > MAX_CARRIED
            && let Some(earliest) = self.carried.pop_front()
        {
            self.connections.remove(&earliest);
            self.let_go += 1;
        }
    }
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Result<KeyLog, CaptureError> {
        let mut log = KeyLog::default();
        log.read_from(text.as_bytes()).map(|()| log)
    }

    #[test]
    fn secrets_are_found_by_random_and_label() {
        let (random, master) = ("ab".repeat(32), "01".repeat(48));
        let text = format!("# comment\n\nCLIENT_RANDOM {random} {master}\r\nEXPORTER_SECRET {random} 00\n");
        let log = read(&text).unwrap();
        assert_eq!(log.connections.len(), 1);
        let secrets = log.find(&[0xab; 32]).unwrap();
        assert_eq!(secrets.get(Label::Master), Some(&[1; 48][..]));
        assert_eq!(secrets.get(Label::ClientTraffic), None);
    }

    #[test]
    fn unreadable_lines_are_named() {
        let random = "ab".repeat(32);
        for bad in [
            "CLIENT_RANDOM 12".to_owned(),
            format!("CLIENT_RANDOM {random} zz"),
            format!("CLIENT_RANDOM {random} 00"),
            format!("CLIENT_RANDOM abcd {}", "00".repeat(48)),
            "-----BEGIN CERTIFICATE-----".to_owned(),
            "\u{1}\u{2}".to_owned(),
        ] {
            let error = read(&format!("\n{bad}\n")).unwrap_err();
            assert!(matches!(error, CaptureError::KeyLog { line: 2, .. }), "{bad}: {error}");
        }
    }

    #[test]
    fn endless_key_logs_are_refused() {
        let comments = std::io::repeat(b'#').take(3).chain(&b"\n"[..]);
        let mut on = || ControlFlow::Continue(());
        assert_eq!(KeyLog::default().read(comments, 4, &mut on).ok(), Some(()));
        let endless = std::io::repeat(b'\n');
        let error = KeyLog::default().read(endless, 5000, &mut on).unwrap_err();
        assert!(matches!(&error, CaptureError::KeyLog { line: 5001, .. }), "{error}");
        assert!(error.to_string().contains("is larger than 5000 bytes"));
        // A line without an end is an error at the maximum length.
        assert!(KeyLog::default().read(std::io::repeat(0), u64::MAX, &mut on).is_err());
    }

    fn master(random: u32, secret: u8) -> String {
        format!("CLIENT_RANDOM {:064x} {}\n", random, format!("{secret:02x}").repeat(48))
    }

    #[test]
    fn later_of_two_secrets_is_used() {
        let mut log = KeyLog::default();
        log.read_from(master(1, 1).as_bytes()).unwrap();
        for secret in 2..9 {
            log.read_carried(master(1, secret).as_bytes(), 0);
            let mut random = [0; 32];
            random[31] = 1;
            let secrets = log.find(&random).unwrap();
            assert_eq!((secrets.get(Label::Master), secrets.0.len()), (Some(&[secret; 48][..]), 1));
        }
        assert_eq!((log.connections.len(), log.let_go()), (1, 0));
    }

    #[test]
    fn embedded_secrets_are_limited_and_key_log_secrets_are_kept() {
        let number = |random: u32| {
            let mut bytes = [0; 32];
            bytes[28..].copy_from_slice(&random.to_be_bytes());
            bytes
        };
        let mut log = KeyLog::default();
        log.read_from((master(0, 1) + &master(1, 1)).as_bytes()).unwrap();
        let beyond = 5;
        let last = 1 + MAX_CARRIED as u32 + beyond;
        // The first of these is already known from the file, and is therefore not limited.
        for random in 1..=last {
            log.read_carried(master(random, 2).as_bytes(), 0);
        }
        assert_eq!((log.connections.len(), log.let_go()), (2 + MAX_CARRIED, u64::from(beyond)));
        for (random, kept) in
            [(0, true), (1, true), (2, false), (1 + beyond, false), (2 + beyond, true), (last, true)]
        {
            assert_eq!(log.find(&number(random)).is_some(), kept, "{random}");
        }
    }
}
