//! Keys and X.509 certificates of the laboratory.
//!
//! - [`Profile`]: the content of a certificate apart from its key (names, validity, extensions), as a data file;
//! - [`Store`]: creates the [`Identity`] of a side of a suite once and keeps it on disk;
//! - [`UserIdentity`]: an identity from user-supplied files;
//! - [`issue`]: issues certificates on request;
//! - [`order`]: which certificate issued which, for X.509 and WTLS;
//! - [`keys`]: keys of every type that a suite can name;
//! - [`dh`]: finite-field groups for which OpenSSL uses full-length exponents;
//! - [`draft`]: files that appear complete or not at all;
//! - [`input`]: files that may be pipes;
//! - [`limits`]: limits on user-supplied files;
//! - [`cancellation`]: cancels the generation of keys.
//!
//! This crate reads no clock: the time at which certificates are validated is an argument.

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

// That crate sets the features of the only OpenSSL build.
use shakedown_ossl as _;
