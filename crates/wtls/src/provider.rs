//! Providers of the primitives.

#[cfg(feature = "openssl")]
pub mod openssl;
