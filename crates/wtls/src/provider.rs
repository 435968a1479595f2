//! Providers of the primitives.

#[cfg(feature = "openssl")]
#[allow(unsafe_code)] // calls of C, and nothing else
pub mod openssl;
