//! rustls's cryptography, timed: every object of a `CryptoProvider` in a wrapper that records its operations.
//!
//! All wrappers are here, because rustls 0.24 changes these traits. They are created once and never freed, because the
//! traits require `&'static` objects. A bare connection uses the inner provider.

use super::boundaries::{Boundaries, update_boundaries};
use super::names::{known_group, parts};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter,
    MessageEncrypter, OutboundOpaqueMessage, OutboundPlainMessage, Tls12AeadAlgorithm, Tls13AeadAlgorithm,
    UnsupportedOperationError,
};
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::crypto::tls12::Prf;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, KeyProvider, SharedSecret, SupportedKxGroup,
    WebPkiSupportedAlgorithms, aws_lc_rs, hmac,
};
use rustls::pki_types::{
    AlgorithmIdentifier, InvalidSignature, PrivateKeyDer, SignatureVerificationAlgorithm, alg_id,
};
use rustls::sign::{Signer, SigningKey};
use rustls::{
    CipherSuite, CipherSuiteCommon, ConnectionTrafficSecrets, ContentType, Error, NamedGroup,
    ProtocolVersion, SignatureAlgorithm, SignatureScheme, SupportedCipherSuite, Tls12CipherSuite,
    Tls13CipherSuite,
};
use shakedown_trace::operation::intern;
use shakedown_trace::suite::{KeyFamily, Protocol, TlsCipher};
use shakedown_trace::{MessageName, Operation, Primitive, recorder};
use std::sync::{Arc, OnceLock};

/// The provider without wrappers.
pub fn bare() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

/// The provider with every object wrapped.
pub fn timed() -> CryptoProvider {
    static TIMED: OnceLock<CryptoProvider> = OnceLock::new();
    TIMED.get_or_init(wrap).clone()
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn wrap() -> CryptoProvider {
    let provider = bare();
    let groups = aws_lc_rs::ALL_KX_GROUPS.iter();
    let groups =
        groups.filter_map(|group| Some(leak(Group { inner: *group, names: group_names(group.name())? })));
    CryptoProvider {
        cipher_suites: provider.cipher_suites.iter().filter_map(|suite| cipher_suite(*suite)).collect(),
        kx_groups: groups.map(|group| group as &dyn SupportedKxGroup).collect(),
        signature_verification_algorithms: verifiers(provider.signature_verification_algorithms),
        secure_random: provider.secure_random,
        key_provider: leak(Keys { inner: provider.key_provider }),
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn symmetric(operation: Operation, algorithm: &'static str) -> Primitive {
    Primitive::new(operation, algorithm, "")
}

// ---------------------------------------------------------------------------------------------- key exchange

/// The names of operations in a group, and whether the group is a KEM.
#[derive(Clone, Copy, Debug)]
struct GroupNames {
    family: KeyFamily,
    parameters: &'static str,
    kem: bool,
}

fn group_names(group: NamedGroup) -> Option<GroupNames> {
    let group = known_group(group)?;
    let parameters = group.parameters(Protocol::Tls13);
    Some(GroupNames { family: group.family(), parameters, kem: group.is_kem() })
}

impl GroupNames {
    fn primitive(self, operation: Operation) -> Primitive {
        self.family.primitive(operation, self.parameters)
    }
}

#[derive(Debug)]
struct Group {
    inner: &'static dyn SupportedKxGroup,
    names: GroupNames,
}

impl SupportedKxGroup for Group {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let inner = recorder::timed(self.names.primitive(Operation::Keygen), 0, || self.inner.start())?;
        Ok(Box::new(Exchange { inner, names: self.names }))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        if self.names.kem {
            let encapsulate = self.names.primitive(Operation::Encapsulate);
            return recorder::timed(encapsulate, 0, || self.inner.start_and_complete(peer));
        }
        let exchange = self.start()?;
        Ok(CompletedKeyExchange {
            group: exchange.group(),
            pub_key: exchange.pub_key().to_vec(),
            secret: exchange.complete(peer)?,
        })
    }

    fn name(&self) -> NamedGroup {
        self.inner.name()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.inner.usable_for_version(version)
    }
}

struct Exchange {
    inner: Box<dyn ActiveKeyExchange>,
    names: GroupNames,
}

impl ActiveKeyExchange for Exchange {
    // `complete_for_tls_version` keeps its default, which calls this: no group here strips zeros.
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let operation = if self.names.kem { Operation::Decapsulate } else { Operation::Derive };
        recorder::timed(self.names.primitive(operation), 0, || self.inner.complete(peer))
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        self.inner.hybrid_component()
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        // Only the classical half, which the server chose instead of the hybrid.
        let names =
            self.inner.hybrid_component().and_then(|(group, _)| group_names(group)).unwrap_or(self.names);
        recorder::timed(names.primitive(Operation::Derive), 0, || self.inner.complete_hybrid_component(peer))
    }

    fn pub_key(&self) -> &[u8] {
        self.inner.pub_key()
    }

    fn group(&self) -> NamedGroup {
        self.inner.group()
    }
}

// ------------------------------------------------------------------------------------------------ signatures

#[derive(Debug)]
struct Keys {
    inner: &'static dyn KeyProvider,
}

impl KeyProvider for Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Ok(Arc::new(TimedKey { inner: self.inner.load_private_key(key)? }))
    }
}

