//! Several suites at one address, served by one `SSL_CTX`.
//!
//! libssl chooses version, cipher, group and certificate independently, each from its own list, so a client may also
//! negotiate a combination of parts of different suites. Settings that a context has only once must be the same in all.

use super::context;
use super::names;
use super::security::{self, Policy};
use crate::stack::{Setup, SetupError, refused};
use openssl::error::ErrorStack;
use openssl::ssl::{SslContext, SslContextBuilder, SslOptions, SslVersion};
use shakedown_trace::suite::{GroupKind, KeyExchange, KeyFamily, Protocol};
use shakedown_trace::{Side, Suite};

/// Builds a server's context for several suites.
pub fn build(setups: &[Setup]) -> Result<SslContext, SetupError> {
    let Some((first, others)) = setups.split_first() else {
        return Err(SetupError::NoSuite);
    };
    for (place, one) in setups.iter().enumerate() {
        for other in &setups[place + 1..] {
            if let Some(reason) = conflict(one, other) {
                let (one, other) = (one.suite.to_string(), other.suite.to_string());
                return Err(SetupError::IncompatibleSuites { one, other, reason: reason.into() });
            }
        }
    }
    let policies = setups.iter().map(|setup| security::policy(&setup.suite, setup.exposure));
    let policy = policies.min().unwrap_or(Policy::Level(0));
    let mut builder = context::begin(policy, Side::Server, first)?;
    negotiate(&mut builder, setups).map_err(refused("offer several suites"))?;
    let mut slots = vec![slot(&first.suite)];
    for setup in others {
        let own = slot(&setup.suite);
        context::extend(&mut builder, setup, !slots.contains(&own))?;
        slots.push(own);
    }
    Ok(builder.build())
}

/// The reason why one context cannot serve two suites.
fn conflict(one: &Setup, other: &Setup) -> Option<&'static str> {
    let (a, b) = (&one.suite, &other.suite);
    if a == b {
        return Some("they are the same");
    }
    if a.authentication.zip(b.authentication).is_some_and(|(a, b)| a != b) {
        return Some("they ask clients for different authentication");
    }
    if a.mode != b.mode && (a.is_resumption() || b.is_resumption()) {
        return Some("they resume sessions in different ways");
    }
    if slot(a).is_some() && slot(a) == slot(b) && one.identities.server != other.identities.server {
        return Some("they have different certificates of one kind of key");
    }
    let finite = |suite: &Suite| {
        let old = suite.protocol != Protocol::Tls13;
        suite.group.filter(|_| old && suite.key_exchange.group_kind() == Some(GroupKind::FiniteField))
    };
    if finite(a).zip(finite(b)).is_some_and(|(a, b)| a != b) {
        return Some("they have different Diffie-Hellman groups");
    }
    let by_key = |suite: &Suite| matches!(suite.key_exchange, KeyExchange::Psk | KeyExchange::PskDhe);
    if a.protocol == Protocol::Tls13 && b.protocol == Protocol::Tls13 && (by_key(a) || by_key(b)) {
        return Some("a pre-shared key of TLS 1.3 needs a separate server");
    }
    None
}

/// The context's place for a suite's certificate.
fn slot(suite: &Suite) -> Option<KeyFamily> {
    suite.key_family().filter(|_| suite.has_certificates())
}

const VERSIONS: [(Protocol, SslVersion, SslOptions); 5] = [
    (Protocol::Ssl3, SslVersion::SSL3, SslOptions::NO_SSLV3),
    (Protocol::Tls10, SslVersion::TLS1, SslOptions::NO_TLSV1),
    (Protocol::Tls11, SslVersion::TLS1_1, SslOptions::NO_TLSV1_1),
    (Protocol::Tls12, SslVersion::TLS1_2, SslOptions::NO_TLSV1_2),
    (Protocol::Tls13, SslVersion::TLS1_3, SslOptions::NO_TLSV1_3),
];

/// Versions, ciphers and groups of all suites; the first suite's are preferred.
fn negotiate(builder: &mut SslContextBuilder, setups: &[Setup]) -> Result<(), ErrorStack> {
    let suites = || setups.iter().map(|setup| &setup.suite);
    let mut named = VERSIONS.iter().filter(|row| suites().any(|suite| suite.protocol == row.0));
    let lowest = named.clone().next().map(|row| row.1);
    let highest = named.next_back().map(|row| row.1);
    builder.set_min_proto_version(lowest)?;
    builder.set_max_proto_version(highest)?;
    for (protocol, _, without) in VERSIONS {
        if !suites().any(|suite| suite.protocol == protocol) {
            builder.set_options(without);
        }
    }
    let ciphers = |tls13: bool| {
        let of = suites().filter(|suite| (suite.protocol == Protocol::Tls13) == tls13);
        context::listed(of.map(names::cipher_suite))
    };
    if let Some(old) = ciphers(false) {
        builder.set_cipher_list(&old)?;
    }
    if let Some(new) = ciphers(true) {
        builder.set_ciphersuites(&new)?;
    }
    builder.set_options(SslOptions::CIPHER_SERVER_PREFERENCE);
    if let Some(groups) = context::listed(suites().filter_map(context::group)) {
        builder.set_groups_list(&groups)?;
    }
    Ok(())
}
