//! Determines the suite of a captured handshake.
//!
//! A suite is named only if all parts of the name were seen: an abbreviated handshake up to TLS 1.2 contains no
//! certificates, and TLS 1.3 without keys does not show them. The suite of a resumption is derived from the handshake
//! that created the session, if that was captured. Two parts are assumed:
//!
//! - the root, which is not sent, has the kind of key that made the last signature; its size is that of the
//!   signature (for a DSA root, that of the key it certifies), and [`root`] chooses among keys of that size;
//! - the groups of RFC 3526 are named as those of RFC 7919 of the same size: both are recognised as safe
//!   primes and used with short exponents, so that they cost the same.
//!
//! TLS 1.3 does not distinguish resumption from an external pre-shared key; if the origin of the ticket was not seen,
//! both are named `psk_dhe` (or `psk`), because their costs are equal.

mod certificate;
mod root;
mod wtls;

use crate::message::{Name, Seen};
use crate::tls::{Negotiation, cipher_suite, protocol_name};
use shakedown_trace::MessageName;
use shakedown_trace::suite::{Cipher, Curve, Group, Mode, Suite};
use shakedown_wtls::codec::{bits, significant};

pub(crate) use certificate::Presented;
pub(crate) use wtls::wtls_suite;

/// Ciphers, as spelled in cipher suite names and in suite names.
const CIPHERS: [(&str, &str); 26] = [
    ("RC4_128_MD5", "rc4-md5"),
    ("RC4_128_SHA", "rc4-sha"),
    ("3DES_EDE_CBC_SHA", "3des-sha"),
    ("IDEA_CBC_SHA", "idea-sha"),
    ("SEED_CBC_SHA", "seed-sha"),
    ("AES_128_CBC_SHA", "aes128-sha"),
    ("AES_256_CBC_SHA", "aes256-sha"),
    ("CAMELLIA_128_CBC_SHA", "camellia128-sha"),
    ("CAMELLIA_256_CBC_SHA", "camellia256-sha"),
    ("AES_128_CBC_SHA256", "aes128-sha256"),
    ("AES_256_CBC_SHA256", "aes256-sha256"),
    ("AES_256_CBC_SHA384", "aes256-sha384"),
    ("CAMELLIA_128_CBC_SHA256", "camellia128-sha256"),
    ("CAMELLIA_256_CBC_SHA256", "camellia256-sha256"),
    ("AES_128_GCM_SHA256", "aes128-gcm"),
    ("AES_256_GCM_SHA384", "aes256-gcm"),
    ("AES_128_CCM", "aes128-ccm"),
    ("AES_128_CCM_SHA256", "aes128-ccm"),
    ("AES_128_CCM_8", "aes128-ccm8"),
    ("AES_128_CCM_8_SHA256", "aes128-ccm8"),
    ("AES_256_CCM", "aes256-ccm"),
    ("AES_256_CCM_8", "aes256-ccm8"),
    ("CHACHA20_POLY1305_SHA256", "chacha20"),
    ("ARIA_128_GCM_SHA256", "aria128-gcm"),
    ("ARIA_256_GCM_SHA384", "aria256-gcm"),
    ("AES_256_CCM_SHA384", "aes256-ccm"),
];

const SSL_3_0: u16 = 0x0300;

/// Groups of the registry "TLS Supported Groups" that are not in [`Curve`].
const GROUPS: [(u16, &str); 10] = [
    (29, "x25519"),
    (30, "x448"),
    (256, "ffdhe2048"),
    (257, "ffdhe3072"),
    (512, "mlkem512"),
    (513, "mlkem768"),
    (514, "mlkem1024"),
    (0x11eb, "secp256r1mlkem768"),
    (0x11ec, "x25519mlkem768"),
    (0x11ed, "secp384r1mlkem1024"),
];

