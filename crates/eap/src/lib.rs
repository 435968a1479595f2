//! EAP-TLS over RADIUS (RFC 3748, 5216, 9190, 2865, 3579), sans-IO.
//!
//! Three layers, each independent of those after it in this list:
//!
//! - [`radius`]: packets, and their authentication with the shared secret;
//! - [`eap`] and [`tls`]: EAP packets, and TLS flights in acknowledged fragments around any
//!   [`Endpoint`](shakedown_trace::Endpoint) that can export keying material;
//! - [`peer::Peer`] and [`server::Server`], the two ends of an EAP conversation, and [`client::Authentication`] (the
//!   access point with its supplicant) and [`service::Service`] (the RADIUS server), which carry it over RADIUS.
//!
//! Nothing here opens a socket, reads a clock or draws a random number: times and randomness are arguments.

#![forbid(unsafe_code)]

pub mod client;
pub mod eap;
pub mod keys;
pub mod peer;
pub mod radius;
pub mod server;
pub mod service;
pub mod tls;
