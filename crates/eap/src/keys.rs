//! What an authentication leaves to the link: MSK, EMSK and Session-Id (RFC 5216 section 2.3, RFC 9190 section 2.3).

use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, ExportError};
use std::fmt;

pub const MSK_BYTES: usize = 64;

/// Master Session Key.
pub type Msk = [u8; MSK_BYTES];

/// EAP's number for EAP-TLS, which is a context in TLS 1.3.
const METHOD: [u8; 1] = [crate::eap::kind::TLS];

/// What both sides derive from a finished handshake.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    pub msk: Msk,
    /// What stays between peer and server.
    pub emsk: [u8; MSK_BYTES],
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys")
    }
}

impl Keys {
    /// Exports them from an endpoint that is established.
    pub fn export(endpoint: &dyn Endpoint, protocol: Protocol) -> Result<Self, ExportError> {
        let mut both = [0; 2 * MSK_BYTES];
        // Both at once: in TLS 1.3 a shorter request gives other bytes. Up to TLS 1.2 there is no context, which is not
        // the same as an empty one.
        if protocol == Protocol::Tls13 {
            endpoint.export_keying_material(&mut both, "EXPORTER_EAP_TLS_Key_Material", Some(&METHOD))?;
        } else {
            endpoint.export_keying_material(&mut both, "client EAP encryption", None)?;
        }
        let mut keys = Self { msk: [0; MSK_BYTES], emsk: [0; MSK_BYTES] };
        keys.msk.copy_from_slice(&both[..MSK_BYTES]);
        keys.emsk.copy_from_slice(&both[MSK_BYTES..]);
        Ok(keys)
    }
}
