//! What is negotiated: protocol, key exchange, group, keys, authentication, mode and cipher.
//!
//! A [`Suite`] is read from a name such as `tls1.2/dhe_rsa+dh1024/rsa1024@rsa2048/mutual` and printed in one canonical
//! spelling: with group, keys and authentication if the key exchange has them, without `full` and without the default
//! cipher.

mod cipher;
mod curve;
mod error;
mod family;
mod operations;
mod parse;
mod vocabulary;

pub use cipher::{Cipher, TlsCipher, WtlsBulk, WtlsMac};
pub use curve::Curve;
pub use error::SuiteError;
pub use family::{CurveFamily, KeyFamily};
pub use operations::ExpectedOperation;
pub use vocabulary::{
    Authentication, Group, GroupKind, KeyExchange, KeyType, LeafKind, Mode, Protocol, Transport, chain_name,
    curve_name,
};

use std::fmt;

/// What a client and a server negotiate. The protocol's rules permit every value of this type; each stack decides
/// whether it supports the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Suite {
    pub protocol: Protocol,
    pub key_exchange: KeyExchange,
    /// `None` if the key exchange has no group.
    pub group: Option<Group>,
    /// Leaf first, trusted root last: two or more if there are certificates, one for a temporary key (`rsa_anon`), none
    /// otherwise. All but the root are sent.
    pub keys: Vec<KeyType>,
    /// Who presents a certificate; `None` if there is no choice.
    pub authentication: Option<Authentication>,
    pub mode: Mode,
    pub cipher: Cipher,
}

impl Suite {
    /// The keys of the certificates that a side sends, leaf first.
    pub fn sent_keys(&self) -> &[KeyType] {
        self.keys.split_last().map_or(&[], |(_, sent)| sent)
    }

    /// True if the server presents a certificate in a full handshake.
    pub fn has_certificates(&self) -> bool {
        self.keys.len() > 1
    }

    /// The family of the leaf's key, if the suite has keys.
    pub fn key_family(&self) -> Option<KeyFamily> {
        self.keys.first().map(|key| key.family())
    }

    pub fn transport(&self) -> Transport {
        self.protocol.transport()
    }

    /// True if an earlier session is resumed.
    pub fn is_resumption(&self) -> bool {
        matches!(self.mode, Mode::Resumed | Mode::Ticket)
    }

    /// The same suite without resumption: the handshake that establishes the session.
    pub fn full(&self) -> Self {
        Self { mode: Mode::Full, ..self.clone() }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from(self.protocol.as_str());
        text.push('/');
        text.push_str(self.key_exchange.as_str());
        if let Some(group) = self.group {
            if self.key_exchange != KeyExchange::Ephemeral {
                text.push('+');
            }
            text.push_str(group.name(self.protocol));
        }
        if !self.keys.is_empty() {
            text.push('/');
            text.push_str(&chain_name(&self.keys, self.protocol));
        }
        if let Some(authentication) = self.authentication {
            text.push('/');
            text.push_str(authentication.as_str());
        }
        if self.mode != Mode::Full {
            text.push('/');
            text.push_str(self.mode.as_str());
        }
        if self.cipher != Cipher::default_for(self.protocol, self.key_exchange) {
            text.push('/');
            text.push_str(self.cipher.name());
        }
        formatter.pad(&text)
    }
}
