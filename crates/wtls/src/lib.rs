//! WTLS (WAP-199, WAP-261) as a protocol engine that does no input or output.
//!
//! The engine takes datagrams, a time, randomness and a provider of cryptographic primitives, and
//! gives datagrams, events and the time of its next timer. It opens no socket, reads no clock and
//! keeps no global state, so the same endpoint runs in memory, in virtual time and on a network,
//! and with the same arguments does the same.
//!
//! # The contract of an endpoint
//!
//! [`Client`], [`ServerConnection`] (a server's side of one peer) and [`Listener`] (a server of many
//! peers) are all driven alike. Whatever happens from outside goes in by a method that takes a
//! [`Context`], the environment of that one call:
//!
//! * `Client::new(config, session, cx)`, `handle_datagram(cx, bytes)`: something arrived.
//! * `handle_timeout(cx)`: the time that `poll_timeout` gave has come.
//! * `send(cx, data)`, `close(cx, how)`: the application wants something.
//!
//! After any of them, and only then, there may be news; take all of it before the next call:
//!
//! * `poll_transmit()`: datagrams for the peer, until there are none.
//! * `poll_event()`: what happened, until there is nothing: [`Event::Established`] once, then
//!   [`Event::Data`] and alerts, [`Event::Closed`] last.
//! * `poll_timeout()`: when to call `handle_timeout`, if nothing else happens first.
//!
//! Time never goes backwards. Datagrams may get lost, come twice and change places. The client sends
//! again what is not answered ([`Retransmission`]); a server only answers, and answers alike when
//! asked alike. A datagram that is no datagram of ours is dropped.
//!
//! A [`Context`] also has an [`Observer`], who is told when the engine begins and ends to process or
//! to generate a handshake message. Together with a provider around the provider, this is all that a
//! measurement needs: the engine knows nothing of it. The pre-master and master secrets are computed
//! within ClientKeyExchange; where no such message is sent, within the message that completes the
//! exchange: the client's Certificate (two certified ECDH keys), ServerHello (shared secret), or
//! ChangeCipherSpec (optimised, where it alone says that there will be no other). The keys of records
//! are computed within ChangeCipherSpec.
//!
//! ```
//! use shakedown_wtls::provider::openssl::OpenSsl;
//! use shakedown_wtls::*;
//! use std::sync::Arc;
//!
//! let provider = OpenSsl::new().unwrap();
//! let curve = ParameterSpecifier::of_curve(Curve::Secp160r1, false);
//! let offer = KeyExchangeId::new(KeyExchangeSuite::EcdhAnon, curve, Identifier::Null);
//! let client_config = Arc::new(ClientConfig::new(vec![offer]));
//! let mut server_config = ServerConfig::new(vec![KeyExchangeSuite::EcdhAnon]);
//! server_config.curves.push(Curve::Secp160r1);
//!
//! # let mut count = 0u8;
//! # let mut random = |out: &mut [u8]| out.iter_mut().for_each(|byte| { count = count.wrapping_add(97); *byte = count });
//! let mut cx = Context {
//!     now: Time::default(),
//!     provider: &provider,
//!     random: &mut random, // a cryptographically secure source, outside of examples
//!     observer: &mut (),
//! };
//! let mut client = Client::new(client_config, None, &mut cx);
//! let mut server = ServerConnection::new(Arc::new(server_config));
//! while !(client.is_open() && server.is_open()) {
//!     while let Some(datagram) = client.poll_transmit() {
//!         server.handle_input(&mut cx, &datagram);
//!     }
//!     while let Some(datagram) = server.poll_transmit() {
//!         client.handle_input(&mut cx, &datagram);
//!     }
//! }
//! client.write(&mut cx, b"hello").unwrap();
//! ```
//!
//! # What is where
//!
//! From the bottom up; a module uses those above it in this list.
//!
//! * [`codec`]: bytes. [`mod@curve`], `dh`, `parameters`, `numbers`: what numbers and names mean.
//! * [`crypto`]: the seam to primitives; [`provider`]: those of OpenSSL.
//! * [`record`], [`protection`], [`key_schedule`], `replay`, `alert`: the record layer.
//! * [`certificate`], [`message`]: what handshakes are made of.
//! * `link`: one connection's way to its peer; `connection`: what both sides have in common.
//! * `client`, `server`: the handshakes, each state a type; `listener`: many peers.
//!
//! # What is left out, and why
//!
//! * A second handshake within a connection: refused with no_renegotiation, which either side may do.
//!   A new handshake beside a connection is taken part in.
//! * Compression: no method was ever assigned. SHA_XOR_40, which WAP-261 withdrew.
//! * Explicit parameters of unknown curves: a peer must not choose the curve's arithmetic.
//! * Off and implicit sequence numbers: forbidden over datagrams. The record layer reads the implicit.

#![deny(unsafe_code)]
#![cfg_attr(not(feature = "openssl"), forbid(unsafe_code))]

mod alert;
pub mod certificate;
mod client;
pub mod codec;
mod config;
mod connection;
mod context;
pub mod crypto;
pub mod curve;
mod dh;
mod error;
mod event;
mod flight;
pub mod key_schedule;
mod limiter;
mod listener;
pub mod message;
mod numbers;
mod observer;
mod parameters;
mod policy;
pub mod protection;
pub mod provider;
pub mod record;
mod replay;
mod secured;
mod server;
mod session;
mod timer;

pub use alert::{Alert, AlertDescription, AlertLevel, AlertMessage, Checksum};
pub use client::Client;
pub use config::{
    ClientAuthentication, ClientConfig, Identity, KnownClient, Retransmission, ServerConfig, Settings,
    SharedSecret, TemporaryRsaKey,
};
pub use connection::{Close, MAX_DATA_BYTES};
pub use context::{Context, Time};
pub use curve::Curve;
pub use dh::{DhGroup, DhParameters, PRIME_BITS};
pub use error::{Error, WriteError};
pub use event::{CloseReason, Established, Event, HandshakeMode};
pub use limiter::Budget;
pub use listener::{Limits, Listener, ListenerEvent, Withheld};
pub use numbers::{
    BulkCipher, CertificateFormat, CipherSuite, ContentType, HandshakeType, HashAlgorithm, KeyExchangeFamily,
    KeyExchangeSuite, MacAlgorithm, OfferedCipherSuite, PointForm, PublicKeyType, SequenceNumberMode,
    SignatureAlgorithm,
};
pub use observer::{Message, Observer};
pub use parameters::{EncodedRsaKey, Identifier, KeyExchangeId, ParameterError, ParameterSpecifier};
pub use policy::PolicyId;
pub use server::{ConnectionId, ServerConnection};
pub use session::{MemorySessions, NoSessions, Session, SessionId, SessionStore};
