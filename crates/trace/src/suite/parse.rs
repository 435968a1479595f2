//! From a name to a [`Suite`].

use super::{
    Authentication, Cipher, Curve, Group, GroupKind, KeyExchange, KeyType, LeafKind, Mode, Protocol, Suite,
    TlsCipher,
};
use std::str::FromStr;

/// Longest chain that a suite name may describe, root included.
const MAX_KEYS: usize = 10;

/// Why a text is no suite: its message names the text, the part, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("suite '{name}': {fault}")]
pub struct SuiteError {
    pub name: String,
    pub fault: String,
}

impl FromStr for Suite {
    type Err = SuiteError;

    fn from_str(text: &str) -> Result<Self, SuiteError> {
        parse(text).map_err(|fault| SuiteError { name: text.into(), fault })
    }
}

fn parse(text: &str) -> Result<Suite, String> {
    let mut parts = text.split('/');
    let protocol = protocol(parts.next().unwrap_or_default())?;
    let (key_exchange, group) = key_exchange(protocol, parts.next().unwrap_or_default())?;
    let mut optional = Optional {
        protocol,
        key_exchange,
        latest: Part::Exchange,
        keys: None,
        authentication: None,
        mode: Mode::Full,
        cipher: None,
    };
    for part in parts {
        optional.take(part)?;
    }
    let keys = optional.keys.unwrap_or_else(|| default_keys(protocol, key_exchange));
    let authentication =
        optional.authentication.or(key_exchange.has_authentication().then_some(Authentication::Server));
    let mode = optional.mode;
    if let Some(reason) = impossible_mode(protocol, key_exchange, authentication, mode) {
        return Err(format!("mode '{mode}' is impossible here: {reason}"));
    }
    let cipher = optional.cipher.unwrap_or_else(|| Cipher::default_for(protocol, key_exchange));
    Ok(Suite { protocol, key_exchange, group, keys, authentication, mode, cipher })
}

fn protocol(part: &str) -> Result<Protocol, String> {
    Protocol::from_name(part).ok_or_else(|| {
        let accepted = Protocol::ALL.map(|row| row.1).join(" ");
        format!("unknown protocol '{part}'; accepted: {accepted}")
    })
}

/// Every key exchange (in TLS 1.3: or group) that a protocol accepts, for error messages.
fn key_exchange_names(protocol: Protocol) -> String {
    let own = KeyExchange::of(protocol).iter().map(|exchange| exchange.as_str());
    let groups =
        if protocol == Protocol::Tls13 { group_names(protocol, GroupKind::Tls13) } else { Vec::new() };
    own.filter(|name| !name.is_empty()).chain(groups).collect::<Vec<_>>().join(" ")
}