#[derive(Debug)]
struct TimedKey {
    inner: Arc<dyn SigningKey>,
}

impl SigningKey for TimedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let inner = self.inner.choose_scheme(offered)?;
        let primitive = match self.inner.public_key() {
            Some(key) => {
                // Keys are of a suite's types, or from a user's certificate, which was checked against the suite.
                let spki = key.as_ref();
                let holds = |id: &AlgorithmIdentifier| spki.windows(id.len()).take(8).any(|at| at == &id[..]);
                // RSA's SubjectPublicKeyInfo has 24 bytes before the RSAPublicKey if the modulus has 2,048 bits or
                // more.
                signature_primitive(Operation::Sign, holds, spki.get(24..).unwrap_or_default())
            }
            None => Primitive::new(Operation::Sign, "unknown", ""),
        };
        Some(Box::new(TimedSigner { inner, primitive }))
    }

    fn public_key(&self) -> Option<rustls::pki_types::SubjectPublicKeyInfoDer<'_>> {
        self.inner.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.inner.algorithm()
    }
}

#[derive(Debug)]
struct TimedSigner {
    inner: Box<dyn Signer>,
    primitive: Primitive,
}

impl Signer for TimedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        recorder::timed(self.primitive, 0, || self.inner.sign(message))
    }

    fn scheme(&self) -> SignatureScheme {
        self.inner.scheme()
    }
}

/// Keys whose algorithm identifier contains their parameters.
const CURVES: [(AlgorithmIdentifier, &str, &str); 4] = [
    (alg_id::ECDSA_P256, "ecdsa", "p256"),
    (alg_id::ECDSA_P384, "ecdsa", "p384"),
    (alg_id::ECDSA_P521, "ecdsa", "p521"),
    (alg_id::ED25519, "eddsa", "ed25519"),
];

/// The primitive of a key; `is` compares its algorithm identifier. If no curve matches, it is an RSA key.
fn signature_primitive(
    operation: Operation,
    is: impl Fn(&AlgorithmIdentifier) -> bool,
    rsa_key: &[u8],
) -> Primitive {
    match CURVES.iter().find(|row| is(&row.0)) {
        Some((_, algorithm, parameters)) => Primitive::new(operation, algorithm, parameters),
        None => Primitive::new(operation, "rsa", rsa_name(rsa_key)),
    }
}

