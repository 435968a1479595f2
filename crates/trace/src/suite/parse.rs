//! The parser of suite names.

use super::{
    Authentication, Cipher, Curve, Group, GroupKind, KeyExchange, KeyType, LeafKind, Mode, Protocol, Suite,
    SuiteError, TlsCipher,
};
use std::str::FromStr;

/// Longest chain that a suite name may describe, root included.
const MAX_KEYS: usize = 10;

impl FromStr for Suite {
    type Err = SuiteError;

    fn from_str(text: &str) -> Result<Self, SuiteError> {
        let mut parts = text.split('/');
        let protocol = protocol(text, parts.next().unwrap_or_default())?;
        let (key_exchange, group) = key_exchange(text, protocol, parts.next().unwrap_or_default())?;
        let mut optional = Optional {
            text,
            protocol,
            key_exchange,
            keys: None,
            authentication: None,
            mode: None,
            cipher: None,
        };
        for part in parts {
            optional.take(part)?;
        }
        let keys = match optional.keys {
            Some(keys) => keys,
            None => default_keys(protocol, key_exchange),
        };
        let authentication =
            optional.authentication.or(key_exchange.has_authentication().then_some(Authentication::Server));
        let mode = optional.mode.unwrap_or(Mode::Full);
        check_mode(text, protocol, key_exchange, authentication, mode)?;
        let cipher = optional.cipher.unwrap_or_else(|| Cipher::default_for(protocol, key_exchange));
        Ok(Self { protocol, key_exchange, group, keys, authentication, mode, cipher })
    }
}

fn protocol(text: &str, part: &str) -> Result<Protocol, SuiteError> {
    let found = Protocol::ALL.iter().find(|row| row.1 == part).map(|row| row.0);
    found.ok_or_else(|| SuiteError::UnknownProtocol {
        name: text.into(),
        protocol: part.into(),
        accepted: Protocol::ALL.map(|row| row.1).join(" "),
    })
}

/// Every key exchange (in TLS 1.3: or group) that a protocol accepts, for error messages.
fn key_exchange_names(protocol: Protocol) -> String {
    let own = KeyExchange::of(protocol).iter().map(|exchange| exchange.as_str().to_owned());
    let groups =
        if protocol == Protocol::Tls13 { group_names(protocol, GroupKind::Tls13) } else { Vec::new() };
    own.filter(|name| !name.is_empty())
        .chain(groups.into_iter().map(str::to_owned))
        .collect::<Vec<_>>()
        .join(" ")
}

fn key_exchange(
    text: &str,
    protocol: Protocol,
    part: &str,
) -> Result<(KeyExchange, Option<Group>), SuiteError> {
    if part.is_empty() {
        return Err(SuiteError::MissingKeyExchange {
            name: text.into(),
            protocol: protocol.as_str().into(),
            accepted: key_exchange_names(protocol),
        });
    }
    if protocol == Protocol::Tls13
        && let Some(group) = Group::from_name(part)
    {
        return Ok((
            KeyExchange::Ephemeral,
            Some(usable_group(text, protocol, KeyExchange::Ephemeral, group, part)?),
        ));
    }
    let (word, group_word) = part.split_once('+').map_or((part, None), |(word, group)| (word, Some(group)));
    let found = KeyExchange::of(protocol)
        .iter()
        .copied()
        .find(|exchange| exchange.as_str() == word && *exchange != KeyExchange::Ephemeral);
    let Some(exchange) = found else {
        return Err(SuiteError::UnknownKeyExchange {
            name: text.into(),
            protocol: protocol.as_str().into(),
            key_exchange: word.into(),
            accepted: key_exchange_names(protocol),
        });
    };
    let group = match (exchange.group_kind(), group_word) {
        (None, None) => None,
        (None, Some(group)) => {
            return Err(SuiteError::GroupWithoutUse {
                name: text.into(),
                key_exchange: word.into(),
                group: group.into(),
            });
        }
        (Some(kind), None) => Some(default_group(protocol, kind)),
        (Some(kind), Some(word)) => {
            let group =
                Group::from_name(word).ok_or_else(|| unusable_group(text, protocol, exchange, kind, word))?;
            Some(usable_group(text, protocol, exchange, group, word)?)
        }
    };
    Ok((exchange, group))
}

fn default_group(protocol: Protocol, kind: GroupKind) -> Group {
    let curve = |name| Curve::from_name(name).map_or(Group::X25519, Group::Curve);
    match (protocol, kind) {
        (Protocol::Wtls, GroupKind::FiniteField) => Group::Dh(768),
        (Protocol::Wtls, _) => curve("160p"),
        (_, GroupKind::FiniteField) => Group::Dh(2048),
        (Protocol::Tls10 | Protocol::Tls11, _) => curve("p256"),
        _ => Group::X25519,
    }
}

