//! Bulk ciphers with their record protection.

use super::vocabulary::{KeyExchange, Protocol};
use crate::spelled;

/// The last part of a suite name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cipher {
    /// A cipher of SSL 3.0, TLS or DTLS.
    Tls(TlsCipher),
    /// A cipher of WTLS: bulk cipher and MAC are chosen separately.
    Wtls(WtlsBulk, WtlsMac),
}

spelled! {
    /// Ciphers of SSL 3.0 to TLS 1.3.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum TlsCipher {
        Rc4Md5 = "rc4-md5",
        Rc4Sha = "rc4-sha",
        TripleDesSha = "3des-sha",
        IdeaSha = "idea-sha",
        SeedSha = "seed-sha",
        Aes128Sha = "aes128-sha",
        Aes256Sha = "aes256-sha",
        Camellia128Sha = "camellia128-sha",
        Camellia256Sha = "camellia256-sha",
        Aes128Sha256 = "aes128-sha256",
        Aes256Sha256 = "aes256-sha256",
        Aes256Sha384 = "aes256-sha384",
        Camellia128Sha256 = "camellia128-sha256",
        Camellia256Sha256 = "camellia256-sha256",
        Aes128Gcm = "aes128-gcm",
        Aes256Gcm = "aes256-gcm",
        Aes128Ccm = "aes128-ccm",
        Aes128Ccm8 = "aes128-ccm8",
        Aes256Ccm = "aes256-ccm",
        Aes256Ccm8 = "aes256-ccm8",
        Chacha20 = "chacha20",
        Aria128Gcm = "aria128-gcm",
        Aria256Gcm = "aria256-gcm",
    }
}

impl TlsCipher {
    /// True for ciphers that need TLS 1.2's record protection or hash.
    pub fn is_modern(self) -> bool {
        self as u8 >= Self::Aes128Sha256 as u8
    }

    /// True for the ciphers of TLS 1.3.
    pub fn is_tls13(self) -> bool {
        matches!(
            self,
            Self::Aes128Gcm | Self::Aes256Gcm | Self::Chacha20 | Self::Aes128Ccm | Self::Aes128Ccm8
        )
    }
}

spelled! {
    /// Bulk ciphers of WTLS (WAP-261, table 5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum WtlsBulk {
        Null = "null",
        Rc5_40 = "rc5-40",
        Rc5_56 = "rc5-56",
        Rc5 = "rc5",
        Des40 = "des-40",
        Des = "des",
        TripleDes = "3des",
        Idea40 = "idea-40",
        Idea56 = "idea-56",
        Idea = "idea",
        Rc5_64 = "rc5-64",
        Idea64 = "idea-64",
    }
}

impl WtlsBulk {
    pub fn number(self) -> u8 {
        self as u8
    }
}

spelled! {
    /// MACs of WTLS (WAP-261, table 6).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum WtlsMac {
        Sha0 = "sha0",
        Sha40 = "sha40",
        Sha80 = "sha80",
        Sha = "sha",
        Md5_40 = "md5-40",
        Md5_80 = "md5-80",
        Md5 = "md5",
    }
}

impl WtlsMac {
    /// The number in the specification. WAP-261 removed number 4.
    pub fn number(self) -> u8 {
        self as u8 + u8::from(self >= Self::Md5_40)
    }
}

impl Cipher {
    pub fn from_name(name: &str, protocol: Protocol) -> Option<Self> {
        if protocol != Protocol::Wtls {
            return TlsCipher::from_name(name).map(Self::Tls);
        }
        WtlsMac::ALL.iter().find_map(|&(mac, mac_name)| {
            let bulk = WtlsBulk::from_name(name.strip_suffix(mac_name)?.strip_suffix('-')?)?;
            Some(Self::Wtls(bulk, mac))
        })
    }

    /// The cipher of a suite whose name contains none.
    pub fn default_for(protocol: Protocol, key_exchange: KeyExchange) -> Self {
        match protocol {
            Protocol::Wtls => Self::Wtls(WtlsBulk::Rc5, WtlsMac::Sha),
            Protocol::Ssl3 | Protocol::Tls10 | Protocol::Tls11 => Self::Tls(TlsCipher::Aes256Sha),
            _ => Self::Tls(match key_exchange {
                KeyExchange::EcdhePsk => TlsCipher::Aes128Sha256,
                KeyExchange::EcdhAnon => TlsCipher::Aes128Sha,
                _ => TlsCipher::Aes128Gcm,
            }),
        }
    }

    /// True if the protocol can use the cipher.
    pub fn fits(self, protocol: Protocol) -> bool {
        match (self, protocol) {
            (Self::Wtls(..), _) => protocol == Protocol::Wtls,
            (Self::Tls(cipher), Protocol::Tls13) => cipher.is_tls13(),
            // RFC 5246 removed IDEA; TLS 1.2 keeps all other earlier ciphers.
            (Self::Tls(cipher), Protocol::Tls12) => cipher != TlsCipher::IdeaSha,
            // A stream cipher does not tolerate the loss of a datagram (RFC 6347 section 4.1.2.2).
            (Self::Tls(cipher), Protocol::Dtls12) => {
                !matches!(cipher, TlsCipher::IdeaSha | TlsCipher::Rc4Md5 | TlsCipher::Rc4Sha)
            }
            (Self::Tls(_), Protocol::Wtls) => false,
            (Self::Tls(cipher), _) => !cipher.is_modern(),
        }
    }

    /// The spelling in suite names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls(cipher) => cipher.as_str(),
            Self::Wtls(bulk, mac) => crate::operation::intern(&format!("{}-{}", bulk.as_str(), mac.as_str())),
        }
    }

    pub fn names(protocol: Protocol) -> Vec<&'static str> {
        if protocol == Protocol::Wtls {
            let pairs = WtlsBulk::ALL.iter().flat_map(|bulk| WtlsMac::ALL.map(|mac| (bulk.0, mac.0)));
            return pairs.map(|(bulk, mac)| Self::Wtls(bulk, mac).name()).collect();
        }
        let fitting = TlsCipher::ALL.iter().filter(|row| Self::Tls(row.0).fits(protocol));
        fitting.map(|row| row.1).collect()
    }
}