/// The RSAPublicKey's (RFC 8017 appendix A.1.1) name in suites.
fn rsa_name(public_key: &[u8]) -> &'static str {
    let bits = rsa_modulus(public_key).map_or(0, |modulus| {
        let significant = modulus.iter().skip_while(|byte| **byte == 0);
        let (bytes, first) = (significant.clone().count(), significant.copied().next().unwrap_or(0));
        (bytes * 8).saturating_sub(first.leading_zeros() as usize)
    });
    let small = public_key.ends_with(&[2, 1, 3]);
    match (bits, small) {
        (2048, false) => "rsa2048",
        (3072, false) => "rsa3072",
        (4096, false) => "rsa4096",
        (_, true) => intern(&format!("rsa{bits}e3")),
        _ => intern(&format!("rsa{bits}")),
    }
}

fn rsa_modulus(public_key: &[u8]) -> Option<&[u8]> {
    let (sequence, _) = der(public_key)?;
    let (modulus, _) = der(sequence)?;
    Some(modulus)
}

/// The content of the first DER element in `bytes`, and the bytes after it.
fn der(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[derive(Debug)]
struct Verifier {
    inner: &'static dyn SignatureVerificationAlgorithm,
}

impl SignatureVerificationAlgorithm for Verifier {
    fn verify_signature(&self, key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        if !recorder::is_recording() {
            return self.inner.verify_signature(key, message, signature);
        }
        let id = self.inner.public_key_alg_id();
        let primitive = signature_primitive(Operation::Verify, |one| *one == id, key);
        recorder::timed(primitive, 0, || self.inner.verify_signature(key, message, signature))
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.inner.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.inner.signature_alg_id()
    }
}

fn verifiers(algorithms: WebPkiSupportedAlgorithms) -> WebPkiSupportedAlgorithms {
    type Algorithms = [&'static dyn SignatureVerificationAlgorithm];
    let wrapped = |inner: &Algorithms| -> &'static Algorithms {
        let each =
            inner.iter().map(|inner| leak(Verifier { inner: *inner }) as &dyn SignatureVerificationAlgorithm);
        Box::leak(each.collect::<Box<_>>())
    };
    let mapping = algorithms.mapping.iter().map(|(scheme, inner)| (*scheme, wrapped(inner)));
    WebPkiSupportedAlgorithms {
        all: wrapped(algorithms.all),
        mapping: Box::leak(mapping.collect::<Box<_>>()),
    }
}

// -------------------------------------------------------------------------------------------- cipher suites

/// The names of a suite's symmetric operations.
#[derive(Clone, Copy)]
struct Names {
    cipher: &'static str,
    digest: &'static str,
    mac: &'static str,
    hkdf: &'static str,
    prf: &'static str,
}

fn names(suite: CipherSuite, hash: HashAlgorithm) -> Option<Names> {
    let cipher = match parts(suite)?.1 {
        TlsCipher::Aes128Gcm => "aes-128-gcm",
        TlsCipher::Aes256Gcm => "aes-256-gcm",
        _ => "chacha20-poly1305",
    };
    let (digest, mac, hkdf, prf) = match hash {
        HashAlgorithm::SHA256 => ("sha256", "hmac-sha256", "hkdf-sha256", "tls1-prf-sha256"),
        HashAlgorithm::SHA384 => ("sha384", "hmac-sha384", "hkdf-sha384", "tls1-prf-sha384"),
        _ => return None,
    };
    Some(Names { cipher, digest, mac, hkdf, prf })
}

fn cipher_suite(suite: SupportedCipherSuite) -> Option<SupportedCipherSuite> {
    let common = match suite {
        SupportedCipherSuite::Tls12(inner) => &inner.common,
        SupportedCipherSuite::Tls13(inner) => &inner.common,
    };
    let names = names(common.suite, common.hash_provider.algorithm())?;
    let common = CipherSuiteCommon {
        suite: common.suite,
        hash_provider: leak(TimedHash { inner: common.hash_provider, names }),
        confidentiality_limit: common.confidentiality_limit,
    };
    Some(match suite {
        SupportedCipherSuite::Tls12(inner) => SupportedCipherSuite::Tls12(leak(Tls12CipherSuite {
            common,
            prf_provider: leak(TimedPrf { inner: inner.prf_provider, names }),
            kx: inner.kx,
            sign: inner.sign,
            aead_alg: leak(Tls12Aead { inner: inner.aead_alg, names }),
        })),
        SupportedCipherSuite::Tls13(inner) => SupportedCipherSuite::Tls13(leak(Tls13CipherSuite {
            common,
            hkdf_provider: leak(TimedHkdf { inner: inner.hkdf_provider, names }),
            aead_alg: leak(Tls13Aead { inner: inner.aead_alg, names }),
            quic: None,
        })),
    })
}

// ---------------------------------------------------------------------------------------------------- hashes

struct TimedHash {
    inner: &'static dyn Hash,
    names: Names,
}

impl Hash for TimedHash {
    fn start(&self) -> Box<dyn Context> {
        Box::new(TimedContext { inner: self.inner.start(), names: self.names, transcript: true })
    }

    fn hash(&self, data: &[u8]) -> Output {
        recorder::timed(symmetric(Operation::Digest, self.names.digest), length(data.len()), || {
            self.inner.hash(data)
        })
    }

    fn output_len(&self) -> usize {
        self.inner.output_len()
    }

    fn algorithm(&self) -> HashAlgorithm {
        self.inner.algorithm()
    }
}

struct TimedContext {
    inner: Box<dyn Context>,
    names: Names,
    /// The input consists of handshake messages; a fork's input is tentative.
    transcript: bool,
}

impl Context for TimedContext {
    fn fork_finish(&self) -> Output {
        recorder::timed(symmetric(Operation::Digest, self.names.digest), 0, || self.inner.fork_finish())
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Self { inner: self.inner.fork(), names: self.names, transcript: false })
    }

    fn finish(self: Box<Self>) -> Output {
        recorder::timed(symmetric(Operation::Digest, self.names.digest), 0, || self.inner.finish())
    }

    fn update(&mut self, data: &[u8]) {
        if !recorder::is_recording() || data.is_empty() {
            return self.inner.update(data);
        }
        let start = recorder::ticks();
        self.inner.update(data);
        let digest = symmetric(Operation::Digest, self.names.digest);
        recorder::operation(digest, start, recorder::ticks(), length(data.len()), false);
        if self.transcript {
            update_boundaries(|boundaries| boundaries.hashed(data));
        }
    }
}

