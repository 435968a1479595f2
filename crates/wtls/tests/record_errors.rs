//! Records that cannot be decrypted: an observer sees the same response, whatever is wrong with them.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::crypto::SignatureHash;
use shakedown_wtls::crypto::*;
use shakedown_wtls::key_schedule::*;
use shakedown_wtls::protection::{RecordDecryptor, RecordEncryptor, RecordError};
use shakedown_wtls::provider::openssl::{PrivateKey, PublicKey};
use shakedown_wtls::record::{Record, RecordType};
use shakedown_wtls::*;
use std::cell::Cell;
use std::sync::Arc;
use support::*;
use zeroize::Zeroizing;

/// Counts hash compressions: the work that an attacker can observe by timing.
struct Counting {
    compressions: Cell<usize>,
}

impl Counting {
    fn count(&self, parts: &[&[u8]], prefix: usize) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let blocks = (prefix + length + 9).div_ceil(64);
        self.compressions.set(self.compressions.get() + blocks);
    }
}

impl Provider for Counting {
    type PublicKey = PublicKey;
    type PrivateKey = PrivateKey;

    fn digest(&self, hash: HashAlgorithm, parts: &[&[u8]]) -> Digest {
        self.count(parts, 0);
        PROVIDER.digest(hash, parts)
    }
    fn signature_digest(&self, _: SignatureHash, _: &[u8]) -> Vec<u8> {
        unreachable!("records need no certificates")
    }
    fn hmac(&self, hash: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Digest {
        self.count(parts, 64);
        PROVIDER.hmac(hash, key, parts)
    }
    fn prf(&self, hash: HashAlgorithm, secret: &[u8], label: &str, seed: &[&[u8]], out: &mut [u8]) {
        PROVIDER.prf(hash, secret, label, seed, out);
    }
    fn cbc_encrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]) {
        PROVIDER.cbc_encrypt(cipher, key, iv, data);
    }
    fn cbc_decrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]) {
        PROVIDER.cbc_decrypt(cipher, key, iv, data);
    }
    fn import(&self, _: PublicKeyRef<'_>) -> Result<PublicKey, CryptoError> {
        unreachable!("records need no public keys")
    }
    fn rsa_encrypt(&self, _: &PublicKey, _: &[u8], _: &mut dyn Random) -> Result<Vec<u8>, CryptoError> {
        unreachable!("records need no public keys")
    }
    fn rsa_decrypt(
        &self,
        _: &PrivateKey,
        _: &[u8],
        _: u8,
        _: &[u8; RSA_SECRET_BYTES],
    ) -> Result<Zeroizing<[u8; RSA_SECRET_BYTES]>, CryptoError> {
        unreachable!("records need no public keys")
    }
    fn rsa_sign(&self, _: &PrivateKey, _: &[u8]) -> Result<Vec<u8>, CryptoError> {
        unreachable!("records need no public keys")
    }
    fn rsa_verify(&self, _: &PublicKey, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        unreachable!("records need no public keys")
    }
    fn ecdsa_sign(&self, _: &PrivateKey, _: &[u8], _: &mut dyn Random) -> Result<Vec<u8>, CryptoError> {
        unreachable!("records need no public keys")
    }
    fn ecdsa_verify(&self, _: &PublicKey, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        unreachable!("records need no public keys")
    }
    fn generate(&self, _: Group<'_>, _: &mut dyn Random) -> Result<PrivateKey, CryptoError> {
        unreachable!("records need no public keys")
    }
    fn public_value(&self, _: &PrivateKey, _: PointForm) -> Result<Vec<u8>, CryptoError> {
        unreachable!("records need no public keys")
    }
    fn derive(&self, _: &PrivateKey, _: &PublicKey) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        unreachable!("records need no public keys")
    }
}

fn secret(suite: CipherSuite) -> TrafficSecret {
    let master = MasterSecret::from_bytes([7; 20]);
    let randoms = Randoms { client: [1; 16], server: [2; 16] };
    TrafficSecret::new(&master, &randoms, Direction::ClientToServer, suite, KeyRefresh(16))
}

const RECORD_TYPE: RecordType = RecordType(0xE4);

/// The encrypted fragment of record 0 with this content and these padding bytes, which may be invalid.
fn forge(suite: CipherSuite, content: &[u8], mac: Option<u8>, padding: &[u8]) -> Vec<u8> {
    forge_as(RECORD_TYPE, 0, suite, content, mac, padding)
}

