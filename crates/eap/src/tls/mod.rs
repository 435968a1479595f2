//! EAP-TLS (RFC 5216, 9190): TLS in fragments, each acknowledged by the other side.

mod fragment;
mod message;
mod tunnel;

pub use fragment::{FragmentError, Outgoing, Reassembly, Received};
pub use message::{Message, MessageError};
pub use tunnel::{Reaction, Tunnel, Violation};

/// Maximum length of a flight, the limit of wpa_supplicant and hostapd.
pub const MAX_FLIGHT_BYTES: usize = 65_536;

/// Default number of TLS bytes in a fragment, the same as wpa_supplicant's.
pub const DEFAULT_FRAGMENT_BYTES: usize = 1398;

/// TLS bytes in the largest fragment: a RADIUS packet also contains the longest name, state and proxies' states.
pub const MAX_FRAGMENT_BYTES: usize = 3000;

/// Bytes of an EAP packet around the TLS bytes of a fragment: header, type, flags, length.
pub const MAX_OVERHEAD_BYTES: usize = crate::eap::HEADER_BYTES + 1 + 1 + 4;
