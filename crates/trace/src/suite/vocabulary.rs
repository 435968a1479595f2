//! The words of suite names: one type for each part.

use super::curve::Curve;
use crate::spelled;
use serde::{Deserialize, Serialize};

spelled! {
    /// First part of a suite name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Protocol {
        Ssl3 = "ssl3",
        Tls10 = "tls1.0",
        Tls11 = "tls1.1",
        Tls12 = "tls1.2",
        Tls13 = "tls1.3",
        Dtls12 = "dtls1.2",
        Wtls = "wtls",
    }
}

impl Protocol {
    /// Whether it runs on a stream or on datagrams.
    pub fn transport(self) -> Transport {
        match self {
            Self::Dtls12 | Self::Wtls => Transport::Datagram,
            Self::Ssl3 | Self::Tls10 | Self::Tls11 | Self::Tls12 | Self::Tls13 => Transport::Stream,
        }
    }

    /// True from TLS 1.2 on (and DTLS 1.2): AEAD ciphers and SHA-256 exist.
    pub fn is_modern(self) -> bool {
        matches!(self, Self::Tls12 | Self::Tls13 | Self::Dtls12)
    }
}

spelled! {
    /// How the two sides establish a shared secret.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum KeyExchange {
        Rsa = "rsa",
        DheRsa = "dhe_rsa",
        DheDss = "dhe_dss",
        DhAnon = "dh_anon",
        Psk = "psk",
        DhePsk = "dhe_psk",
        RsaPsk = "rsa_psk",
        EcdheEcdsa = "ecdhe_ecdsa",
        EcdheRsa = "ecdhe_rsa",
        EcdhePsk = "ecdhe_psk",
        EcdhAnon = "ecdh_anon",
        /// WTLS: RSA with an uncertified temporary key.
        RsaAnon = "rsa_anon",
        /// WTLS: static ECDH with certificates signed by ECDSA.
        EcdhEcdsa = "ecdh_ecdsa",
        /// WTLS: a secret that both sides hold.
        SharedSecret = "shared_secret",
        /// TLS 1.3 with certificates: an ephemeral group, whose name is written instead.
        Ephemeral = "",
        /// TLS 1.3: pre-shared key with a new key exchange.
        PskDhe = "psk_dhe",
    }
}

/// The kind of transport that carries a protocol's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// An ordered, reliable stream of bytes; the boundaries of chunks have no meaning.
    Stream,
    /// Datagrams, which may be lost, duplicated and reordered; each unit is one datagram.
    Datagram,
}

/// The types of certificate keys that a key exchange permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// RSA keys only.
    Rsa,
    /// DSA keys only.
    Dsa,
    /// Elliptic-curve keys on a named curve only.
    Ec,
    /// Elliptic-curve keys or Ed25519 (RFC 8422).
    EcOrEdwards,
    /// Any key that TLS 1.3 can sign with.
    Tls13,
}

