//! Handshake messages by their RFC names.

use serde::{Deserialize, Serialize};

/// A handshake message, or ChangeCipherSpec, which is sent beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MessageName {
    HelloRequest,
    ClientHello,
    ServerHello,
    HelloVerifyRequest,
    NewSessionTicket,
    EndOfEarlyData,
    HelloRetryRequest,
    EncryptedExtensions,
    Certificate,
    ServerKeyExchange,
    CertificateRequest,
    ServerHelloDone,
    CertificateVerify,
    ClientKeyExchange,
    Finished,
    CertificateUrl,
    CertificateStatus,
    SupplementalData,
    KeyUpdate,
    CompressedCertificate,
    NextProtocol,
    MessageHash,
    ChangeCipherSpec,
}

/// Every message with its TLS number (IANA "TLS HandshakeType"); `None` where it has no number of its own.
const TABLE: [(MessageName, &str, Option<u8>); 23] = [
    (MessageName::HelloRequest, "HelloRequest", Some(0)),
    (MessageName::ClientHello, "ClientHello", Some(1)),
    (MessageName::ServerHello, "ServerHello", Some(2)),
    (MessageName::HelloVerifyRequest, "HelloVerifyRequest", Some(3)),
    (MessageName::NewSessionTicket, "NewSessionTicket", Some(4)),
    (MessageName::EndOfEarlyData, "EndOfEarlyData", Some(5)),
    // A ServerHello with a special random (RFC 8446 section 4.1.3); 6 was its number in drafts.
    (MessageName::HelloRetryRequest, "HelloRetryRequest", None),
    (MessageName::EncryptedExtensions, "EncryptedExtensions", Some(8)),
    (MessageName::Certificate, "Certificate", Some(11)),
    (MessageName::ServerKeyExchange, "ServerKeyExchange", Some(12)),
    (MessageName::CertificateRequest, "CertificateRequest", Some(13)),
    (MessageName::ServerHelloDone, "ServerHelloDone", Some(14)),
    (MessageName::CertificateVerify, "CertificateVerify", Some(15)),
    (MessageName::ClientKeyExchange, "ClientKeyExchange", Some(16)),
    (MessageName::Finished, "Finished", Some(20)),
    (MessageName::CertificateUrl, "CertificateUrl", Some(21)),
    (MessageName::CertificateStatus, "CertificateStatus", Some(22)),
    (MessageName::SupplementalData, "SupplementalData", Some(23)),
    (MessageName::KeyUpdate, "KeyUpdate", Some(24)),
    (MessageName::CompressedCertificate, "CompressedCertificate", Some(25)),
    (MessageName::NextProtocol, "NextProtocol", Some(67)),
    (MessageName::MessageHash, "MessageHash", Some(254)),
    (MessageName::ChangeCipherSpec, "ChangeCipherSpec", None),
];

impl MessageName {
    /// The message that a TLS or DTLS handshake header's type byte names.
    pub fn from_tls(message_type: u8) -> Option<Self> {
        TABLE.iter().find(|row| row.2 == Some(message_type)).map(|row| row.0)
    }

    /// The RFC name, as it is printed and stored.
    pub fn as_str(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Reads the RFC name back.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

impl std::fmt::Display for MessageName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_the_enumeration() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, index, "{}", row.1);
            assert_eq!(MessageName::from_name(row.1), Some(row.0));
        }
    }
}
