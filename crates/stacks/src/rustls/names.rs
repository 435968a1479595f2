//! rustls's names for the parts of a suite, and the suites that it supports.

use rustls::{AlertDescription, CipherSuite, Connection, Error, HandshakeKind, NamedGroup, ProtocolVersion};
use shakedown_trace::endpoint::Negotiated;
use shakedown_trace::suite::{Cipher, Group, KeyExchange, KeyType, Protocol, TlsCipher};
use shakedown_trace::{Side, Suite};

/// The alert that was sent or received for a failure.
pub fn alert(error: &Error) -> Option<String> {
    // rustls does not publish which alert it sends for most errors; it is visible in the sent bytes.
    let description = match error {
        Error::AlertReceived(description) => *description,
        Error::InvalidCertificate(reason) => AlertDescription::from(reason.clone()),
        Error::InvalidMessage(reason) => AlertDescription::from(*reason),
        Error::NoCertificatesPresented => AlertDescription::CertificateRequired,
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            AlertDescription::UnexpectedMessage
        }
        Error::DecryptError => AlertDescription::BadRecordMac,
        _ => return None,
    };
    Some(shakedown_trace::alert::name(description.into()))
}

/// Protocol, key exchange and cipher, with rustls's name of the combination.
const CIPHERS: [(Protocol, KeyExchange, TlsCipher, CipherSuite); 9] = {
    use CipherSuite as Name;
    use KeyExchange::{EcdheEcdsa, EcdheRsa, Ephemeral};
    use Protocol::{Tls12, Tls13};
    use TlsCipher::{Aes128Gcm, Aes256Gcm, Chacha20};
    [
        (Tls13, Ephemeral, Aes128Gcm, Name::TLS13_AES_128_GCM_SHA256),
        (Tls13, Ephemeral, Aes256Gcm, Name::TLS13_AES_256_GCM_SHA384),
        (Tls13, Ephemeral, Chacha20, Name::TLS13_CHACHA20_POLY1305_SHA256),
        (Tls12, EcdheEcdsa, Aes128Gcm, Name::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        (Tls12, EcdheEcdsa, Aes256Gcm, Name::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
        (Tls12, EcdheEcdsa, Chacha20, Name::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
        (Tls12, EcdheRsa, Aes128Gcm, Name::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
        (Tls12, EcdheRsa, Aes256Gcm, Name::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
        (Tls12, EcdheRsa, Chacha20, Name::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ]
};

pub fn cipher_suite(suite: &Suite) -> Option<CipherSuite> {
    let Cipher::Tls(cipher) = suite.cipher else { return None };
    let asked = (suite.protocol, suite.key_exchange, cipher);
    CIPHERS.iter().find(|row| (row.0, row.1, row.2) == asked).map(|row| row.3)
}

/// Key exchange and cipher of rustls's cipher suite.
pub fn parts(suite: CipherSuite) -> Option<(KeyExchange, TlsCipher)> {
    CIPHERS.iter().find(|row| row.3 == suite).map(|row| (row.1, row.2))
}

/// rustls's groups and their names in suites.
const GROUPS: [(&str, NamedGroup); 7] = [
    ("x25519", NamedGroup::X25519),
    ("p256", NamedGroup::secp256r1),
    ("p384", NamedGroup::secp384r1),
    ("x25519mlkem768", NamedGroup::X25519MLKEM768),
    ("secp256r1mlkem768", NamedGroup::secp256r1MLKEM768),
    ("mlkem768", NamedGroup::MLKEM768),
    ("mlkem1024", NamedGroup::MLKEM1024),
];

pub fn group(group: Group) -> Option<NamedGroup> {
    let name = group.name(Protocol::Tls13);
    GROUPS.iter().find(|row| row.0 == name).map(|row| row.1)
}

pub fn known_group(name: NamedGroup) -> Option<Group> {
    GROUPS.iter().find(|row| row.1 == name).and_then(|row| Group::from_name(row.0))
}

/// The curves of certificates that a client must list among its groups.
pub fn certificate_groups(suite: &Suite, side: Side) -> impl Iterator<Item = Group> {
    let names_them = side == Side::Client && suite.protocol == Protocol::Tls12;
    let curve = |key: &KeyType| match key {
        KeyType::Ec(curve) => Some(Group::Curve(*curve)),
        _ => None,
    };
    suite.keys.iter().filter(move |_| names_them).filter_map(curve)
}

/// The result of a completed handshake; `None` before.
pub fn negotiated(connection: &Connection) -> Option<Negotiated> {
    if connection.is_handshaking() {
        return None;
    }
    let protocol = match connection.protocol_version()? {
        ProtocolVersion::TLSv1_2 => Protocol::Tls12,
        _ => Protocol::Tls13,
    };
    let suite = connection.negotiated_cipher_suite()?;
    let parts = parts(suite.suite());
    let group = connection.negotiated_key_exchange_group();
    Some(Negotiated {
        protocol,
        key_exchange: parts.map(|parts| parts.0),
        cipher: parts.map(|parts| Cipher::Tls(parts.1)),
        cipher_suite: suite.suite().as_str().unwrap_or("unknown"),
        group: group.and_then(|group| known_group(group.name())),
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        optimized: false,
    })
}

pub fn supports(suite: &Suite) -> Result<(), String> {
    if !matches!(suite.protocol, Protocol::Tls12 | Protocol::Tls13) {
        return Err("rustls runs TLS 1.2 and TLS 1.3".into());
    }
    if !matches!(suite.key_exchange, KeyExchange::EcdheEcdsa | KeyExchange::EcdheRsa | KeyExchange::Ephemeral)
    {
        return Err(format!(
            "rustls has no key exchange {}; accepted: ecdhe_ecdsa ecdhe_rsa, and groups of TLS 1.3",
            suite.key_exchange.as_str()
        ));
    }
    if cipher_suite(suite).is_none() {
        return Err(format!(
            "rustls has no cipher {}; accepted: aes128-gcm aes256-gcm chacha20",
            suite.cipher.name()
        ));
    }
    let named = suite.group.and_then(group);
    let kem = |group: NamedGroup| {
        !matches!(group, NamedGroup::X25519 | NamedGroup::secp256r1 | NamedGroup::secp384r1)
    };
    if named.is_none_or(|group| suite.protocol == Protocol::Tls12 && kem(group)) {
        let names: Vec<_> =
            GROUPS.iter().filter(|row| suite.protocol == Protocol::Tls13 || !kem(row.1)).collect();
        let names: Vec<_> = names.iter().map(|row| row.0).collect();
        return Err(format!(
            "rustls has no such group in {}; accepted: {}",
            suite.protocol.as_str(),
            names.join(" ")
        ));
    }
    for key in &suite.keys {
        let accepted = match key {
            KeyType::Rsa { bits, exponent_3 } => *bits >= 2048 && !exponent_3,
            // rustls supports signatures with P-521, but has no such group to announce to a TLS 1.2 server.
            KeyType::Ec(curve) if curve.name() == "p521" => suite.protocol == Protocol::Tls13,
            KeyType::Ec(curve) => matches!(curve.name(), "p256" | "p384"),
            KeyType::Ed25519 => true,
            KeyType::Dsa(_) | KeyType::MlDsa(_) => false,
        };
        if !accepted {
            let name = key.name(suite.protocol);
            return Err(format!(
                "rustls has no keys {name} in {}; accepted: rsa2048 rsa3072 rsa4096 p256 p384 ed25519, in TLS 1.3 p521",
                suite.protocol.as_str()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_have_their_rfc_names() {
        let received = |description| alert(&Error::AlertReceived(description));
        assert_eq!(received(AlertDescription::UnknownCA).as_deref(), Some("unknown_ca"));
        assert_eq!(received(AlertDescription::UnrecognisedName).as_deref(), Some("unrecognized_name"));
        assert_eq!(received(AlertDescription::Unknown(200)).as_deref(), Some("alert_200"));
    }
}