// ---------------------------------------------------------------------------------------------- key schedule

struct TimedHkdf {
    inner: &'static dyn Hkdf,
    names: Names,
}

impl TimedHkdf {
    fn extract(&self, bytes: usize, work: impl FnOnce() -> Box<dyn HkdfExpander>) -> Box<dyn HkdfExpander> {
        let inner = recorder::timed(symmetric(Operation::Prf, self.names.hkdf), length(bytes), work);
        Box::new(Expander { inner, names: self.names })
    }
}

impl Hkdf for TimedHkdf {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.extract(0, || self.inner.extract_from_zero_ikm(salt))
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.extract(secret.len(), || self.inner.extract_from_secret(salt, secret))
    }

    // `extract_from_kx_shared_secret` keeps its default: it completes the exchange, which is timed, and extracts.

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Expander { inner: self.inner.expander_for_okm(okm), names: self.names })
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        update_boundaries(|boundaries| {
            // The check of the peer's Finished begins here.
            if boundaries.next_is(MessageName::Finished) {
                recorder::boundary();
            }
        });
        recorder::timed(symmetric(Operation::Mac, self.names.mac), length(message.len()), || {
            self.inner.hmac_sign(key, message)
        })
    }
}

struct Expander {
    inner: Box<dyn HkdfExpander>,
    names: Names,
}

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        let bytes = length(output.len());
        recorder::timed(symmetric(Operation::Prf, self.names.hkdf), bytes, || {
            self.inner.expand_slice(info, output)
        })
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let bytes = length(self.inner.hash_len());
        recorder::timed(symmetric(Operation::Prf, self.names.hkdf), bytes, || self.inner.expand_block(info))
    }

    fn hash_len(&self) -> usize {
        self.inner.hash_len()
    }
}

