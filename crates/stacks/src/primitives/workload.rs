//! The timed work: both sides' operations in a handshake with one key, group or algorithm.

use super::evp::{Evp, Scheme};
use super::symmetric;
use super::target::Target;
use super::{Failure, Workload};
use crate::stack::refused;
use openssl::pkey::{PKey, Params, Private, Public};
use shakedown_trace::suite::{Group, KeyType, Protocol};
use std::ffi::{CStr, CString};

/// Length of signed data: about that of a certificate, or of a transcript hash with its prefix.
const MESSAGE_BYTES: usize = 256;
const SHA256: Option<&CStr> = Some(c"SHA256");

/// Creates the workload of a target. `key` returns private keys as PKCS #8.
pub fn prepare(
    target: Target,
    evp: Evp,
    key: &dyn Fn(KeyType) -> Result<Vec<u8>, Failure>,
) -> Result<Workload, Failure> {
    let public_key = match target {
        Target::Key(wanted) => {
            let pkcs8 = key(wanted)?;
            let private = evp.private_key(&pkcs8)?;
            let spki = private.public_key_to_der().map_err(refused("encode a key"))?;
            match wanted {
                KeyType::Rsa { bits, .. } => rsa(evp, private, spki, bits),
                KeyType::Ec(curve) => curve_key(evp, private, spki, curve.openssl_name()),
                KeyType::Dsa(_) => signature(evp, private, spki, Scheme { digest: SHA256, pss: false }),
                KeyType::Ed25519 | KeyType::MlDsa(_) => {
                    signature(evp, private, spki, Scheme { digest: None, pss: false })
                }
            }
        }
        Target::Agreement(Group::Dh(bits)) => {
            let (prime, generator) = shakedown_pki::dh::group(bits).unwrap_or((&[], &[]));
            finite_field(evp, evp.finite_field(prime, generator, None)?, prime, generator)
        }
        Target::Agreement(group @ Group::Ffdhe(_)) => {
            let name = CString::new(group.parameters(Protocol::Tls12)).unwrap_or_default();
            let parameters = evp.parameters_in(c"DH", &name)?;
            Box::new(move || agree(evp, c"DH", &name, &parameters, true))
        }
        Target::Agreement(group) => {
            let name = if group == Group::X448 { c"X448" } else { c"X25519" };
            let parameters = evp.parameters_in(name, name)?;
            Box::new(move || agree(evp, name, name, &parameters, false))
        }
        Target::Encapsulation(group) => encapsulation(evp, kem(group)),
        Target::Wtls(wtls) => return super::wtls::prepare(wtls),
        symmetric => return symmetric::prepare(symmetric, evp).map(Workload::Symmetric),
    };
    Ok(Workload::PublicKey(public_key))
}

type Rounds = Box<dyn FnMut() -> Result<(), Failure>>;

/// A certificate key that only signs: the server signs, the client decodes the key and verifies.
fn signature(evp: Evp, private: PKey<Private>, spki: Vec<u8>, scheme: Scheme) -> Rounds {
    let message = [0x5A; MESSAGE_BYTES];
    Box::new(move || {
        let signature = evp.sign(&private, scheme, &message)?;
        let public = evp.public_key(&spki)?;
        Ok(evp.verify(&public, scheme, &message, &signature)?)
    })
}

/// An RSA key signs in the handshake and in certificates, and decrypts secrets. In the handshake, TLS 1.2 and 1.3
/// prefer PSS if the modulus is long enough; certificates use PKCS #1 v1.5.
fn rsa(evp: Evp, private: PKey<Private>, spki: Vec<u8>, bits: u16) -> Rounds {
    const VERSION: u16 = 0x0303;
    let message = [0x5A; MESSAGE_BYTES];
    let mut secret = [0x5A; 48];
    secret[..2].copy_from_slice(&VERSION.to_be_bytes());
    let of_certificates = Scheme { digest: SHA256, pss: false };
    // PSS with SHA-256 and a salt of the same length needs 66 bytes (RFC 8017 section 9.1.1).
    let of_handshakes = Scheme { digest: SHA256, pss: bits >= 768 };
    let mut certificate_signature = None;
    Box::new(move || {
        if certificate_signature.is_none() {
            certificate_signature = Some(evp.sign(&private, of_certificates, &message)?);
        }
        let issuer = evp.public_key(&spki)?;
        evp.verify(&issuer, of_certificates, &message, certificate_signature.as_deref().unwrap_or_default())?;
        let signature = evp.sign(&private, of_handshakes, &message)?;
        let leaf = evp.public_key(&spki)?;
        evp.verify(&leaf, of_handshakes, &message, &signature)?;
        let leaf = evp.public_key(&spki)?;
        let ciphertext = evp.encrypt(&leaf, &secret)?;
        let opened = evp.decrypt(&private, &ciphertext, VERSION)?;
        if opened == secret { Ok(()) } else { Err(Failure::Disagreement { what: "the decrypted secret" }) }
    })
}