fn group_fits(protocol: Protocol, kind: GroupKind, group: Group) -> bool {
    match (protocol, kind, group) {
        (Protocol::Wtls, GroupKind::FiniteField, Group::Dh(bits)) => matches!(bits, 512 | 768),
        (_, GroupKind::FiniteField, Group::Dh(bits)) => protocol != Protocol::Wtls && bits != 768,
        (_, GroupKind::FiniteField, Group::Ffdhe(_)) => protocol != Protocol::Wtls,
        (Protocol::Wtls, GroupKind::Curve, Group::Curve(curve)) => curve.wtls_name().is_some(),
        (_, GroupKind::Curve, Group::Curve(curve)) => {
            protocol != Protocol::Wtls && curve.tls_group().is_some()
        }
        (_, GroupKind::Curve, Group::X25519 | Group::X448) => protocol != Protocol::Wtls,
        // RFC 8446 keeps three curves. The code points of RFC 8734 for Brainpool curves are not supported.
        (_, GroupKind::Tls13, Group::Curve(curve)) => {
            matches!(curve.name(), "p256" | "p384" | "p521")
        }
        (_, GroupKind::Tls13, Group::Dh(_)) => false,
        (_, GroupKind::Tls13, _) => true,
        _ => false,
    }
}

fn group_names(protocol: Protocol, kind: GroupKind) -> Vec<&'static str> {
    let named = Group::NAMED.iter().map(|row| row.0);
    let all = named.chain(Curve::all().map(Group::Curve));
    all.filter(|group| group_fits(protocol, kind, *group)).map(|group| group.name(protocol)).collect()
}

fn unusable_group(
    text: &str,
    protocol: Protocol,
    exchange: KeyExchange,
    kind: GroupKind,
    word: &str,
) -> SuiteError {
    SuiteError::UnusableGroup {
        name: text.into(),
        protocol: protocol.as_str().into(),
        key_exchange: if exchange == KeyExchange::Ephemeral {
            "the key share".into()
        } else {
            exchange.as_str().into()
        },
        group: word.into(),
        accepted: group_names(protocol, kind).join(" "),
    }
}

fn usable_group(
    text: &str,
    protocol: Protocol,
    exchange: KeyExchange,
    group: Group,
    word: &str,
) -> Result<Group, SuiteError> {
    let kind = exchange.group_kind().unwrap_or(GroupKind::Tls13);
    if group_fits(protocol, kind, group) {
        Ok(group)
    } else {
        Err(unusable_group(text, protocol, exchange, kind, word))
    }
}

fn default_keys(protocol: Protocol, exchange: KeyExchange) -> Vec<KeyType> {
    let curve = |name| Curve::from_name(name).map_or(KeyType::Ed25519, KeyType::Ec);
    let rsa_bits = if protocol == Protocol::Wtls { 1024 } else { 2048 };
    let leaf = match exchange.leaf_kind() {
        None => return Vec::new(),
        Some(LeafKind::Rsa) => KeyType::Rsa { bits: rsa_bits, exponent_3: false },
        Some(LeafKind::Dsa) => KeyType::Dsa(2048),
        Some(LeafKind::Ec) => curve("160p"),
        Some(LeafKind::EcOrEdwards | LeafKind::Tls13) => curve("p256"),
    };
    with_root(exchange, vec![leaf])
}

/// A single leaf is issued by a root of its own kind; a temporary key has no issuer.
fn with_root(exchange: KeyExchange, mut keys: Vec<KeyType>) -> Vec<KeyType> {
    if keys.len() == 1 && exchange != KeyExchange::RsaAnon {
        keys.push(keys[0]);
    }
    keys
}

fn all_keys() -> impl Iterator<Item = KeyType> {
    let rsa = KeyType::RSA_BITS
        .iter()
        .flat_map(|&bits| [false, true].map(|exponent_3| KeyType::Rsa { bits, exponent_3 }));
    let dsa = KeyType::DSA_BITS.iter().map(|&bits| KeyType::Dsa(bits));
    let ml_dsa = KeyType::ML_DSA.iter().map(|&set| KeyType::MlDsa(set));
    rsa.chain(dsa).chain(Curve::all().map(KeyType::Ec)).chain([KeyType::Ed25519]).chain(ml_dsa)
}

