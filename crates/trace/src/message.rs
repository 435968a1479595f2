//! Handshake messages by their RFC names.

use crate::spelled;
use serde::{Deserialize, Serialize};

spelled! {
    /// A handshake message, or ChangeCipherSpec, which is sent between them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum MessageName {
        HelloRequest = "HelloRequest",
        ClientHello = "ClientHello",
        ServerHello = "ServerHello",
        HelloVerifyRequest = "HelloVerifyRequest",
        NewSessionTicket = "NewSessionTicket",
        EndOfEarlyData = "EndOfEarlyData",
        HelloRetryRequest = "HelloRetryRequest",
        EncryptedExtensions = "EncryptedExtensions",
        Certificate = "Certificate",
        ServerKeyExchange = "ServerKeyExchange",
        CertificateRequest = "CertificateRequest",
        ServerHelloDone = "ServerHelloDone",
        CertificateVerify = "CertificateVerify",
        ClientKeyExchange = "ClientKeyExchange",
        Finished = "Finished",
        CertificateUrl = "CertificateUrl",
        CertificateStatus = "CertificateStatus",
        SupplementalData = "SupplementalData",
        KeyUpdate = "KeyUpdate",
        CompressedCertificate = "CompressedCertificate",
        NextProtocol = "NextProtocol",
        MessageHash = "MessageHash",
        ChangeCipherSpec = "ChangeCipherSpec",
    }
}

/// TLS's numbers (IANA "TLS HandshakeType"). ChangeCipherSpec has none; nor has HelloRetryRequest, a ServerHello with a
/// special random (RFC 8446 section 4.1.3): 6 was its number in drafts.
const NUMBERS: [(u8, MessageName); 21] = [
    (0, MessageName::HelloRequest),
    (1, MessageName::ClientHello),
    (2, MessageName::ServerHello),
    (3, MessageName::HelloVerifyRequest),
    (4, MessageName::NewSessionTicket),
    (5, MessageName::EndOfEarlyData),
    (8, MessageName::EncryptedExtensions),
    (11, MessageName::Certificate),
    (12, MessageName::ServerKeyExchange),
    (13, MessageName::CertificateRequest),
    (14, MessageName::ServerHelloDone),
    (15, MessageName::CertificateVerify),
    (16, MessageName::ClientKeyExchange),
    (20, MessageName::Finished),
    (21, MessageName::CertificateUrl),
    (22, MessageName::CertificateStatus),
    (23, MessageName::SupplementalData),
    (24, MessageName::KeyUpdate),
    (25, MessageName::CompressedCertificate),
    (67, MessageName::NextProtocol),
    (254, MessageName::MessageHash),
];

/// Index of `NUMBERS`, because messages are looked up during measurements.
static BY_NUMBER: [Option<MessageName>; 256] = {
    let mut names = [None; 256];
    let mut row = 0;
    while row < NUMBERS.len() {
        names[NUMBERS[row].0 as usize] = Some(NUMBERS[row].1);
        row += 1;
    }
    names
};

impl MessageName {
    /// The message of a type byte in a TLS or DTLS handshake header.
    #[inline]
    pub fn from_tls(message_type: u8) -> Option<Self> {
        BY_NUMBER[usize::from(message_type)]
    }
}