/// An elliptic-curve key, for signatures and agreements.
fn curve_key(evp: Evp, private: PKey<Private>, spki: Vec<u8>, curve: &'static str) -> Rounds {
    let mut sign = signature(evp, private, spki, Scheme { digest: SHA256, pss: false });
    let name = CString::new(curve).unwrap_or_default();
    let mut parameters = None;
    Box::new(move || {
        sign()?;
        let parameters = match &parameters {
            Some(parameters) => parameters,
            None => parameters.insert(evp.parameters_in(c"EC", &name)?),
        };
        agree(evp, c"EC", &name, parameters, false)
    })
}

/// An ephemeral agreement in a named group, with both sides' work: `parameters` are the server's.
fn agree(
    evp: Evp,
    algorithm: &CStr,
    group: &CStr,
    parameters: &PKey<Params>,
    padded: bool,
) -> Result<(), Failure> {
    // One side selects the group by name, the other generates its key in the received group.
    let first = evp.generate_in(algorithm, group)?;
    let first_share = evp.share(&first)?;
    let seen_by_second = evp.import_share(evp.parameters_in(algorithm, group)?, &first_share)?;
    let second = evp.generate_like(&seen_by_second)?;
    let second_share = evp.share(&second)?;
    let secret = evp.derive(&second, &seen_by_second, padded)?;
    let seen_by_first = evp.import_share(evp.parameters_of(parameters)?, &second_share)?;
    same(&evp.derive(&first, &seen_by_first, padded)?, &secret)
}

/// The key agreement of TLS up to 1.2 modulo a prime that the server sends with its share.
fn finite_field(
    evp: Evp,
    parameters: PKey<Public>,
    prime: &'static [u8],
    generator: &'static [u8],
) -> Rounds {
    Box::new(move || {
        let server = evp.generate_like(&parameters)?;
        let server_share = evp.share(&server)?;
        let seen_by_client = evp.finite_field(prime, generator, Some(&server_share))?;
        evp.check_finite_field(&seen_by_client)?;
        let client = evp.generate_like(&seen_by_client)?;
        let secret = evp.derive(&client, &seen_by_client, false)?;
        let client_share = evp.share(&client)?;
        let seen_by_server = evp.import_share(evp.parameters_of(&server)?, &client_share)?;
        same(&evp.derive(&server, &seen_by_server, false)?, &secret)
    })
}

/// OpenSSL's name of a KEM.
fn kem(group: Group) -> &'static CStr {
    match group {
        Group::MlKem(512) => c"MLKEM512",
        Group::MlKem(768) => c"MLKEM768",
        Group::MlKem(_) => c"MLKEM1024",
        Group::Secp256r1MlKem768 => c"SecP256r1MLKEM768",
        _ => c"X25519MLKEM768",
    }
}

/// The client generates and decapsulates, the server decodes the client's key and encapsulates.
fn encapsulation(evp: Evp, name: &'static CStr) -> Rounds {
    Box::new(move || {
        let client = evp.generate_in(name, name)?;
        let share = evp.share(&client)?;
        let seen_by_server = evp.import_share(evp.parameters_in(name, name)?, &share)?;
        let (ciphertext, secret) = evp.encapsulate(&seen_by_server)?;
        same(&evp.decapsulate(&client, &ciphertext)?, &secret)
    })
}

pub fn same(one: &[u8], other: &[u8]) -> Result<(), Failure> {
    if one == other { Ok(()) } else { Err(Failure::Disagreement { what: "the agreed secret" }) }
}