fn key_exchange(protocol: Protocol, part: &str) -> Result<(KeyExchange, Option<Group>), String> {
    if part.is_empty() {
        let accepted = key_exchange_names(protocol);
        return Err(format!("no key exchange given; after '{protocol}/' comes one of: {accepted}"));
    }
    if protocol == Protocol::Tls13
        && let Some(group) = Group::from_name(part)
    {
        let group = usable_group(protocol, KeyExchange::Ephemeral, GroupKind::Tls13, Some(group), part)?;
        return Ok((KeyExchange::Ephemeral, Some(group)));
    }
    let (word, group_word) = part.split_once('+').map_or((part, None), |(word, group)| (word, Some(group)));
    let found = KeyExchange::of(protocol)
        .iter()
        .copied()
        .find(|exchange| exchange.as_str() == word && *exchange != KeyExchange::Ephemeral);
    let Some(exchange) = found else {
        let accepted = key_exchange_names(protocol);
        return Err(format!("{protocol} has no key exchange '{word}'; accepted: {accepted}"));
    };
    let group = match (exchange.group_kind(), group_word) {
        (None, None) => None,
        (None, Some(group)) => return Err(format!("'{word}' does not use a group ('+{group}')")),
        (Some(kind), None) => Some(default_group(protocol, kind)),
        (Some(kind), Some(word)) => {
            Some(usable_group(protocol, exchange, kind, Group::from_name(word), word)?)
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

/// True where key exchanges of this kind can use the group.
pub fn group_fits(protocol: Protocol, kind: GroupKind, group: Group) -> bool {
    match (protocol, kind, group) {
        (Protocol::Wtls, GroupKind::FiniteField, Group::Dh(bits)) => matches!(bits, 512 | 768),
        (_, GroupKind::FiniteField, Group::Dh(bits)) => protocol != Protocol::Wtls && bits != 768,
        (_, GroupKind::FiniteField, Group::Ffdhe(_)) => protocol != Protocol::Wtls,
        (Protocol::Wtls, GroupKind::Curve, Group::Curve(curve)) => curve.wtls_name().is_some(),
        (_, GroupKind::Curve, Group::Curve(curve)) => {
            protocol != Protocol::Wtls && curve.tls_group().is_some()
        }
        (_, GroupKind::Curve, Group::X25519 | Group::X448) => protocol != Protocol::Wtls,
        // RFC 8446 keeps three curves; RFC 8734 gives the Brainpool curves code points of their own.
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

/// `group` is what `word` names, if anything.
fn usable_group(
    protocol: Protocol,
    exchange: KeyExchange,
    kind: GroupKind,
    group: Option<Group>,
    word: &str,
) -> Result<Group, String> {
    group.filter(|group| group_fits(protocol, kind, *group)).ok_or_else(|| {
        let user = if exchange == KeyExchange::Ephemeral { "the key share" } else { exchange.as_str() };
        let accepted = group_names(protocol, kind).join(" ");
        format!("'{word}' is not a group that {user} can use in {protocol}; accepted: {accepted}")
    })
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

/// A lone leaf is issued by a root of its own kind; a temporary key by none.
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

/// True where a leaf of this kind can have the key.
pub fn leaf_fits(protocol: Protocol, kind: LeafKind, key: KeyType) -> bool {
    let curve_fits = |curve: Curve| match protocol {
        Protocol::Wtls => curve.wtls_name().is_some(),
        Protocol::Tls13 => matches!(curve.name(), "p256" | "p384" | "p521"),
        _ => curve.tls_group().is_some(),
    };
    match (kind, key) {
        // The WTLS tables of this project's papers stop at 3072; smaller keys than 1024 are for export suites.
        (LeafKind::Rsa, KeyType::Rsa { .. }) | (LeafKind::Dsa, KeyType::Dsa(_)) => true,
        (LeafKind::Ec | LeafKind::EcOrEdwards | LeafKind::Tls13, KeyType::Ec(curve)) => curve_fits(curve),
        // RFC 8422 brings Ed25519 to TLS 1.2.
        (LeafKind::EcOrEdwards, KeyType::Ed25519) => protocol.is_modern(),
        (LeafKind::Tls13, KeyType::Ed25519 | KeyType::MlDsa(_)) => true,
        // PSS with SHA-256 and a salt of 32 bytes needs 528 bits at least (RFC 8017 section 9.1.1).
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
        // A signature of RSA-512 has no room for a DigestInfo with SHA-384 and above, but has for SHA-256.
        (_, KeyType::Rsa { .. } | KeyType::Dsa(_)) => true,
        (_, KeyType::Ec(curve)) => curve.tls_group().is_some(),
        (_, KeyType::Ed25519) => protocol.is_modern(),
        (_, KeyType::MlDsa(_)) => protocol == Protocol::Tls13,
    }
}

fn key_names(protocol: Protocol, fits: impl Fn(KeyType) -> bool) -> String {
    all_keys().filter(|key| fits(*key)).map(|key| key.name(protocol)).collect::<Vec<_>>().join(" ")
}

/// The parts of a name, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Exchange,
    Keys,
    Authentication,
    Mode,
    Cipher,
}

/// The parts that may be left out, as they come.
struct Optional {
    protocol: Protocol,
    key_exchange: KeyExchange,
    latest: Part,
    keys: Option<Vec<KeyType>>,
    authentication: Option<Authentication>,
    mode: Mode,
    cipher: Option<Cipher>,
}

impl Optional {
    /// Recognises a part by its vocabulary.
    fn take(&mut self, part: &str) -> Result<(), String> {
        if let Some(authentication) = Authentication::from_name(part) {
            if !self.key_exchange.has_authentication() {
                let exchange = self.key_exchange;
                return Err(format!("'{exchange}' does not use an authentication ('{part}')"));
            }
            self.reach(Part::Authentication, part)?;
            self.authentication = Some(authentication);
        } else if let Some(mode) = Mode::from_name(part) {
            self.reach(Part::Mode, part)?;
            self.mode = mode;
        } else if is_cipher_word(part) {
            self.reach(Part::Cipher, part)?;
            self.cipher = Some(self.usable_cipher(part)?);
        } else if part.split('@').any(looks_like_key) {
            self.reach(Part::Keys, part)?;
            self.keys = Some(self.usable_keys(part)?);
        } else {
            return Err(self.unknown(part));
        }
        Ok(())
    }

    /// Each part comes once, after those that precede it.
    fn reach(&mut self, reached: Part, part: &str) -> Result<(), String> {
        if self.latest >= reached {
            return Err(self.unknown(part));
        }
        self.latest = reached;
        Ok(())
    }

    fn usable_cipher(&self, part: &str) -> Result<Cipher, String> {
        let protocol = self.protocol;
        let found = Cipher::from_name(part, protocol).filter(|cipher| cipher.fits(protocol));
        found.ok_or_else(|| {
            let accepted = Cipher::names(protocol).join(" ");
            format!("{protocol} cannot use cipher '{part}'; accepted: {accepted}")
        })
    }

    fn usable_keys(&self, part: &str) -> Result<Vec<KeyType>, String> {
        let (protocol, exchange) = (self.protocol, self.key_exchange);
        let Some(kind) = exchange.leaf_kind() else {
            return Err(format!("'{exchange}' does not use keys ('{part}')"));
        };
        let leaves = || key_names(protocol, |key| leaf_fits(protocol, kind, key));
        let mut keys = Vec::new();
        for word in part.split('@') {
            let key = KeyType::from_name(word);
            keys.push(
                key.ok_or_else(|| format!("unknown key '{word}' in '{part}'; accepted: {}", leaves()))?,
            );
        }
        if keys.len() > MAX_KEYS {
            return Err(format!("more than {MAX_KEYS} certificates in '{part}'"));
        }
        if exchange == KeyExchange::RsaAnon && keys.len() > 1 {
            return Err(format!("'rsa_anon' uses one temporary key and no chain, not '{part}'"));
        }
        if !leaf_fits(protocol, kind, keys[0]) {
            let user = if exchange == KeyExchange::Ephemeral { "a certificate" } else { exchange.as_str() };
            let key = keys[0].name(protocol);
            return Err(format!("{user} in {protocol} cannot use a {key} key; accepted: {}", leaves()));
        }
        if let Some(issuer) = keys[1..].iter().find(|key| !issuer_fits(protocol, exchange, **key)) {
            let issuer = issuer.name(protocol);
            let accepted = key_names(protocol, |key| issuer_fits(protocol, exchange, key));
            return Err(format!("{protocol} cannot use an issuer with a {issuer} key; accepted: {accepted}"));
        }
        Ok(with_root(exchange, keys))
    }

    fn unknown(&self, part: &str) -> String {
        let (place, accepted) = match self.latest {
            Part::Cipher => (" after the cipher", "nothing more".to_owned()),
            Part::Mode => (" after the mode", "a cipher".to_owned()),
            Part::Authentication => {
                (" after the authentication", "a mode (full resumed ticket optimized), a cipher".to_owned())
            }
            Part::Exchange | Part::Keys => {
                let mut accepted = Vec::new();
                if self.key_exchange.leaf_kind().is_some() && self.latest == Part::Exchange {
                    accepted.push("keys (rsa2048, dsa1024, p256, ed25519 …)");
                }
                if self.key_exchange.has_authentication() {
                    accepted.push("an authentication (server requested mutual)");
                }
                accepted.push("a mode (full resumed ticket optimized)");
                accepted.push("a cipher");
                ("", accepted.join(", "))
            }
        };
        format!("'{part}' is not understood{place}; accepted there: {accepted}")
    }
}

fn is_cipher_word(part: &str) -> bool {
    TlsCipher::from_name(part).is_some() || Cipher::from_name(part, Protocol::Wtls).is_some()
}

/// True for what is meant as a key, even where its size is not offered: the message can then say which are.
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

/// Why the mode is impossible, if it is.
fn impossible_mode(
    protocol: Protocol,
    exchange: KeyExchange,
    authentication: Option<Authentication>,
    mode: Mode,
) -> Option<&'static str> {
    match (mode, protocol) {
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
    }
}
