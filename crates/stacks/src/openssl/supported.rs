//! The suites that this build of OpenSSL supports.

use super::context::{empty, library};
use super::names::cipher_suite;
use super::security::Policy;
use crate::stack::{SetupError, refused};
use foreign_types::ForeignType;
use openssl::ssl::SslVersion;
use shakedown_ossl::ffi;
use shakedown_trace::Suite;
use shakedown_trace::suite::{Cipher, KeyExchange, KeyType, Protocol, TlsCipher};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The names of all cipher suites of this build's libssl.
fn known() -> &'static BTreeSet<String> {
    static KNOWN: OnceLock<BTreeSet<String>> = OnceLock::new();
    KNOWN.get_or_init(|| cipher_suites().unwrap_or_default())
}

/// The ciphers that this build has for the protocol and key exchange of a suite.
fn ciphers_with(suite: &Suite) -> Vec<&'static str> {
    let runs = |cipher: TlsCipher| {
        let other = Suite { cipher: Cipher::Tls(cipher), ..suite.clone() };
        other.to_string().parse::<Suite>().is_ok() && known().contains(&cipher_suite(&other))
    };
    TlsCipher::ALL.into_iter().filter(|(cipher, _)| runs(*cipher)).map(|(_, name)| name).collect()
}

pub fn supports(suite: &Suite) -> Result<(), String> {
    if matches!(suite.protocol, Protocol::Wtls | Protocol::Dtls12) {
        return Err(format!("the stack {} does not run {}", super::NAME, suite.protocol.as_str()));
    }
    let name = cipher_suite(suite);
    if suite.protocol != Protocol::Tls13 && !known().contains(&name) {
        let others = ciphers_with(suite).join(" ");
        let version = shakedown_ossl::version();
        return Err(format!("OpenSSL {version} has no cipher suite {name}; accepted ciphers: {others}"));
    }
    let rsa_signer = match suite.key_exchange {
        KeyExchange::DheRsa | KeyExchange::EcdheRsa | KeyExchange::Ephemeral => suite.keys.first(),
        _ => None,
    };
    if let Some(KeyType::Rsa { bits, .. }) = rsa_signer
        && suite.protocol == Protocol::Tls13
        && *bits < 768
    {
        return Err("an RSA key below 768 bits is too small for RSASSA-PSS with SHA-256".into());
    }
    Ok(())
}

fn cipher_suites() -> Result<BTreeSet<String>, SetupError> {
    let mut builder = empty(library(false)?, Policy::Permissive)?;
    builder
        .set_min_proto_version(Some(SslVersion::SSL3))
        .and_then(|()| builder.set_cipher_list("ALL:COMPLEMENTOFALL:eNULL"))
        .map_err(refused("list its cipher suites"))?;
    let context = builder.build();
    let ssl = openssl::ssl::Ssl::new(&context).map_err(refused("list its cipher suites"))?;
    let names = (0..).map_while(|place| {
        // SAFETY: the connection is live; the text is static, and null beyond the end of the list.
        unsafe {
            let name = ffi::SSL_get_cipher_list(ssl.as_ptr(), place);
            (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    });
    Ok(names.collect())
}