fn forge_as(
    record_type: RecordType,
    sequence: u16,
    suite: CipherSuite,
    content: &[u8],
    mac: Option<u8>,
    padding: &[u8],
) -> Vec<u8> {
    let keys = secret(suite).record_keys(&*PROVIDER, sequence);
    let length = (content.len() as u16).to_be_bytes();
    let number = sequence.to_be_bytes();
    let header = [number[0], number[1], record_type.0, length[0], length[1]];
    let honest = PROVIDER.hmac(suite.hash(), keys.mac_secret(), &[&header, content]);
    let mut mac_bytes = honest[..suite.mac.mac_bytes()].to_vec();
    if let Some(flip) = mac {
        mac_bytes[0] ^= flip;
    }
    let mut fragment = [content, &mac_bytes, padding].concat();
    assert_eq!(fragment.len() % 8, 0);
    PROVIDER.cbc_encrypt(suite.bulk, keys.key(), &keys.record_iv(sequence), &mut fragment);
    fragment
}

fn open(suite: CipherSuite, fragment: &[u8], distinguish: bool) -> (Result<Vec<u8>, RecordError>, usize) {
    let counting = Counting { compressions: Cell::new(0) };
    let mut decryptor = RecordDecryptor::new(&counting, secret(suite)).distinguishing_padding(distinguish);
    let record = Record { record_type: RECORD_TYPE, sequence: Some(0), fragment, raw: fragment };
    let mut plaintext = Vec::new();
    let result = decryptor.decrypt(&counting, &record, &mut plaintext).map(|()| plaintext);
    (result, counting.compressions.get())
}

fn block_suites() -> impl Iterator<Item = CipherSuite> {
    [BulkCipher::Rc5Cbc, BulkCipher::DesCbc40, BulkCipher::TripleDesCbcEde, BulkCipher::IdeaCbc]
        .into_iter()
        .flat_map(|bulk| MacAlgorithm::ALL.iter().map(move |&mac| CipherSuite { bulk, mac }))
        .filter(|suite| suite.mac != MacAlgorithm::Sha0)
}

#[test]
fn every_valid_padding_is_accepted_at_the_same_cost() {
    for suite in block_suites() {
        let total = 400;
        let mut costs = std::collections::BTreeSet::new();
        for padding in 0..=255u8 {
            let content = vec![9; total - suite.mac.mac_bytes() - 1 - usize::from(padding)];
            let tail = vec![padding; usize::from(padding) + 1];
            let (opened, cost) = open(suite, &forge(suite, &content, None, &tail), false);
            assert_eq!(opened.as_ref(), Ok(&content), "{suite} {padding}");
            costs.insert(cost);
            let (opened, cost) = open(suite, &forge(suite, &content, Some(1), &tail), false);
            assert_eq!(opened, Err(RecordError::BadRecord), "{suite} {padding}");
            costs.insert(cost);
        }
        assert_eq!(costs.len(), 1, "{suite}: {costs:?}");
    }
}

#[test]
fn wrong_padding_and_wrong_mac_have_the_same_error_and_cost() {
    for suite in block_suites() {
        let content = vec![9; 200 - suite.mac.mac_bytes() - 8];
        let cases = [
            (Some(1), [7; 8]),
            (None, [6, 7, 7, 7, 7, 7, 7, 7]),
            (None, [7, 7, 7, 7, 7, 7, 6, 7]),
            (None, [255; 8]),
            (None, [200; 8]),
            (Some(1), [1, 2, 3, 4, 5, 6, 7, 8]),
        ];
        let results = cases.map(|(mac, tail)| open(suite, &forge(suite, &content, mac, &tail), false));
        for result in &results {
            assert_eq!(*result, (Err(RecordError::BadRecord), results[0].1), "{suite}");
        }
        let told = cases.map(|(mac, tail)| open(suite, &forge(suite, &content, mac, &tail), true).0);
        assert_eq!(told[0], Err(RecordError::BadRecord), "{suite}");
        for told in &told[1..] {
            assert_eq!(*told, Err(RecordError::BadPadding), "{suite}");
        }
    }
}

#[test]
fn impossible_lengths_are_refused_before_decryption() {
    let suite = CipherSuite::RC5_SHA;
    for length in [0, 1, 7, 8, 16, 23, 25, 31] {
        let (result, cost) = open(suite, &vec![0; length], false);
        assert_eq!((result, cost), (Err(RecordError::BadLength), 0), "{length}");
    }
    assert_eq!(open(suite, &[0; 24], false).0, Err(RecordError::BadRecord));
}