fn leaf_fits(protocol: Protocol, kind: LeafKind, key: KeyType) -> bool {
    let curve_fits = |curve: Curve| match protocol {
        Protocol::Wtls => curve.wtls_name().is_some(),
        Protocol::Tls13 => matches!(curve.name(), "p256" | "p384" | "p521"),
        _ => curve.tls_group().is_some(),
    };
    match (kind, key) {
        (LeafKind::Rsa, KeyType::Rsa { .. }) | (LeafKind::Dsa, KeyType::Dsa(_)) => true,
        (LeafKind::Ec | LeafKind::EcOrEdwards | LeafKind::Tls13, KeyType::Ec(curve)) => curve_fits(curve),
        // RFC 8422 adds Ed25519 to TLS 1.2.
        (LeafKind::EcOrEdwards, KeyType::Ed25519) => protocol.is_modern(),
        (LeafKind::Tls13, KeyType::Ed25519 | KeyType::MlDsa(_)) => true,
        // PSS with SHA-256 and a salt of 32 bytes needs a modulus of at least 522 bits (RFC 8017 section 9.1.1).
        (LeafKind::Tls13, KeyType::Rsa { bits, .. }) => bits > 528,
        _ => false,
    }
}

fn issuer_fits(protocol: Protocol, exchange: KeyExchange, key: KeyType) -> bool {
    match (protocol, key) {
        (Protocol::Wtls, KeyType::Rsa { .. }) => exchange == KeyExchange::Rsa,
        (Protocol::Wtls, KeyType::Ec(curve)) => {
            exchange == KeyExchange::EcdhEcdsa && curve.wtls_name().is_some()
        }
        (Protocol::Wtls, _) => false,
        // An RSA-512 signature is too short for a DigestInfo with SHA-384 or SHA-512, but not for one with SHA-256.
        (_, KeyType::Rsa { .. } | KeyType::Dsa(_)) => true,
        (_, KeyType::Ec(curve)) => curve.tls_group().is_some(),
        (_, KeyType::Ed25519) => protocol.is_modern(),
        (_, KeyType::MlDsa(_)) => protocol == Protocol::Tls13,
    }
}

fn key_names(protocol: Protocol, fits: impl Fn(KeyType) -> bool) -> String {
    all_keys().filter(|key| fits(*key)).map(|key| key.name(protocol)).collect::<Vec<_>>().join(" ")
}

/// The optional parts, as far as they have been read.
struct Optional<'a> {
    text: &'a str,
    protocol: Protocol,
    key_exchange: KeyExchange,
    keys: Option<Vec<KeyType>>,
    authentication: Option<Authentication>,
    mode: Option<Mode>,
    cipher: Option<Cipher>,
}

