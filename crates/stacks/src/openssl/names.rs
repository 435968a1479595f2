//! OpenSSL's names for the parts of a suite.

use shakedown_trace::Suite;
use shakedown_trace::suite::{Cipher, Curve, Group, GroupKind, KeyExchange, Protocol, TlsCipher};

/// The cipher suite as OpenSSL spells it: for `SSL_CTX_set_cipher_list` up to TLS 1.2, for
/// `SSL_CTX_set_ciphersuites` in TLS 1.3.
pub fn cipher_suite(suite: &Suite) -> String {
    let Cipher::Tls(cipher) = suite.cipher else { return String::new() };
    if suite.protocol == Protocol::Tls13 {
        return match cipher {
            TlsCipher::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            TlsCipher::Chacha20 => "TLS_CHACHA20_POLY1305_SHA256",
            TlsCipher::Aes128Ccm => "TLS_AES_128_CCM_SHA256",
            TlsCipher::Aes128Ccm8 => "TLS_AES_128_CCM_8_SHA256",
            _ => "TLS_AES_128_GCM_SHA256",
        }
        .into();
    }
    let exchange = match suite.key_exchange {
        KeyExchange::DheRsa => "DHE-RSA-",
        KeyExchange::DheDss => "DHE-DSS-",
        KeyExchange::DhAnon => "ADH-",
        KeyExchange::Psk => "PSK-",
        KeyExchange::DhePsk => "DHE-PSK-",
        KeyExchange::RsaPsk => "RSA-PSK-",
        KeyExchange::EcdheEcdsa => "ECDHE-ECDSA-",
        KeyExchange::EcdheRsa => "ECDHE-RSA-",
        KeyExchange::EcdhePsk => "ECDHE-PSK-",
        KeyExchange::EcdhAnon => "AECDH-",
        _ => "",
    };
    let psk = matches!(
        suite.key_exchange,
        KeyExchange::Psk | KeyExchange::DhePsk | KeyExchange::RsaPsk | KeyExchange::EcdhePsk
    );
    let elliptic = matches!(suite.key_exchange, KeyExchange::EcdheEcdsa | KeyExchange::EcdheRsa);
    // OpenSSL writes the mode of CBC suites with a pre-shared key only.
    let cbc = |bulk: &str, mac: &str| if psk { format!("{bulk}-CBC-{mac}") } else { format!("{bulk}-{mac}") };
    // The PRF's hash follows from the cipher, except that 256-bit CBC suites with ECDHE use SHA-384.
    let bulk = match cipher {
        TlsCipher::Rc4Md5 => "RC4-MD5".into(),
        TlsCipher::Rc4Sha => "RC4-SHA".into(),
        TlsCipher::TripleDesSha if psk => "3DES-EDE-CBC-SHA".into(),
        TlsCipher::TripleDesSha => "DES-CBC3-SHA".into(),
        TlsCipher::IdeaSha => "IDEA-CBC-SHA".into(),
        TlsCipher::SeedSha => "SEED-SHA".into(),
        TlsCipher::Aes128Sha => cbc("AES128", "SHA"),
        TlsCipher::Aes256Sha => cbc("AES256", "SHA"),
        TlsCipher::Camellia128Sha => "CAMELLIA128-SHA".into(),
        TlsCipher::Camellia256Sha => "CAMELLIA256-SHA".into(),
        TlsCipher::Aes128Sha256 => cbc("AES128", "SHA256"),
        TlsCipher::Aes256Sha256 => cbc("AES256", "SHA256"),
        TlsCipher::Aes256Sha384 => cbc("AES256", "SHA384"),
        TlsCipher::Camellia128Sha256 => "CAMELLIA128-SHA256".into(),
        TlsCipher::Camellia256Sha256 if elliptic || psk => "CAMELLIA256-SHA384".into(),
        TlsCipher::Camellia256Sha256 => "CAMELLIA256-SHA256".into(),
        TlsCipher::Aes128Gcm => "AES128-GCM-SHA256".into(),
        TlsCipher::Aes256Gcm => "AES256-GCM-SHA384".into(),
        TlsCipher::Aes128Ccm => "AES128-CCM".into(),
        TlsCipher::Aes128Ccm8 => "AES128-CCM8".into(),
        TlsCipher::Aes256Ccm => "AES256-CCM".into(),
        TlsCipher::Aes256Ccm8 => "AES256-CCM8".into(),
        TlsCipher::Chacha20 => "CHACHA20-POLY1305".into(),
        TlsCipher::Aria128Gcm => "ARIA128-GCM-SHA256".into(),
        TlsCipher::Aria256Gcm => "ARIA256-GCM-SHA384".into(),
    };
    // OpenSSL's names of one family of ARIA suites do not contain the authentication.
    let unnamed = bulk.starts_with("ARIA") && suite.key_exchange == KeyExchange::EcdheRsa;
    let exchange = if unnamed { "ECDHE-" } else { exchange };
    format!("{exchange}{bulk}")
}

