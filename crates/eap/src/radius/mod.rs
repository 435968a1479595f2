//! The part of RADIUS (RFC 2865) that EAP needs (RFC 3579): packets, authenticators, key attributes.

mod build;
mod mppe;
mod packet;
mod secret;

pub use build::{BuildError, Builder};
pub use mppe::{MppeError, add_msk, take_msk};
pub use packet::{Attribute, Packet, PacketError};
pub use secret::{AuthenticatorError, Secret};

/// Bytes of a Request, Response or Message-Authenticator.
pub const AUTHENTICATOR_BYTES: usize = 16;
/// Code, identifier, length, authenticator.
pub const HEADER_BYTES: usize = 20;
/// The longest packet (RFC 2865 section 3).
pub const MAX_PACKET_BYTES: usize = 4096;
/// The longest value of an attribute, whose length byte counts its own two bytes of header.
pub const MAX_VALUE_BYTES: usize = 253;

/// The Request Authenticator, on which the response's authenticators depend.
pub type Authenticator = [u8; AUTHENTICATOR_BYTES];

/// Codes of packets (RFC 2865 section 4; Status-Server: RFC 5997).
pub mod code {
    pub const ACCESS_REQUEST: u8 = 1;
    pub const ACCESS_ACCEPT: u8 = 2;
    pub const ACCESS_REJECT: u8 = 3;
    pub const ACCESS_CHALLENGE: u8 = 11;
    pub const STATUS_SERVER: u8 = 12;
}

/// Attributes that are used here (RFC 2865 section 5, RFC 3579 section 3).
pub mod attribute {
    pub const USER_NAME: u8 = 1;
    pub const SERVICE_TYPE: u8 = 6;
    pub const FRAMED_MTU: u8 = 12;
    pub const STATE: u8 = 24;
    pub const VENDOR_SPECIFIC: u8 = 26;
    pub const NAS_IDENTIFIER: u8 = 32;
    pub const PROXY_STATE: u8 = 33;
    pub const NAS_PORT_TYPE: u8 = 61;
    pub const EAP_MESSAGE: u8 = 79;
    pub const MESSAGE_AUTHENTICATOR: u8 = 80;
}
