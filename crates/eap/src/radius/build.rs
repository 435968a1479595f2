//! Construction of packets.

use super::{
    AUTHENTICATOR_BYTES, Authenticator, HEADER_BYTES, MAX_PACKET_BYTES, MAX_VALUE_BYTES, Secret, attribute,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error("a value of {bytes} bytes in RADIUS attribute {kind}; accepted: up to {MAX_VALUE_BYTES}")]
    Value { kind: u8, bytes: usize },
    #[error("a RADIUS packet of {bytes} bytes; accepted: up to {MAX_PACKET_BYTES}")]
    Packet { bytes: usize },
}

/// A packet under construction. Its first attribute is always a Message-Authenticator: at this place it prevents
/// forged responses (CVE-2024-3596).
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
}

const MESSAGE_AUTHENTICATOR_OFFSET: usize = HEADER_BYTES + 2;

impl Builder {
    /// A packet that contains only a Message-Authenticator.
    pub fn new(code: u8, identifier: u8) -> Self {
        let mut bytes = vec![code, identifier];
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend([attribute::MESSAGE_AUTHENTICATOR, 2 + AUTHENTICATOR_BYTES as u8]);
        bytes.extend([0; AUTHENTICATOR_BYTES]);
        Self { bytes }
    }

    /// Appends an attribute.
    ///
    /// # Errors
    /// [`BuildError`]; then nothing was appended.
    pub fn add(&mut self, kind: u8, value: &[u8]) -> Result<&mut Self, BuildError> {
        let refused = BuildError::Value { kind, bytes: value.len() };
        let length = u8::try_from(value.len() + 2).map_err(|_| refused)?;
        let bytes = self.bytes.len() + usize::from(length);
        if bytes > MAX_PACKET_BYTES {
            return Err(BuildError::Packet { bytes });
        }
        self.bytes.extend([kind, length]);
        self.bytes.extend(value);
        Ok(self)
    }

    /// Appends an EAP packet, split into attributes.
    pub fn add_eap(&mut self, eap: &[u8]) -> Result<&mut Self, BuildError> {
        for piece in eap.chunks(MAX_VALUE_BYTES) {
            self.add(attribute::EAP_MESSAGE, piece)?;
        }
        Ok(self)
    }

    pub fn request(mut self, secret: &Secret, authenticator: &Authenticator) -> Vec<u8> {
        self.close(secret, authenticator);
        self.bytes[4..HEADER_BYTES].copy_from_slice(authenticator);
        self.bytes
    }

    /// The finished response to a request.
    pub fn response(mut self, secret: &Secret, request: &Authenticator) -> Vec<u8> {
        self.close(secret, request);
        let authenticator = secret.sign(&self.bytes, request);
        self.bytes[4..HEADER_BYTES].copy_from_slice(&authenticator);
        self.bytes
    }

    /// Fills in length and Message-Authenticator.
    fn close(&mut self, secret: &Secret, request: &Authenticator) {
        let length = u16::try_from(self.bytes.len()).unwrap_or(u16::MAX);
        self.bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let offset = MESSAGE_AUTHENTICATOR_OFFSET;
        let mac = secret.message_authenticator(&self.bytes, request, offset);
        self.bytes[offset..offset + AUTHENTICATOR_BYTES].copy_from_slice(&mac);
    }
}