#[test]
fn records_without_numbers_get_consecutive_numbers() {
    let suite = CipherSuite::RC5_SHA;
    let record_type = RecordType::new(ContentType::ApplicationData, true, false, true);
    let mut decryptor = RecordDecryptor::new(&*PROVIDER, secret(suite));
    for index in 0..20u8 {
        let fragment = forge_as(record_type, index.into(), suite, &[index], None, &[2; 3]);
        let record = Record { record_type, sequence: None, fragment: &fragment, raw: &fragment };
        let mut plaintext = Vec::new();
        decryptor.decrypt(&*PROVIDER, &record, &mut plaintext).unwrap();
        assert_eq!(plaintext, [index]);
    }
}

#[test]
fn records_around_a_key_refresh_may_be_reordered() {
    let suite = CipherSuite::RC5_SHA;
    let master = MasterSecret::from_bytes([7; 20]);
    let randoms = Randoms { client: [1; 16], server: [2; 16] };
    let secret = TrafficSecret::new(&master, &randoms, Direction::ClientToServer, suite, KeyRefresh(2));
    let mut encryptor = RecordEncryptor::new(&*PROVIDER, secret.clone());
    let datagrams: Vec<Vec<u8>> = (0..16u8)
        .map(|index| {
            let mut datagram = Vec::new();
            let content = ContentType::ApplicationData;
            encryptor.encrypt(&*PROVIDER, &mut datagram, content, &[index], true).unwrap();
            datagram
        })
        .collect();
    let mut decryptor = RecordDecryptor::new(&*PROVIDER, secret);
    for index in [4, 3, 5, 0, 8, 7, 15, 1, 9, 2, 6, 14, 10, 13, 11, 12] {
        let record = record::Records::new(&datagrams[index]).next().unwrap().unwrap();
        let mut plaintext = Vec::new();
        decryptor.decrypt(&*PROVIDER, &record, &mut plaintext).unwrap();
        assert_eq!(plaintext, [index as u8]);
        assert_eq!(decryptor.decrypt(&*PROVIDER, &record, &mut plaintext), Err(RecordError::Replayed));
    }
}

/// The alerts that a server sends about two forged records: one with wrong padding, one with a wrong MAC.
fn alerts(distinguish: bool) -> Vec<Alert> {
    let curve = ParameterSpecifier::of_curve(Curve::Wtls8, false);
    let (client, mut server) = anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve));
    server.settings.distinguish_record_errors = distinguish;
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    pair.run();
    pair.client_write(&[0; 3]);
    let datagram = pair.client.poll_transmit().unwrap();
    // In CBC mode, this change of the second to last block changes the padding length in the plaintext.
    let mut padding = datagram.clone();
    let at = padding.len() - 9;
    padding[at] ^= 0x40;
    // A change of the first byte of the ciphertext changes data and MAC, but not the padding.
    let mut mac = datagram.clone();
    mac[5] ^= 0x40;
    pair.deliver_to_server(&padding);
    pair.deliver_to_server(&mac);
    pair.deliver_to_server(&datagram);
    assert_eq!(data(&pair.server_events), [[0; 3]], "the genuine record is still accepted");
    let sent = pair.server_events.iter().filter_map(|event| match event {
        Event::AlertSent(alert) => Some(*alert),
        _ => None,
    });
    sent.collect()
}

#[test]
fn padding_and_mac_errors_share_an_alert_unless_configured() {
    let mac = Alert::warning(AlertDescription::BadRecordMac);
    let padding = Alert::warning(AlertDescription::DecryptionFailed);
    assert_eq!(alerts(false), [mac, mac]);
    assert_eq!(alerts(true), [padding, mac]);
}

#[test]
fn number_of_warnings_about_bad_records_is_limited() {
    let curve = ParameterSpecifier::of_curve(Curve::Wtls8, false);
    let (client, server) = anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve));
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    pair.run();
    for _ in 0..100 {
        pair.deliver_to_server(&[&[0xE4, 0, 1, 0, 24][..], &[0; 24]].concat());
    }
    assert_eq!(std::iter::from_fn(|| pair.server.poll_transmit()).count(), 8);
    assert!(pair.server.is_open());
}
