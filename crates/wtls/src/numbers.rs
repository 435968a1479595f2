//! The assigned numbers: key exchange suites, ciphers, MACs and messages (WAP-261 Appendix A).

use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer};

/// Declares an enumeration of one-byte numbers, with names and conversions in both directions.
macro_rules! assigned {
    ($(#[$outer:meta])* $name:ident, $field:literal: $($(#[$inner:meta])* $variant:ident = $value:literal, $text:literal;)*) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$inner])* #[doc = $text] $variant = $value,)* }

        impl $name {
            /// Every assigned value, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The number on the wire.
            pub fn number(self) -> u8 {
                self as u8
            }

            /// The name, as the specification writes it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The value with this number on the wire.
            pub fn from_number(number: u8) -> Result<Self, DecodeError> {
                match number {
                    $($value => Ok(Self::$variant),)*
                    other => Err(DecodeError::Unassigned { field: $field, value: other.into() }),
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}
pub(crate) use assigned;

assigned! {
    /// How the two sides establish a common secret, and which of them it authenticates (Table 4).
    KeyExchangeSuite, "key exchange suite":
    Null = 0, "NULL";
    SharedSecret = 1, "SHARED_SECRET";
    DhAnon = 2, "DH_anon";
    DhAnon512 = 3, "DH_anon_512";
    DhAnon768 = 4, "DH_anon_768";
    RsaAnon = 5, "RSA_anon";
    RsaAnon512 = 6, "RSA_anon_512";
    RsaAnon768 = 7, "RSA_anon_768";
    Rsa = 8, "RSA";
    Rsa512 = 9, "RSA_512";
    Rsa768 = 10, "RSA_768";
    EcdhAnon = 11, "ECDH_anon";
    EcdhAnon113 = 12, "ECDH_anon_113";
    EcdhAnon131 = 13, "ECDH_anon_131";
    EcdhEcdsa = 14, "ECDH_ECDSA";
    EcdhAnonUncompressed = 15, "ECDH_anon_uncomp";
    EcdhAnonUncompressed113 = 16, "ECDH_anon_uncomp_113";
    EcdhAnonUncompressed131 = 17, "ECDH_anon_uncomp_131";
    EcdhEcdsaUncompressed = 18, "ECDH_ECDSA_uncomp";
}

/// The method of a key exchange suite, without the limit of the key size and the form of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyExchangeFamily {
    /// No secret, for tests only.
    Null,
    /// A pre-shared secret.
    SharedSecret,
    /// Diffie–Hellman without authentication.
    DhAnon,
    RsaAnon,
    Rsa,
    /// Elliptic-curve Diffie–Hellman without authentication.
    EcdhAnon,
    /// Elliptic-curve Diffie–Hellman with keys certified by ECDSA.
    EcdhEcdsa,
}

impl KeyExchangeFamily {
    /// Whether the server presents a certificate.
    pub fn is_certified(self) -> bool {
        matches!(self, Self::Rsa | Self::EcdhEcdsa)
    }
}

impl KeyExchangeSuite {
    pub fn family(self) -> KeyExchangeFamily {
        match self {
            Self::Null => KeyExchangeFamily::Null,
            Self::SharedSecret => KeyExchangeFamily::SharedSecret,
            Self::DhAnon | Self::DhAnon512 | Self::DhAnon768 => KeyExchangeFamily::DhAnon,
            Self::RsaAnon | Self::RsaAnon512 | Self::RsaAnon768 => KeyExchangeFamily::RsaAnon,
            Self::Rsa | Self::Rsa512 | Self::Rsa768 => KeyExchangeFamily::Rsa,
            Self::EcdhAnon
            | Self::EcdhAnon113
            | Self::EcdhAnon131
            | Self::EcdhAnonUncompressed
            | Self::EcdhAnonUncompressed113
            | Self::EcdhAnonUncompressed131 => KeyExchangeFamily::EcdhAnon,
            Self::EcdhEcdsa | Self::EcdhEcdsaUncompressed => KeyExchangeFamily::EcdhEcdsa,
        }
    }

    /// The maximum size of public keys, in bits.
    pub fn limit_bits(self) -> Option<u32> {
        match self {
            Self::DhAnon512 | Self::RsaAnon512 | Self::Rsa512 => Some(512),
            Self::DhAnon768 | Self::RsaAnon768 | Self::Rsa768 => Some(768),
            Self::EcdhAnon113 | Self::EcdhAnonUncompressed113 => Some(113),
            Self::EcdhAnon131 | Self::EcdhAnonUncompressed131 => Some(131),
            _ => None,
        }
    }

    /// How elliptic-curve points are written in this suite.
    pub fn point_form(self) -> PointForm {
        match self {
            Self::EcdhAnonUncompressed
            | Self::EcdhAnonUncompressed113
            | Self::EcdhAnonUncompressed131
            | Self::EcdhEcdsaUncompressed => PointForm::Uncompressed,
            _ => PointForm::Compressed,
        }
    }
}

/// The two octet string forms of a curve point (X9.62 §4.3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PointForm {
    /// One coordinate and a bit.
    Compressed,
    Uncompressed,
}

assigned! {
    /// The bulk cipher (Table 5). All of them but NULL are block ciphers with 8-byte blocks in CBC mode.
    BulkCipher, "bulk cipher":
    Null = 0, "NULL";
    Rc5Cbc40 = 1, "RC5_CBC_40";
    Rc5Cbc56 = 2, "RC5_CBC_56";
    Rc5Cbc = 3, "RC5_CBC";
    DesCbc40 = 4, "DES_CBC_40";
    DesCbc = 5, "DES_CBC";
    TripleDesCbcEde = 6, "3DES_CBC_EDE";
    IdeaCbc40 = 7, "IDEA_CBC_40";
    IdeaCbc56 = 8, "IDEA_CBC_56";
    IdeaCbc = 9, "IDEA_CBC";
    Rc5Cbc64 = 10, "RC5_CBC_64";
    IdeaCbc64 = 11, "IDEA_CBC_64";
}

/// The block size, and IV size, of every cipher but NULL.
pub const BLOCK_BYTES: usize = 8;

impl BulkCipher {
    /// Bytes of key material taken from the key block.
    pub fn key_material_bytes(self) -> usize {
        match self {
            Self::Null => 0,
            Self::Rc5Cbc40 | Self::DesCbc40 | Self::IdeaCbc40 => 5,
            Self::Rc5Cbc56 | Self::IdeaCbc56 => 7,
            Self::DesCbc | Self::Rc5Cbc64 | Self::IdeaCbc64 => 8,
            Self::Rc5Cbc | Self::IdeaCbc => 16,
            Self::TripleDesCbcEde => 24,
        }
    }

    /// Length of the cipher's key, in bytes.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Null => 0,
            Self::DesCbc40 | Self::DesCbc => 8,
            Self::TripleDesCbcEde => 24,
            _ => 16,
        }
    }

    /// Whether the key is derived from shorter key material and IVs are public, as export rules required (§11.2).
    pub fn is_exportable(self) -> bool {
        matches!(
            self,
            Self::Rc5Cbc40
                | Self::Rc5Cbc56
                | Self::DesCbc40
                | Self::IdeaCbc40
                | Self::IdeaCbc56
                | Self::Rc5Cbc64
                | Self::IdeaCbc64
        )
    }

    /// Rounds of the RC5 variants. The specification does not state those of RC5_CBC_64; as an exportable cipher it
    /// has 12 here.
    pub fn rc5_rounds(self) -> Option<u8> {
        match self {
            Self::Rc5Cbc => Some(16),
            Self::Rc5Cbc40 | Self::Rc5Cbc56 | Self::Rc5Cbc64 => Some(12),
            _ => None,
        }
    }

    /// Bytes of IV from the key block, 0 for NULL.
    pub fn iv_bytes(self) -> usize {
        if self == Self::Null { 0 } else { BLOCK_BYTES }
    }
}

assigned! {
    /// The MAC (Table 6). Number 4, SHA_XOR_40, was withdrawn in WAP-261 and is not supported.
    MacAlgorithm, "MAC algorithm":
    Sha0 = 0, "SHA_0";
    Sha40 = 1, "SHA_40";
    Sha80 = 2, "SHA_80";
    Sha = 3, "SHA";
    Md5At40 = 5, "MD5_40";
    Md5At80 = 6, "MD5_80";
    Md5 = 7, "MD5";
}

impl MacAlgorithm {
    /// The hash of the MAC. The PRF, Finished and CertificateVerify use the same hash, not truncated.
    pub fn hash(self) -> HashAlgorithm {
        match self {
            Self::Sha0 | Self::Sha40 | Self::Sha80 | Self::Sha => HashAlgorithm::Sha1,
            Self::Md5At40 | Self::Md5At80 | Self::Md5 => HashAlgorithm::Md5,
        }
    }

    pub fn mac_bytes(self) -> usize {
        match self {
            Self::Sha0 => 0,
            Self::Sha40 | Self::Md5At40 => 5,
            Self::Sha80 | Self::Md5At80 => 10,
            Self::Sha => 20,
            Self::Md5 => 16,
        }
    }

    pub fn key_bytes(self) -> usize {
        match self {
            Self::Sha0 => 0,
            other => other.hash().output_bytes(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    /// SHA-1, 20 bytes.
    Sha1,
    /// MD5, 16 bytes.
    Md5,
}

impl HashAlgorithm {
    pub fn output_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Md5 => 16,
        }
    }
}

/// A bulk cipher and a MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CipherSuite {
    pub bulk: BulkCipher,
    /// The MAC, whose hash is also that of the handshake.
    pub mac: MacAlgorithm,
}

impl CipherSuite {
    /// RC5 with a full-length SHA MAC.
    pub const RC5_SHA: Self = Self { bulk: BulkCipher::Rc5Cbc, mac: MacAlgorithm::Sha };

    pub fn hash(self) -> HashAlgorithm {
        self.mac.hash()
    }
}

impl core::fmt::Display for CipherSuite {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{}+{}", self.bulk, self.mac)
    }
}

