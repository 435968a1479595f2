//! Errors in suite names.

/// Why a text is not a suite. Each message states the text, the wrong part, and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuiteError {
    #[error("suite '{name}': unknown protocol '{protocol}'; accepted: {accepted}")]
    UnknownProtocol { name: String, protocol: String, accepted: String },

    #[error("suite '{name}': no key exchange given; after '{protocol}/' comes one of: {accepted}")]
    MissingKeyExchange { name: String, protocol: String, accepted: String },

    #[error("suite '{name}': {protocol} has no key exchange '{key_exchange}'; accepted: {accepted}")]
    UnknownKeyExchange { name: String, protocol: String, key_exchange: String, accepted: String },

    #[error("suite '{name}': '{key_exchange}' does not use a group ('+{group}')")]
    GroupWithoutUse { name: String, key_exchange: String, group: String },

    #[error(
        "suite '{name}': '{group}' is not a group that {key_exchange} can use in {protocol}; accepted: {accepted}"
    )]
    UnusableGroup { name: String, protocol: String, key_exchange: String, group: String, accepted: String },

    #[error("suite '{name}': '{key_exchange}' does not use keys ('{keys}')")]
    KeysWithoutUse { name: String, key_exchange: String, keys: String },

    #[error("suite '{name}': unknown key '{key}' in '{keys}'; accepted: {accepted}")]
    UnknownKey { name: String, keys: String, key: String, accepted: String },

    #[error("suite '{name}': {key_exchange} in {protocol} cannot use a {key} key; accepted: {accepted}")]
    UnusableKey { name: String, protocol: String, key_exchange: String, key: String, accepted: String },

    #[error("suite '{name}': {protocol} cannot use an issuer with a {issuer} key; accepted: {accepted}")]
    UnusableIssuer { name: String, protocol: String, issuer: String, accepted: String },

    #[error("suite '{name}': 'rsa_anon' uses one temporary key and no chain, not '{keys}'")]
    ChainOfTemporaryKey { name: String, keys: String },

    #[error("suite '{name}': more than {max} certificates in '{keys}'")]
    ChainTooLong { name: String, keys: String, max: usize },

    #[error("suite '{name}': '{key_exchange}' does not use an authentication ('{authentication}')")]
    AuthenticationWithoutUse { name: String, key_exchange: String, authentication: String },

    #[error("suite '{name}': mode '{mode}' is impossible here: {reason}")]
    ImpossibleMode { name: String, mode: String, reason: &'static str },

    #[error("suite '{name}': {protocol} cannot use cipher '{cipher}'; accepted: {accepted}")]
    UnusableCipher { name: String, protocol: String, cipher: String, accepted: String },

    #[error("suite '{name}': '{part}' is not understood{place}; accepted there: {accepted}")]
    UnknownPart { name: String, part: String, place: String, accepted: String },
}