fn look_up(table: &[(&str, &'static str)], key: &str) -> Option<&'static str> {
    table.iter().find(|row| row.0 == key).map(|row| row.1)
}

fn group_name(number: u16) -> Option<String> {
    if let Some((_, name)) = GROUPS.iter().find(|row| row.0 == number) {
        return Some((*name).to_owned());
    }
    let curve = Curve::all().find(|curve| curve.tls_group() == Some(number))?;
    Some(curve.name().to_owned())
}

/// A suite, and a remark about assumed parts.
#[derive(Debug)]
pub(crate) struct NamedSuite {
    pub(crate) suite: Suite,
    pub(crate) remark: Option<String>,
}

impl NamedSuite {
    fn certain(suite: Suite) -> Self {
        Self { suite, remark: None }
    }
}

/// The parts of a suite name.
#[derive(Default)]
struct Parts {
    exchange: String,
    keys: Option<String>,
    authentication: Option<&'static str>,
    mode: Option<&'static str>,
    cipher: String,
}

impl Parts {
    fn suite(self, protocol: &str) -> Option<Suite> {
        let mut name = format!("{protocol}/{}", self.exchange);
        let rest = [self.keys.as_deref(), self.authentication, self.mode, Some(&self.cipher)];
        for part in rest.into_iter().flatten() {
            name.push('/');
            name.push_str(part);
        }
        name.parse().ok()
    }
}

/// The suite of a TLS or DTLS handshake; `seen` in the order in which it was sent.
pub(crate) fn tls_suite(
    negotiation: &Negotiation,
    seen: &[Seen],
    client: usize,
    resumed: Option<bool>,
) -> Option<NamedSuite> {
    let hello = negotiation.server_hello.as_ref()?;
    let protocol = protocol_name(hello.version)?;
    let name = cipher_suite::registered_name(hello.cipher_suite)?.strip_prefix("TLS_")?;
    let modern = negotiation.is_tls_1_3();
    let (exchange, cipher) = if modern { ("", name) } else { name.split_once("_WITH_")? };
    let mut parts = Parts { cipher: look_up(&CIPHERS, cipher)?.to_owned(), ..Parts::default() };
    if modern && hello.pre_shared_key {
        parts.exchange = match hello.group {
            Some(group) => format!("psk_dhe+{}", group_name(group)?),
            None => "psk".to_owned(),
        };
        return parts.suite(protocol).map(NamedSuite::certain);
    }
    if resumed? {
        return None;
    }
    if modern {
        parts.exchange = group_name(hello.group?)?;
    } else {
        // Key exchanges without a suite name are rejected when the name is parsed.
        parts.exchange = exchange.to_ascii_lowercase();
        if exchange.contains("DH") {
            let group = negotiation.group.as_deref()?;
            parts.exchange = format!("{}+{group}", parts.exchange);
        }
    }
    if !modern && (exchange.contains("anon") || (exchange.contains("PSK") && exchange != "RSA_PSK")) {
        return parts.suite(protocol).map(NamedSuite::certain);
    }
    let Some(Presented::Keys(chain)) = &negotiation.presented[1 - client] else { return None };
    let mut chain = root::Chain::clone(chain);
    if exchange != "RSA_PSK" {
        let sent = |direction, name| {
            let is_it = |one: &Seen| one.direction == direction && one.name == Name::Known(name);
            seen.iter().any(|one| is_it(one) && !one.after_handshake)
        };
        let asked = sent(1 - client, MessageName::CertificateRequest);
        // In SSL 3.0, a client without a certificate sends an alert instead (RFC 6101 section 5.6.6).
        let declined = hello.version == SSL_3_0
            && sent(client, MessageName::ClientKeyExchange)
            && !sent(client, MessageName::CertificateVerify);
        parts.authentication = Some(match (asked, &negotiation.presented[client]) {
            (false, _) => "server",
            (true, Some(Presented::Nothing)) => "requested",
            (true, None) if declined => "requested",
            // One description is used for both sides' keys.
            (true, Some(Presented::Keys(own))) => {
                chain = chain.shared(own)?;
                "mutual"
            }
            (true, _) => return None,
        });
    }
    parts.keys = Some(chain.keys());
    Some(NamedSuite { suite: parts.suite(protocol)?, remark: chain.remark() })
}

/// The suite of a handshake that resumes a session of another, whose suite is `origin`.
pub(crate) fn tls_resumption(origin: &Suite, negotiation: &Negotiation, ticket: bool) -> Option<Suite> {
    let hello = negotiation.server_hello.as_ref()?;
    if protocol_name(hello.version)? != origin.protocol.as_str() {
        return None;
    }
    let mut suite = origin.clone();
    suite.mode = if ticket { Mode::Ticket } else { Mode::Resumed };
    if negotiation.is_tls_1_3() {
        // TLS 1.3 has only tickets; group and cipher may differ from those of the session.
        let cipher = cipher_suite::registered_name(hello.cipher_suite)?.strip_prefix("TLS_")?;
        suite.cipher = Cipher::from_name(look_up(&CIPHERS, cipher)?, suite.protocol)?;
        suite.group = Some(Group::from_name(&group_name(hello.group?)?)?);
        suite.mode = Mode::Resumed;
    }
    // Parsed from its name again, so that no invalid suite is reported.
    suite.to_string().parse().ok()
}

/// The suite of a WTLS handshake that resumes a session of another, whose suite is `origin`.
pub(crate) fn wtls_resumption(origin: &Suite) -> Option<Suite> {
    Suite { mode: Mode::Resumed, ..origin.clone() }.to_string().parse().ok()
}

/// The group in a ServerKeyExchange (RFC 8422 section 5.4, RFC 5246 section 7.4.3).
pub(crate) fn exchange_group(cipher_suite: u16, mut body: &[u8]) -> Option<String> {
    let name = cipher_suite::registered_name(cipher_suite)?.strip_prefix("TLS_")?;
    let (exchange, _) = name.split_once("_WITH_")?;
    if !exchange.contains("DH") {
        return None;
    }
    if exchange.contains("PSK") {
        // The identity hint comes first (RFC 4279 section 3).
        body = body.get(2 + usize::from(u16::from_be_bytes([*body.first()?, *body.get(1)?]))..)?;
    }
    if exchange.starts_with("EC") {
        let &[3, high, low, ..] = body else { return None };
        return group_name(u16::from_be_bytes([high, low]));
    }
    let length = usize::from(u16::from_be_bytes([*body.first()?, *body.get(1)?]));
    let prime = body.get(2..2 + length)?;
    let (prime, bits) = (significant(prime), bits(prime));
    // Primes of both standards begin with 64 ones, then the bits of a constant: e (RFC 7919) or π (RFC 3526).
    let recognised = prime.starts_with(&[0xff; 8])
        && (prime[8..].starts_with(&[0xad, 0xf8, 0x54, 0x58])
            || prime[8..].starts_with(&[0xc9, 0x0f, 0xda, 0xa2]));
    let kind = if recognised && bits >= 2048 { "ffdhe" } else { "dh" };
    Some(format!("{kind}{bits}"))
}

#[cfg(test)]
mod tests;
