//! ossl
