//! Configurations of the engine for a suite.

use super::Options;
use super::provider::Timed;
use crate::stack::{Setup, SetupError};
use shakedown_certs::CertsError;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_certs::wtls as certs;
use shakedown_trace::Suite;
use shakedown_trace::suite::{Authentication, Cipher, Group, KeyExchange, KeyType, Mode};
use shakedown_wtls::certificate::{CertificateError, ChainCertificate};
use shakedown_wtls::{
    BulkCipher, CipherSuite, ClientAuthentication, ClientConfig, Curve, DhGroup, EncodedRsaKey, Identifier,
    Identity, KeyExchangeId, KeyExchangeSuite, KnownClient, MacAlgorithm, MemorySessions, ParameterSpecifier,
    ServerConfig, Session, SessionId, SessionStore, SharedSecret, TemporaryRsaKey,
};
use std::sync::Arc;

/// Maximum number of a server's sessions, more than are ever in use at once.
const SESSIONS: usize = 1024;

/// Creates session IDs and stores nothing.
struct StatelessSessions;

impl SessionStore for StatelessSessions {
    fn insert(&self, _: Session) {}

    fn find(&self, _: &SessionId) -> Option<Session> {
        None
    }

    fn remove(&self, _: &SessionId) {}
}

/// The secret of shared-secret suites, and its name.
const SHARED_SECRET: &[u8; 20] = b"shakedown lab secret";
const SHARED_SECRET_NAME: &str = "Client_identity";

/// The engine's number of a suite's key exchange, one with a size limit if the specification has one that fits.
pub fn key_exchange(suite: &Suite) -> KeyExchangeSuite {
    let rsa_bits = match suite.keys.first() {
        Some(KeyType::Rsa { bits, .. }) => *bits,
        _ => u16::MAX,
    };
    match (suite.key_exchange, suite.group) {
        (KeyExchange::RsaAnon, _) => match rsa_bits {
            ..=512 => KeyExchangeSuite::RsaAnon512,
            513..=768 => KeyExchangeSuite::RsaAnon768,
            _ => KeyExchangeSuite::RsaAnon,
        },
        (KeyExchange::DhAnon, Some(Group::Dh(512))) => KeyExchangeSuite::DhAnon512,
        (KeyExchange::DhAnon, _) => KeyExchangeSuite::DhAnon768,
        (KeyExchange::EcdhAnon, Some(Group::Curve(curve))) if curve.field_bits() <= 113 => {
            KeyExchangeSuite::EcdhAnon113
        }
        (KeyExchange::EcdhAnon, _) => KeyExchangeSuite::EcdhAnon,
        (KeyExchange::EcdhEcdsa, _) => KeyExchangeSuite::EcdhEcdsa,
        (KeyExchange::SharedSecret, _) => KeyExchangeSuite::SharedSecret,
        _ => match rsa_bits {
            ..=512 => KeyExchangeSuite::Rsa512,
            513..=768 => KeyExchangeSuite::Rsa768,
            _ => KeyExchangeSuite::Rsa,
        },
    }
}

/// Cipher and MAC by the specification's numbers.
pub fn cipher_suite(suite: &Suite) -> CipherSuite {
    let Cipher::Wtls(bulk, mac) = suite.cipher else { return CipherSuite::RC5_SHA };
    // Both tables follow the specification; a test compares all entries.
    let bulk = BulkCipher::from_number(bulk.number()).unwrap_or(BulkCipher::Rc5Cbc);
    let mac = MacAlgorithm::from_number(mac.number()).unwrap_or(MacAlgorithm::Sha);
    CipherSuite { bulk, mac }
}

fn curve(curve: shakedown_trace::suite::Curve) -> Option<Curve> {
    Curve::from_name(curve.wtls_name()?)
}

fn failed(error: impl Into<CertsError>) -> SetupError {
    SetupError::Certs(error.into())
}