struct TimedPrf {
    inner: &'static dyn Prf,
    names: Names,
}

impl Prf for TimedPrf {
    fn for_key_exchange(
        &self,
        output: &mut [u8; 48],
        exchange: Box<dyn ActiveKeyExchange>,
        peer: &[u8],
        label: &[u8],
        seed: &[u8],
    ) -> Result<(), Error> {
        // In two steps, so that the derivation is timed separately from the PRF.
        let secret = exchange.complete_for_tls_version(peer, &rustls::version::TLS12)?;
        recorder::timed(symmetric(Operation::Prf, self.names.prf), length(output.len()), || {
            self.inner.for_secret(output, secret.secret_bytes(), label, seed);
        });
        Ok(())
    }

    fn for_secret(&self, output: &mut [u8], secret: &[u8], label: &[u8], seed: &[u8]) {
        update_boundaries(|boundaries| boundaries.prf(label));
        let bytes = length(output.len());
        recorder::timed(symmetric(Operation::Prf, self.names.prf), bytes, || {
            self.inner.for_secret(output, secret, label, seed);
        });
    }
}

// ------------------------------------------------------------------------------------------------ protection

struct Tls13Aead {
    inner: &'static dyn Tls13AeadAlgorithm,
    names: Names,
}

impl Tls13AeadAlgorithm for Tls13Aead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        let inner = self.inner.encrypter(key, iv);
        update_boundaries(Boundaries::write_keys);
        Box::new(Encrypter { inner, names: self.names })
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Decrypter { inner: self.inner.decrypter(key, iv), names: self.names })
    }

    fn key_len(&self) -> usize {
        self.inner.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.inner.extract_keys(key, iv)
    }
}

struct Tls12Aead {
    inner: &'static dyn Tls12AeadAlgorithm,
    names: Names,
}

impl Tls12AeadAlgorithm for Tls12Aead {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(Encrypter { inner: self.inner.encrypter(key, iv, extra), names: self.names })
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Box::new(Decrypter { inner: self.inner.decrypter(key, iv), names: self.names })
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        self.inner.key_block_shape()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.inner.extract_keys(key, iv, explicit)
    }
}

struct Encrypter {
    inner: Box<dyn MessageEncrypter>,
    names: Names,
}

impl MessageEncrypter for Encrypter {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let bytes = message.payload.len();
        let handshake = message.typ == ContentType::Handshake;
        update_boundaries(|boundaries| boundaries.protected(handshake.then_some(bytes)));
        recorder::timed(symmetric(Operation::Cipher, self.names.cipher), length(bytes), || {
            self.inner.encrypt(message, sequence)
        })
    }

    fn encrypted_payload_len(&self, payload: usize) -> usize {
        self.inner.encrypted_payload_len(payload)
    }
}

struct Decrypter {
    inner: Box<dyn MessageDecrypter>,
    names: Names,
}

impl MessageDecrypter for Decrypter {
    fn decrypt<'a>(
        &mut self,
        message: InboundOpaqueMessage<'a>,
        sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let bytes = length(message.payload.len());
        let plain = recorder::timed(symmetric(Operation::Cipher, self.names.cipher), bytes, || {
            self.inner.decrypt(message, sequence)
        })?;
        if plain.typ == ContentType::Handshake {
            update_boundaries(|boundaries| boundaries.read(plain.payload));
        }
        Ok(plain)
    }
}