impl KeyExchange {
    pub fn of(protocol: Protocol) -> &'static [Self] {
        const CLASSIC: [KeyExchange; 11] = [
            KeyExchange::Rsa,
            KeyExchange::DheRsa,
            KeyExchange::DheDss,
            KeyExchange::DhAnon,
            KeyExchange::Psk,
            KeyExchange::DhePsk,
            KeyExchange::RsaPsk,
            KeyExchange::EcdheEcdsa,
            KeyExchange::EcdheRsa,
            KeyExchange::EcdhePsk,
            KeyExchange::EcdhAnon,
        ];
        match protocol {
            // The first seven, without curves: SSL 3.0 has no extension to negotiate a curve (RFC 4492 needs TLS).
            Protocol::Ssl3 => CLASSIC.split_at(7).0,
            Protocol::Tls10 | Protocol::Tls11 | Protocol::Tls12 | Protocol::Dtls12 => &CLASSIC,
            Protocol::Tls13 => &[Self::Ephemeral, Self::Psk, Self::PskDhe],
            Protocol::Wtls => {
                &[Self::Rsa, Self::RsaAnon, Self::DhAnon, Self::EcdhAnon, Self::EcdhEcdsa, Self::SharedSecret]
            }
        }
    }

    /// The kind of group of the exchange; `None` if it has no group.
    pub fn group_kind(self) -> Option<GroupKind> {
        match self {
            Self::DheRsa | Self::DheDss | Self::DhAnon | Self::DhePsk => Some(GroupKind::FiniteField),
            Self::EcdheEcdsa | Self::EcdheRsa | Self::EcdhePsk | Self::EcdhAnon => Some(GroupKind::Curve),
            Self::Ephemeral | Self::PskDhe => Some(GroupKind::Tls13),
            _ => None,
        }
    }

    /// The permitted type of the certificate key; `None` if no certificate or temporary key is used.
    pub fn leaf_kind(self) -> Option<LeafKind> {
        match self {
            Self::Rsa | Self::DheRsa | Self::RsaPsk | Self::EcdheRsa | Self::RsaAnon => Some(LeafKind::Rsa),
            Self::DheDss => Some(LeafKind::Dsa),
            Self::EcdheEcdsa => Some(LeafKind::EcOrEdwards),
            Self::EcdhEcdsa => Some(LeafKind::Ec),
            Self::Ephemeral => Some(LeafKind::Tls13),
            _ => None,
        }
    }

    /// True if the server can request a certificate from the client.
    pub fn has_authentication(self) -> bool {
        matches!(
            self,
            Self::Rsa
                | Self::DheRsa
                | Self::DheDss
                | Self::EcdheEcdsa
                | Self::EcdheRsa
                | Self::EcdhEcdsa
                | Self::Ephemeral
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Diffie–Hellman modulo a prime.
    FiniteField,
    /// Elliptic curves, x25519, x448.
    Curve,
    /// Every group with a TLS 1.3 code point, including KEMs and hybrids.
    Tls13,
}

/// The group of an ephemeral exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// A safe prime that OpenSSL does not recognise, generator 2, exponents as long as the prime; in `wtls`, the
    /// specification's group of that size.
    Dh(u16),
    /// RFC 7919, short exponents.
    Ffdhe(u16),
    /// RFC 7748.
    X25519,
    /// RFC 7748.
    X448,
    Curve(Curve),
    /// FIPS 203.
    MlKem(u16),
    /// draft-ietf-tls-ecdhe-mlkem.
    X25519MlKem768,
    /// draft-ietf-tls-ecdhe-mlkem.
    Secp256r1MlKem768,
}

impl Group {
    /// Every group that is not a curve, with its spelling.
    pub const NAMED: [(Self, &str); 14] = [
        (Self::Dh(512), "dh512"),
        (Self::Dh(768), "dh768"),
        (Self::Dh(1024), "dh1024"),
        (Self::Dh(2048), "dh2048"),
        (Self::Dh(3072), "dh3072"),
        (Self::Ffdhe(2048), "ffdhe2048"),
        (Self::Ffdhe(3072), "ffdhe3072"),
        (Self::X25519, "x25519"),
        (Self::X448, "x448"),
        (Self::MlKem(512), "mlkem512"),
        (Self::MlKem(768), "mlkem768"),
        (Self::MlKem(1024), "mlkem1024"),
        (Self::X25519MlKem768, "x25519mlkem768"),
        (Self::Secp256r1MlKem768, "secp256r1mlkem768"),
    ];

    /// Finds a group by name; curves by either spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        let named = Self::NAMED.iter().find(|row| row.1 == name).map(|row| row.0);
        named.or_else(|| Curve::from_name(name).map(Self::Curve))
    }

    /// The spelling under a protocol.
    pub fn name(self, protocol: Protocol) -> &'static str {
        match self {
            Self::Curve(curve) => curve_name(curve, protocol),
            other => Self::NAMED.iter().find(|row| row.0 == other).map_or("", |row| row.1),
        }
    }
}