/// The key exchange that a client offers. Its curve determines the server's certificate.
fn offer(suite: &Suite, options: Options) -> Result<KeyExchangeId, SetupError> {
    let of_curve =
        |name| curve(name).map(|curve| ParameterSpecifier::of_curve(curve, options.private_curves));
    let parameters = match (suite.key_exchange, suite.group, suite.keys.first().copied()) {
        (KeyExchange::DhAnon, Some(Group::Dh(bits)), _) => {
            ParameterSpecifier::of_group(&group(bits)).map_err(|error| failed_encoding(&error))?
        }
        (KeyExchange::EcdhAnon, Some(Group::Curve(name)), _)
        | (KeyExchange::EcdhEcdsa, _, Some(KeyType::Ec(name))) => {
            of_curve(name).unwrap_or(ParameterSpecifier::NONE)
        }
        _ => ParameterSpecifier::NONE,
    };
    let identifier = match suite.key_exchange {
        KeyExchange::SharedSecret => Identifier::text(SHARED_SECRET_NAME),
        _ => Identifier::Null,
    };
    Ok(KeyExchangeId::new(key_exchange(suite), parameters, identifier))
}

fn failed_encoding(error: &dyn std::fmt::Display) -> SetupError {
    SetupError::Stack {
        stack: super::NAME,
        what: "encode key exchange parameters",
        reason: error.to_string(),
    }
}

fn group(bits: u16) -> Arc<DhGroup> {
    if bits == 512 { DhGroup::group_1() } else { DhGroup::group_2() }
}

fn shared_secret() -> SharedSecret {
    SharedSecret { identifier: Identifier::text(SHARED_SECRET_NAME), secret: SHARED_SECRET.to_vec().into() }
}

fn leaf(presented: &AnyIdentity) -> Result<ChainCertificate, SetupError> {
    let leaf = presented.wtls_chain().map_err(failed)?.into_iter().next();
    leaf.ok_or_else(|| failed(CertificateError::Missing))
}

fn identity(provider: &Timed, presented: &AnyIdentity, suite: &Suite) -> Result<Identity<Timed>, SetupError> {
    let key = certs::private_key(provider.inner(), presented.key())?;
    let name = suite.keys.first().map_or("", |key| key.standard_name());
    let identity = Identity::new(presented.wtls_chain().map_err(failed)?, provider.private_key(key, name))
        .map_err(failed)?;
    // If a root's name is too long to send, the root is identified by the hash of its key.
    Ok(match presented {
        AnyIdentity::Wtls(_) => identity,
        AnyIdentity::X509(_) => identity.with_authority(Identifier::KeyHash(
            presented.wtls_anchor(provider, false).map_err(failed)?.key_hash,
        )),
    })
}

/// The client's certificates. If authentication is only `requested`, the client presents none.
fn client_identity(setup: &Setup) -> Option<&AnyIdentity> {
    setup.identities.client.as_ref().filter(|_| setup.suite.authentication == Some(Authentication::Mutual))
}

pub fn client(provider: &Timed, setup: &Setup, options: Options) -> Result<ClientConfig<Timed>, SetupError> {
    let suite = &setup.suite;
    let mut offer = offer(suite, options)?;
    if let (Mode::Optimized, Some(own)) = (suite.mode, client_identity(setup)) {
        let leaf = leaf(own)?;
        let hash = leaf.public_key(true).key_hash(provider, options.private_curves);
        offer.identifier = Identifier::KeyHash(hash.map_err(failed)?);
    }
    let mut config = ClientConfig::new(vec![offer]);
    config.cipher_suites = vec![cipher_suite(suite)];
    config.settings.private_curves = options.private_curves;
    config.settings.distinguish_record_errors = options.distinguish_record_errors;
    config.settings.max_datagram_bytes = setup.largest_datagram_bytes;
    if let Some(server) = &setup.identities.server {
        config.anchors.push(server.wtls_anchor(provider, options.private_curves).map_err(failed)?);
        config.server_name = Some(server.subject().to_owned());
    }
    if let Some(own) = client_identity(setup) {
        config.identity = Some(identity(provider, own, suite)?);
    }
    if suite.key_exchange == KeyExchange::SharedSecret {
        config.shared_secrets.push(shared_secret());
    }
    Ok(config)
}