/// A cipher suite as offered. Its numbers may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OfferedCipherSuite {
    pub bulk: u8,
    pub mac: u8,
}

impl From<CipherSuite> for OfferedCipherSuite {
    fn from(suite: CipherSuite) -> Self {
        Self { bulk: suite.bulk.number(), mac: suite.mac.number() }
    }
}

impl TryFrom<OfferedCipherSuite> for CipherSuite {
    type Error = DecodeError;

    fn try_from(offered: OfferedCipherSuite) -> Result<Self, DecodeError> {
        Ok(Self {
            bulk: BulkCipher::from_number(offered.bulk)?,
            mac: MacAlgorithm::from_number(offered.mac)?,
        })
    }
}

impl Codec for OfferedCipherSuite {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(self.bulk);
        to.u8(self.mac);
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { bulk: from.u8("bulk cipher")?, mac: from.u8("MAC algorithm")? })
    }
}

assigned! {
    /// Whether records carry their numbers (§9.1).
    SequenceNumberMode, "sequence number mode":
    Off = 0, "off";
    Implicit = 1, "implicit";
    Explicit = 2, "explicit";
}

assigned! {
    ContentType, "content type":
    ChangeCipherSpec = 1, "change_cipher_spec";
    Alert = 2, "alert";
    Handshake = 3, "handshake";
    ApplicationData = 4, "application_data";
}

assigned! {
    /// A handshake message (§10.5).
    HandshakeType, "handshake type":
    HelloRequest = 0, "HelloRequest";
    ClientHello = 1, "ClientHello";
    ServerHello = 2, "ServerHello";
    Certificate = 11, "Certificate";
    ServerKeyExchange = 12, "ServerKeyExchange";
    CertificateRequest = 13, "CertificateRequest";
    ServerHelloDone = 14, "ServerHelloDone";
    CertificateVerify = 15, "CertificateVerify";
    ClientKeyExchange = 16, "ClientKeyExchange";
    Finished = 20, "Finished";
}

assigned! {
    CertificateFormat, "certificate format":
    Wtls = 1, "WTLSCert";
    X509 = 2, "X509Cert";
    X968 = 3, "X968Cert";
    Url = 4, "CertURL";
}

assigned! {
    SignatureAlgorithm, "signature algorithm":
    Anonymous = 0, "anonymous";
    EcdsaSha = 1, "ecdsa_sha";
    RsaSha = 2, "rsa_sha";
}

assigned! {
    PublicKeyType, "public key type":
    Rsa = 2, "rsa";
    Ecdh = 3, "ecdh";
    Ecdsa = 4, "ecdsa";
}
