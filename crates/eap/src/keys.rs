//! The key that an authentication exports to the link: the MSK (RFC 5216 section 2.3, RFC 9190 section 2.3).

use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, ExportError};

pub const MSK_BYTES: usize = 64;

/// Master Session Key.
pub type Msk = [u8; MSK_BYTES];

/// EAP's number of EAP-TLS, which is the exporter's context in TLS 1.3.
const METHOD: [u8; 1] = [crate::eap::kind::TLS];

/// Exports the MSK from an established endpoint; both sides derive the same.
pub fn export_msk(endpoint: &dyn Endpoint, protocol: Protocol) -> Result<Msk, ExportError> {
    // Includes the EMSK, which is not used: in TLS 1.3 a shorter request gives other bytes. Up to TLS 1.2 there is no
    // context, which differs from an empty one.
    let mut both = [0; 2 * MSK_BYTES];
    if protocol == Protocol::Tls13 {
        endpoint.export_keying_material(&mut both, "EXPORTER_EAP_TLS_Key_Material", Some(&METHOD))?;
    } else {
        endpoint.export_keying_material(&mut both, "client EAP encryption", None)?;
    }
    let mut msk = [0; MSK_BYTES];
    msk.copy_from_slice(&both[..MSK_BYTES]);
    Ok(msk)
}
