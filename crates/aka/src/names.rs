//! Names of subscribers, networks and nodes, and temporary identities (3GPP TS 23.003).

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("\"{0}\" is not an IMSI; accepted: 6 to 15 digits, those of the home network first")]
    Imsi(String),
    #[error("\"{0}\" is not a network; accepted: 5 or 6 digits, country and network code")]
    Network(String),
    #[error("\"{0}\" is not a node's name; accepted: 1 to 32 of a-z, 0-9, '-'")]
    Node(String),
}

/// The beginning of an untrusted text, escaped, for an error of one line.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
}

macro_rules! name {
    ($name:ident, $variant:ident, $doc:literal, $good:expr) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: &str) -> Result<Self, NameError> {
                let good: fn(&str) -> bool = $good;
                if good(text) { Ok(Self(text.to_owned())) } else { Err(NameError::$variant(shown(text))) }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

fn digits(text: &str, least: usize, most: usize) -> bool {
    (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

name!(Imsi, Imsi, "A subscriber's permanent identity, which must not be readable on the radio.", |text| {
    digits(text, 6, 15)
});
name!(Network, Network, "A network: mobile country code and mobile network code.", |text| digits(text, 5, 6));
name!(NodeName, Node, "An SGSN.", |text| {
    (1..=32).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
});

impl Imsi {
    /// True if the subscriber belongs to this network.
    pub fn is_of(&self, home: &Network) -> bool {
        self.0.starts_with(home.as_str())
    }
}

/// A temporary identity (P-TMSI) and the SGSN that assigned it: the only identity that a mobile sends unencrypted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Temporary {
    pub node: NodeName,
    pub ptmsi: u32,
}