/// A group as OpenSSL spells it.
pub fn group(group: Group) -> String {
    match group {
        Group::Dh(bits) => format!("dh{bits}"),
        Group::Ffdhe(bits) => format!("ffdhe{bits}"),
        Group::X25519 => "X25519".into(),
        Group::X448 => "X448".into(),
        Group::Curve(curve) => curve.openssl_name().into(),
        Group::MlKem(set) => format!("MLKEM{set}"),
        Group::X25519MlKem768 => "X25519MLKEM768".into(),
        Group::Secp256r1MlKem768 => "SecP256r1MLKEM768".into(),
    }
}

/// The names that a connection of a suite should report, so that the usual case needs only two comparisons.
pub struct Expected {
    pub suite: Suite,
    cipher_suite: String,
    group: Option<String>,
    /// The suite is a placeholder, and the foreign server's choice is accepted.
    any: bool,
}

impl Expected {
    /// The entry of several suites that matches a connection best.
    pub fn closest<'a>(all: &'a [Self], protocol: Protocol, cipher_suite: &str) -> Option<&'a Self> {
        let speaks = |expected: &&Self| expected.suite.protocol == protocol;
        let exact = |expected: &&Self| expected.cipher_suite == cipher_suite;
        all.iter().filter(speaks).find(exact).or_else(|| all.iter().find(speaks)).or(all.first())
    }

    pub fn of(suite: &Suite) -> Self {
        let group = suite.group.filter(|_| suite.key_exchange.group_kind() != Some(GroupKind::FiniteField));
        let (cipher_suite, group) = (cipher_suite(suite), group.map(self::group));
        Self { suite: suite.clone(), cipher_suite, group, any: false }
    }

    /// Accepts any result: names of ciphers are reported, not parsed. `suite` is a placeholder.
    pub fn any(suite: &Suite) -> Self {
        Self { any: true, ..Self::of(suite) }
    }

    /// The cipher of an established connection, and up to TLS 1.2 the key exchange in its name.
    pub fn cipher(&self, name: &str) -> (Option<KeyExchange>, Option<Cipher>) {
        if name == self.cipher_suite {
            return (Some(self.suite.key_exchange), Some(self.suite.cipher));
        }
        if self.any {
            return (None, None);
        }
        let protocol = self.suite.protocol;
        let exchanges = KeyExchange::of(protocol).iter();
        let ciphers = || TlsCipher::ALL.into_iter().map(|row| Cipher::Tls(row.0));
        let found = exchanges.flat_map(|exchange| ciphers().map(|cipher| (*exchange, cipher))).find(|pair| {
            let (key_exchange, cipher) = *pair;
            cipher_suite(&Suite { key_exchange, cipher, ..self.suite.clone() }) == name
        });
        found.map_or((None, None), |(exchange, cipher)| (Some(exchange), Some(cipher)))
    }

    pub fn group(&self, name: &str) -> Option<Group> {
        let curve = || if name == "secp256r1" { "prime256v1" } else { name };
        if self.group.as_ref().is_some_and(|expected| expected.eq_ignore_ascii_case(curve())) {
            return self.suite.group;
        }
        let named = Group::NAMED.into_iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        named.map(|row| row.0).or_else(|| Curve::from_openssl(name).map(Group::Curve))
    }
}
