//! SSL-based AKA (Kambourakis, Rouskas, Gritzalis), sans-IO: a mobile attaches to a cellular network by TLS with
//! certificates on both sides, in place of the symmetric AKA.
//!
//! - [`message`]: messages between mobile and SGSN, plaintext and encrypted; [`core`]: queries between SGSNs and HSSs;
//! - [`mobile::Mobile`] and [`sgsn::Attach`], the two ends of an attach around any
//!   [`Endpoint`](shakedown_trace::Endpoint) that can export keying material; [`sgsn::Node`], the shared state of an
//!   SGSN's attaches; [`hss::Hss`];
//! - [`sessions`]: which sessions may be resumed, how often and how long after the last time;
//! - [`keys`]: the keys that both ends derive, and the messages that they protect;
//! - [`run`]: all of them together in virtual time, over a bearer.
//!
//! The subscriber's identity (IMSI) is sent only inside TLS. Networks trust each other by cross-certificates: an SGSN
//! presents its network's authority with the certificate of the subscriber's home network, and a subscriber presents
//! the home network's authority with the certificate of the serving network. Both chains have two levels below the only
//! root that the other side trusts.
//!
//! Nothing here opens a socket, reads a clock or draws a random number: times and randomness are arguments.

#![forbid(unsafe_code)]

pub mod core;
pub mod frame;
pub mod hss;
pub mod keys;
pub mod message;
pub mod mobile;
pub mod names;
pub mod run;
pub mod sessions;
pub mod sgsn;
mod tunnel;