pub fn server(provider: &Timed, setup: &Setup, options: Options) -> Result<ServerConfig<Timed>, SetupError> {
    let suite = &setup.suite;
    let mut config = ServerConfig::new(vec![key_exchange(suite)]);
    config.cipher_suites = vec![cipher_suite(suite)];
    if let Some(timeout) = setup.handshake_timeout {
        config.handshake_timeout = timeout;
    }
    config.settings.private_curves = options.private_curves;
    config.settings.distinguish_record_errors = options.distinguish_record_errors;
    config.settings.max_datagram_bytes = setup.largest_datagram_bytes;
    // A full handshake gets a session ID, as from any server that could resume it, but the session is not stored.
    config.sessions = match suite.is_resumption() {
        true => Arc::new(MemorySessions::new(SESSIONS)),
        false => Arc::new(StatelessSessions),
    };
    config.client_authentication = match suite.authentication {
        Some(Authentication::Requested) => ClientAuthentication::Requested,
        Some(Authentication::Mutual) => ClientAuthentication::Required,
        _ => ClientAuthentication::None,
    };
    if let Some(own) = &setup.identities.server {
        config.identities.push(identity(provider, own, suite)?);
    }
    if let Some(peer) = client_identity(setup) {
        config.anchors.push(peer.wtls_anchor(provider, options.private_curves).map_err(failed)?);
        if suite.mode == Mode::Optimized {
            let known = KnownClient::new(provider, leaf(peer)?, options.private_curves);
            config.known_clients.push(known.map_err(failed)?);
        }
    }
    match (suite.key_exchange, suite.group, suite.keys.first()) {
        (KeyExchange::DhAnon, Some(Group::Dh(bits)), _) => config.groups.push(group(bits)),
        (KeyExchange::EcdhAnon, Some(Group::Curve(name)), _) => config.curves.extend(curve(name)),
        (KeyExchange::RsaAnon, _, Some(kind)) => {
            let pkcs8 = setup.identities.temporary_key.as_deref().unwrap_or_default();
            config.temporary_rsa_keys.push(temporary_key(provider, pkcs8, *kind)?);
        }
        (KeyExchange::SharedSecret, _, _) => config.shared_secrets.push(shared_secret()),
        _ => {}
    }
    Ok(config)
}

/// A temporary key of RSA_anon, generated beforehand.
fn temporary_key(
    provider: &Timed,
    pkcs8: &[u8],
    kind: KeyType,
) -> Result<TemporaryRsaKey<Timed>, SetupError> {
    let key = certs::private_key(provider.inner(), pkcs8)?;
    let (exponent, modulus) = provider.inner().rsa_public(&key).map_err(failed)?;
    let public = EncodedRsaKey::new(&exponent, &modulus).map_err(|error| failed_encoding(&error))?;
    Ok(TemporaryRsaKey { key: provider.private_key(key, kind.standard_name()), public })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_trace::suite::{WtlsBulk, WtlsMac};

    #[test]
    fn every_cipher_and_mac_name_maps_to_the_engine() {
        for (bulk, _) in WtlsBulk::ALL {
            assert_eq!(BulkCipher::from_number(bulk.number()).map(BulkCipher::number), Ok(bulk.number()));
        }
        // WAP-261, table 6: 4 is not assigned.
        for ((mac, _), number) in WtlsMac::ALL.into_iter().zip([0, 1, 2, 3, 5, 6, 7]) {
            assert_eq!(mac.number(), number);
            assert_eq!(MacAlgorithm::from_number(number).map(MacAlgorithm::number), Ok(number));
        }
    }
}
