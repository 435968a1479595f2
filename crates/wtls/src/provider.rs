//! Providers of the primitives.

#[cfg(feature = "openssl")]
#[allow(unsafe_code)] // FFI calls only
pub mod openssl;
