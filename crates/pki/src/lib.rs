//! Keys and X.509 certificates of the laboratory.
//!
//! - [`Profile`]: what is in a certificate besides its key (names, validity, extensions), as a data file;
//! - [`Store`]: makes the [`Identity`] of a side of a suite once and keeps it on disk;
//! - [`UserIdentity`]: the same from a user's own files;
//! - [`issue`]: certificates to a user's order;
//! - [`order`]: which certificate was issued by which, of either form;
//! - [`keys`]: keys of every type that a suite can name;
//! - [`dh`]: the finite-field groups that OpenSSL has no short cut for;
//! - [`draft`]: files that appear whole or not at all;
//! - [`input`]: files that may be pipes;
//! - [`limits`]: how much is read of what people give;
//! - [`cancellation`]: giving up keys that take too long.
//!
//! No clock is read here: the time at which something must be valid comes in as an argument.

mod cache;
pub mod cancellation;
mod certificate;
pub mod credentials;
pub mod date;
pub mod dh;
pub mod draft;
mod error;
mod extension;
mod ffi;
pub mod input;
pub mod inspect;
pub mod issue;
pub mod keys;
pub mod limits;
pub mod name;
pub mod order;
mod profile;
mod signature;
mod store;
mod user;

pub use cache::hex;
pub use error::{PkiError, words};
pub use profile::{Profile, Role};
pub use signature::Digest;
pub use store::{Identity, Store};
pub use user::{UserError, UserIdentity};

// The features of the one OpenSSL build are set there.
use shakedown_ossl as _;
