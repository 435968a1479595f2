//! WTLS (WAP-199, WAP-261) as a sans-IO protocol engine.
//!
//! Inputs of the engine are datagrams, the time, randomness and a provider of cryptographic
//! primitives; outputs are datagrams, events and the time of its next timer. It opens no socket,
//! reads no clock and keeps no global state, so the same endpoint runs in memory, in virtual time
//! and on a network. The same inputs give the same outputs.
//!
//! # The contract of an endpoint
//!
//! [`Client`], [`ServerConnection`] (a server's side of one peer) and [`Listener`] (a server of many
//! peers) have the same interface. Every input is a call of a method that takes a [`Context`], the
//! environment of that call:
//!
//! * `Client::new(config, session, cx)` begins a handshake.
//! * `handle_input(cx, datagram)`: a datagram arrived.
//! * `handle_timeout(cx)`: the time that `poll_timeout` returned has come.
//! * `write(cx, data)`, `close(cx, close)`: requests of the application.
//!
//! (The methods of a `Listener` also take the peer's address or the connection.) After each of these
//! calls, read all outputs before the next call:
//!
//! * `poll_transmit()`: the next datagram for the peer, until it returns `None`.
//! * `poll_event()`: the next event, until it returns `None`: [`Event::Established`], then
//!   [`Event::Data`] and alerts, [`Event::Closed`] last.
//! * `poll_timeout()`: when to call `handle_timeout`, unless another input comes first.
//!
//! The time must not go backwards. Datagrams may be lost, duplicated and reordered. The client
//! retransmits flights without a response ([`Retransmission`]); a server only responds, and repeats its
//! response to a repeated flight. Datagrams that are not WTLS are dropped.
//!
//! A [`Context`] also contains an [`Observer`], which is called when the engine begins and ends to
//! process or generate a handshake message. With an observer and a provider that wraps another one, a
//! caller can measure the engine; the engine itself contains no code for measurements. The pre-master
//! and master secrets are computed within ClientKeyExchange. If this message is not sent, they are
//! computed within the message that completes the exchange: the client's Certificate (two certified
//! ECDH keys), ServerHello (shared secret), or ChangeCipherSpec (optimised handshake, in which only
//! this message shows that no ClientKeyExchange follows; the server computes them just before it).
//! Record keys are computed within ChangeCipherSpec.
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
//! # Modules
//!
//! The lowest layer comes first: of the modules in this list, each uses only those of its own item or of
//! earlier items.
//!
//! * [`codec`]: reading and writing bytes. [`mod@curve`], `dh`, `parameters`, `numbers`: curves, groups, and the
//!   numbers that the specification assigns.
//! * [`crypto`]: the traits of the primitives; [`provider`]: their implementation with OpenSSL.
//! * [`record`], [`protection`], [`key_schedule`], `replay`, `alert`: the record layer.
//! * [`certificate`], [`message`]: certificates and handshake messages.
//! * `flight`, `secured`: flights, and the common part of both sides' handshakes; `connection`: an
//!   established connection of either side.
//!
//! # What is not implemented, and why
//!
//! * A second handshake within a connection: it is rejected with no_renegotiation, as WAP-261 allows.
//!   A new handshake from the address of an existing connection is accepted.
//! * Compression: no method was ever assigned. SHA_XOR_40: WAP-261 withdrew it.
//! * Explicit parameters of unknown curves: a peer must not choose the curve's arithmetic.
//! * Sequence number modes "off" and "implicit": they are forbidden over datagrams. The record layer
//!   can read records with implicit numbers.

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
