//! Authentication with the shared secret: Message-Authenticator and Response Authenticator.

use super::{AUTHENTICATOR_BYTES, Authenticator, Packet, attribute};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use std::fmt;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// Why a packet's authentication failed. The packet is dropped without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticatorError {
    #[error("the packet has no Message-Authenticator")]
    Missing,
    #[error("the packet has more than one Message-Authenticator")]
    Repeated,
    #[error("the Message-Authenticator has {bytes} bytes; accepted: {AUTHENTICATOR_BYTES}")]
    Length { bytes: usize },
    #[error("the Message-Authenticator is wrong: another secret, or an altered packet")]
    Message,
    #[error(
        "the Response Authenticator is wrong: another secret, an altered packet, or the answer to another request"
    )]
    Response,
}

impl Secret {
    /// The shared secret; it should not be empty (RFC 2865 section 3).
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        Self(secret.into())
    }

    /// MD5 of the secret and `parts`: the key stream of encrypted attributes.
    pub(super) fn digest(&self, parts: &[&[u8]]) -> [u8; AUTHENTICATOR_BYTES] {
        let mut hash = Md5::new();
        hash.update(&self.0);
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize().into()
    }

    /// The Response Authenticator of a packet; `request` takes the place of the authenticator in `bytes`.
    pub(super) fn sign(&self, bytes: &[u8], request: &Authenticator) -> Authenticator {
        let mut hash = Md5::new();
        hash.update(&bytes[..4]);
        hash.update(request);
        hash.update(&bytes[super::HEADER_BYTES..]);
        hash.update(&self.0);
        hash.finalize().into()
    }

    /// HMAC-MD5 of a packet in which `request` takes the place of the authenticator, and zeros that of the
    /// Message-Authenticator's value at `offset` (RFC 3579 section 3.2).
    fn message_mac(&self, bytes: &[u8], request: &Authenticator, offset: usize) -> Hmac<Md5> {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Md5>::new_from_slice(&self.0) else { unreachable!() };
        mac.update(&bytes[..4]);
        mac.update(request);
        mac.update(&bytes[super::HEADER_BYTES..offset]);
        mac.update(&[0; AUTHENTICATOR_BYTES]);
        mac.update(&bytes[offset + AUTHENTICATOR_BYTES..]);
        mac
    }

    /// The value of the Message-Authenticator for its place at `offset`.
    pub(super) fn message_authenticator(
        &self,
        bytes: &[u8],
        request: &Authenticator,
        offset: usize,
    ) -> Authenticator {
        self.message_mac(bytes, request, offset).finalize().into_bytes().into()
    }

    /// Accepts a request only with exactly one Message-Authenticator, which must be valid.
    pub fn check_request(&self, packet: &Packet<'_>) -> Result<(), AuthenticatorError> {
        self.check_message(packet, &packet.authenticator())
    }

    /// Accepts a response only if both of its authenticators are valid for the request's.
    pub fn check_response(
        &self,
        packet: &Packet<'_>,
        request: &Authenticator,
    ) -> Result<(), AuthenticatorError> {
        self.check_message(packet, request)?;
        let expected = self.sign(packet.as_bytes(), request);
        // Knowing how many bytes of an MD5 agree does not help an attacker without the secret.
        if packet.authenticator() == expected { Ok(()) } else { Err(AuthenticatorError::Response) }
    }

    fn check_message(&self, packet: &Packet<'_>, request: &Authenticator) -> Result<(), AuthenticatorError> {
        let mut found =
            packet.attributes().filter(|attribute| attribute.kind == attribute::MESSAGE_AUTHENTICATOR);
        let Some(given) = found.next() else { return Err(AuthenticatorError::Missing) };
        if found.next().is_some() {
            return Err(AuthenticatorError::Repeated);
        }
        if given.value.len() != AUTHENTICATOR_BYTES {
            return Err(AuthenticatorError::Length { bytes: given.value.len() });
        }
        let mac = self.message_mac(packet.as_bytes(), request, given.offset);
        mac.verify_slice(given.value).map_err(|_| AuthenticatorError::Message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2865 section 7.1 and RFC 5997 section 6.1: Request Authenticators and responses.
    #[test]
    fn response_authenticators_match_the_rfc_examples() {
        let accept = *b"\x02\0\0\x26\x86\xfe\x22\x0e\x76\x24\xba\x2a\x10\x05\xf6\xbf\x9b\x55\xe0\xb2\
            \x06\x06\0\0\0\x01\x0f\x06\0\0\0\0\x0e\x06\xc0\xa8\x01\x03";
        let status = *b"\x02\xda\0\x14\xef\x0d\x55\x2a\x4b\xf2\xd6\x93\xec\x2b\x6f\xe8\xb5\x41\x1d\x66";
        let secret = Secret::new("xyzzy5461");
        for (request, answer) in [
            (0x0f40_3f94_7397_8057_bd83_d5cb_98f4_227a_u128, &accept[..]),
            (0x8a54_f468_6fb3_94c5_2866_e302_185d_0623, &status),
        ] {
            assert_eq!(secret.sign(answer, &request.to_be_bytes()), answer[4..20]);
        }
    }
}