impl Optional<'_> {
    /// Recognises a part by its vocabulary; parts come in the order keys, authentication, mode, cipher.
    fn take(&mut self, part: &str) -> Result<(), SuiteError> {
        let late = |seen: bool| if seen { Some(self.unknown(part)) } else { None };
        if let Some(&(authentication, _)) = Authentication::ALL.iter().find(|row| row.1 == part) {
            if !self.key_exchange.has_authentication() {
                return Err(SuiteError::AuthenticationWithoutUse {
                    name: self.text.into(),
                    key_exchange: self.key_exchange.as_str().into(),
                    authentication: part.into(),
                });
            }
            if let Some(error) =
                late(self.authentication.is_some() || self.mode.is_some() || self.cipher.is_some())
            {
                return Err(error);
            }
            self.authentication = Some(authentication);
            return Ok(());
        }
        if let Some(&(mode, _)) = Mode::ALL.iter().find(|row| row.1 == part) {
            if let Some(error) = late(self.mode.is_some() || self.cipher.is_some()) {
                return Err(error);
            }
            self.mode = Some(mode);
            return Ok(());
        }
        if is_cipher_word(part) {
            if let Some(error) = late(self.cipher.is_some()) {
                return Err(error);
            }
            self.cipher = Some(self.usable_cipher(part)?);
            return Ok(());
        }
        if part.split('@').any(looks_like_key) {
            if let Some(error) = late(
                self.keys.is_some()
                    || self.authentication.is_some()
                    || self.mode.is_some()
                    || self.cipher.is_some(),
            ) {
                return Err(error);
            }
            self.keys = Some(self.usable_keys(part)?);
            return Ok(());
        }
        Err(self.unknown(part))
    }

    fn usable_cipher(&self, part: &str) -> Result<Cipher, SuiteError> {
        let found = Cipher::from_name(part, self.protocol).filter(|cipher| cipher.fits(self.protocol));
        found.ok_or_else(|| SuiteError::UnusableCipher {
            name: self.text.into(),
            protocol: self.protocol.as_str().into(),
            cipher: part.into(),
            accepted: Cipher::names(self.protocol).join(" "),
        })
    }

    fn usable_keys(&self, part: &str) -> Result<Vec<KeyType>, SuiteError> {
        let name = || self.text.to_owned();
        let exchange = self.key_exchange;
        let Some(kind) = exchange.leaf_kind() else {
            return Err(SuiteError::KeysWithoutUse {
                name: name(),
                key_exchange: match exchange {
                    KeyExchange::Ephemeral => "a key share".into(),
                    other => other.as_str().into(),
                },
                keys: part.into(),
            });
        };
        let mut keys = Vec::new();
        for word in part.split('@') {
            keys.push(KeyType::from_name(word).ok_or_else(|| SuiteError::UnknownKey {
                name: name(),
                keys: part.into(),
                key: word.into(),
                accepted: key_names(self.protocol, |key| leaf_fits(self.protocol, kind, key)),
            })?);
        }
        if keys.len() > MAX_KEYS {
            return Err(SuiteError::ChainTooLong { name: name(), keys: part.into(), max: MAX_KEYS });
        }
        if exchange == KeyExchange::RsaAnon && keys.len() > 1 {
            return Err(SuiteError::ChainOfTemporaryKey { name: name(), keys: part.into() });
        }
        if !leaf_fits(self.protocol, kind, keys[0]) {
            return Err(SuiteError::UnusableKey {
                name: name(),
                protocol: self.protocol.as_str().into(),
                key_exchange: match exchange {
                    KeyExchange::Ephemeral => "a certificate".into(),
                    other => other.as_str().into(),
                },
                key: keys[0].name(self.protocol).into(),
                accepted: key_names(self.protocol, |key| leaf_fits(self.protocol, kind, key)),
            });
        }
        if let Some(issuer) = keys[1..].iter().find(|key| !issuer_fits(self.protocol, exchange, **key)) {
            return Err(SuiteError::UnusableIssuer {
                name: name(),
                protocol: self.protocol.as_str().into(),
                issuer: issuer.name(self.protocol).into(),
                accepted: key_names(self.protocol, |key| issuer_fits(self.protocol, exchange, key)),
            });
        }
        Ok(with_root(exchange, keys))
    }

    fn unknown(&self, part: &str) -> SuiteError {
        let (place, accepted) = if self.cipher.is_some() {
            (" after the cipher", "nothing more".to_owned())
        } else if self.mode.is_some() {
            (" after the mode", "a cipher".to_owned())
        } else if self.authentication.is_some() {
            (" after the authentication", "a mode (full resumed ticket optimized), a cipher".to_owned())
        } else {
            let mut accepted = Vec::new();
            if self.key_exchange.leaf_kind().is_some() && self.keys.is_none() {
                accepted.push("keys (rsa2048, dsa1024, p256, ed25519 …)");
            }
            if self.key_exchange.has_authentication() {
                accepted.push("an authentication (server requested mutual)");
            }
            accepted.push("a mode (full resumed ticket optimized)");
            accepted.push("a cipher");
            ("", accepted.join(", "))
        };
        SuiteError::UnknownPart { name: self.text.into(), part: part.into(), place: place.into(), accepted }
    }
}

fn is_cipher_word(part: &str) -> bool {
    TlsCipher::ALL.iter().any(|row| row.1 == part) || Cipher::from_name(part, Protocol::Wtls).is_some()
}

/// True for a word that is meant as a key, even if its size is not offered: the message then lists the sizes.
fn looks_like_key(word: &str) -> bool {
    let sized = |prefix: &str| {
        word.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    KeyType::from_name(word).is_some()
        || sized("rsa")
        || sized("dsa")
        || sized("mldsa")
        || sized("sect")
        || sized("secp")
}

fn check_mode(
    text: &str,
    protocol: Protocol,
    exchange: KeyExchange,
    authentication: Option<Authentication>,
    mode: Mode,
) -> Result<(), SuiteError> {
    let reason = match (mode, protocol) {
        (Mode::Full, _) => None,
        (Mode::Optimized, _) => {
            let possible =
                exchange == KeyExchange::EcdhEcdsa && authentication == Some(Authentication::Mutual);
            (!possible).then_some("the optimised handshake exists for wtls/ecdh_ecdsa/…/mutual only")
        }
        (Mode::Resumed, Protocol::Tls13) => (exchange != KeyExchange::Ephemeral)
            .then_some("TLS 1.3 resumes with a pre-shared key; name a group and keys instead"),
        (Mode::Resumed, Protocol::Wtls) => (exchange == KeyExchange::SharedSecret)
            .then_some("a shared secret already uses the abbreviated handshake"),
        (Mode::Resumed, _) => None,
        (Mode::Ticket, Protocol::Ssl3) => {
            Some("SSL 3.0 has no extensions, so no tickets (RFC 5077); use 'resumed'")
        }
        (Mode::Ticket, Protocol::Tls13) => Some("TLS 1.3 always resumes by ticket; use 'resumed'"),
        (Mode::Ticket, Protocol::Wtls) => Some("WTLS has no tickets; use 'resumed'"),
        (Mode::Ticket, _) => None,
    };
    match reason {
        None => Ok(()),
        Some(reason) => {
            Err(SuiteError::ImpossibleMode { name: text.into(), mode: mode.as_str().into(), reason })
        }
    }
}