/// A curve's spelling under a protocol.
pub fn curve_name(curve: Curve, protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Wtls => curve.wtls_name().unwrap_or(curve.name()),
        _ => curve.name(),
    }
}

/// The key of a certificate (or the temporary key of `rsa_anon`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyType {
    /// RSA of N bits; public exponent 65537, or 3.
    Rsa {
        bits: u16,
        /// Public exponent 3.
        exponent_3: bool,
    },
    /// DSA of N bits.
    Dsa(u16),
    /// ECDSA, or static ECDH in WTLS.
    Ec(Curve),
    /// RFC 8032.
    Ed25519,
    /// FIPS 204; 44, 65 or 87.
    MlDsa(u8),
}

impl KeyType {
    /// RSA sizes offered.
    pub const RSA_BITS: [u16; 7] = [512, 768, 1024, 1536, 2048, 3072, 4096];
    /// DSA sizes offered.
    pub const DSA_BITS: [u16; 3] = [512, 1024, 2048];
    /// ML-DSA parameter sets.
    pub const ML_DSA: [u8; 3] = [44, 65, 87];

    /// Reads a key's name; curves by either spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(size) = name.strip_prefix("rsa") {
            let (digits, exponent_3) = size.strip_suffix("e3").map_or((size, false), |digits| (digits, true));
            let bits = digits.parse().ok().filter(|bits| Self::RSA_BITS.contains(bits))?;
            return (digits == bits.to_string()).then_some(Self::Rsa { bits, exponent_3 });
        }
        if let Some(size) = name.strip_prefix("dsa") {
            let bits: u16 = size.parse().ok().filter(|bits| Self::DSA_BITS.contains(bits))?;
            return (size == bits.to_string()).then_some(Self::Dsa(bits));
        }
        match name {
            "ed25519" => Some(Self::Ed25519),
            "mldsa44" => Some(Self::MlDsa(44)),
            "mldsa65" => Some(Self::MlDsa(65)),
            "mldsa87" => Some(Self::MlDsa(87)),
            _ => Curve::from_name(name).map(Self::Ec),
        }
    }

    /// The spelling under a protocol.
    pub fn name(self, protocol: Protocol) -> &'static str {
        match self {
            Self::Rsa { bits, exponent_3 } => {
                crate::operation::intern(&format!("rsa{bits}{}", if exponent_3 { "e3" } else { "" }))
            }
            Self::Dsa(bits) => crate::operation::intern(&format!("dsa{bits}")),
            Self::Ec(curve) => curve_name(curve, protocol),
            Self::Ed25519 => "ed25519",
            Self::MlDsa(44) => "mldsa44",
            Self::MlDsa(65) => "mldsa65",
            Self::MlDsa(_) => "mldsa87",
        }
    }

    /// The spelling used outside WTLS suite names: in files and primitives.
    pub fn standard_name(self) -> &'static str {
        self.name(Protocol::Tls12)
    }
}

/// The keys part of a suite's name in a protocol, leaf first; a single leaf is issued by a root of its own kind.
pub fn chain_name(keys: &[KeyType], protocol: Protocol) -> String {
    let lone = keys.len() == 2 && keys[0] == keys[1];
    let shown = if lone { &keys[..1] } else { keys };
    shown.iter().map(|key| key.name(protocol)).collect::<Vec<_>>().join("@")
}

spelled! {
    /// Who presents a certificate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Authentication {
        /// The server only.
        Server = "server",
        /// The server requests a certificate, and the client answers with an empty list.
        Requested = "requested",
        Mutual = "mutual",
    }
}

spelled! {
    /// The kind of handshake.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Mode {
        /// No earlier session is used.
        Full = "full",
        /// Session ID up to TLS 1.2 and in WTLS; PSK with a new key exchange in TLS 1.3.
        Resumed = "resumed",
        /// RFC 5077.
        Ticket = "ticket",
        /// WTLS: the server already has the client's certificate.
        Optimized = "optimized",
    }
}
