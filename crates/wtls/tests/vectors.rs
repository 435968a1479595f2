//! The engine reproduces worked examples byte for byte.

#![allow(clippy::unwrap_used)]

mod support;

use openssl::bn::{BigNum, BigNumContext};
use openssl::rsa::Rsa;
use shakedown_wtls::certificate::{Certificate, CertifiedKey, CertifiedPoint, TrustAnchor};
use shakedown_wtls::codec::Codec;
use shakedown_wtls::crypto::{Group, Provider, PublicKeyRef, Random};
use shakedown_wtls::key_schedule::*;
use shakedown_wtls::protection::{RecordDecryptor, RecordEncryptor};
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey};
use shakedown_wtls::record::Records;
use shakedown_wtls::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use support::vectors as v;
use support::*;

/// A random source that returns predetermined bytes.
struct Scripted(VecDeque<u8>);

impl Scripted {
    fn new(bytes: impl IntoIterator<Item = u8>) -> Self {
        Self(bytes.into_iter().collect())
    }
}

impl Random for Scripted {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = self.0.pop_front().expect("the script is long enough");
        }
    }
}

fn cx<'a>(unix_s: u64, random: &'a mut dyn Random, observer: &'a mut ()) -> Context<'a, OpenSsl> {
    let now = Time { elapsed: Duration::ZERO, unix_s };
    Context { now, provider: &PROVIDER, random, observer }
}

const HELLO_UNIX_S: u64 = 0x3AE5_C2A0;

fn randoms() -> Randoms {
    let random = |time: u32, first: u8| {
        let mut random = [0; 16];
        random[..4].copy_from_slice(&time.to_be_bytes());
        for (byte, value) in random[4..].iter_mut().zip(first..) {
            *byte = value;
        }
        random
    };
    Randoms { client: random(0x3AE5_C2A0, 0xA0), server: random(0x3AE5_C2A1, 0xB0) }
}

fn master(text: &str) -> MasterSecret {
    MasterSecret::from_bytes(unhex(text).try_into().unwrap())
}

fn ca_key() -> CertifiedKey {
    CertifiedKey::Rsa(EncodedRsaKey::new(&[1, 0, 1], &unhex(v::CA_MODULUS)).unwrap())
}

fn full_handshake_client() -> ClientConfig<OpenSsl> {
    let key_hash = Identifier::KeyHash(unhex("9ec5d13a439cef91a848025217e20f59f45b333b").try_into().unwrap());
    let curve_7 = ParameterSpecifier::Index(7);
    let mut config = ClientConfig::new(vec![
        KeyExchangeId::new(KeyExchangeSuite::Rsa, ParameterSpecifier::NONE, Identifier::Null),
        KeyExchangeId::new(KeyExchangeSuite::EcdhEcdsa, curve_7, key_hash),
    ]);
    let root = Identifier::text("Test Root; Test Org; US");
    config.anchors = vec![TrustAnchor::new(&*PROVIDER, root, &ca_key(), false).unwrap()];
    config.cipher_suites = vec![
        CipherSuite::RC5_SHA,
        CipherSuite { bulk: BulkCipher::TripleDesCbcEde, mac: MacAlgorithm::Sha80 },
        CipherSuite { bulk: BulkCipher::DesCbc, mac: MacAlgorithm::Sha },
    ];
    config.key_refresh = KeyRefresh(3);
    config
}

#[test]
fn client_reproduces_the_worked_handshake() {
    let script = (0xA0..=0xAB).chain(0xC0..=0xD2).chain(0x01..=0x29);
    let mut random = Scripted::new(script);
    let mut observer = ();
    let mut cx = cx(HELLO_UNIX_S, &mut random, &mut observer);
    let mut client = Client::new(Arc::new(full_handshake_client()), None, &mut cx);
    assert_eq!(client.poll_transmit().unwrap(), unhex(v::CLIENT_HELLO));
    client.handle_input(&mut cx, &unhex(v::SERVER_FLIGHT));
    assert_eq!(client.poll_transmit().unwrap(), unhex(v::CLIENT_FLIGHT));
    client.handle_input(&mut cx, &unhex(v::SERVER_FINISH));
    let Some(Event::Established(established)) = client.poll_event() else { panic!() };
    assert_eq!(established.session_id.as_bytes(), unhex("5e55104e"));
    assert_eq!(client.session().unwrap().master.as_bytes()[..], unhex(v::MASTER_RSA));

    client.write(&mut cx, b"WTLS test").unwrap();
    assert_eq!(client.poll_transmit().unwrap(), unhex(v::CLIENT_DATA_1));
    for _ in 2..9 {
        client.write(&mut cx, b"in between").unwrap();
        client.poll_transmit().unwrap();
    }
    client.write(&mut cx, b"WTLS test").unwrap();
    assert_eq!(client.poll_transmit().unwrap(), unhex(v::CLIENT_DATA_9));
    client.handle_input(&mut cx, &unhex(v::SERVER_DATA_1));
    assert_eq!(client.poll_event(), Some(Event::Data(b"WTLS reply".to_vec())));

    client.handle_input(&mut cx, &unhex(v::ALERT_BAD_RECORD_MAC));
    let warning = Alert::warning(AlertDescription::BadRecordMac);
    assert_eq!(client.poll_event(), Some(Event::AlertReceived(warning)));
    client.handle_input(&mut cx, &unhex(v::ALERT_NO_CONNECTION));
    let end = Alert::critical(AlertDescription::NoConnection);
    assert_eq!(client.poll_event(), Some(Event::AlertReceived(end)));
    assert_eq!(client.poll_event(), None);
    assert!(client.is_open(), "in clear text, it may be anybody's");
    assert!(client.session().is_some(), "the session can still be resumed");
}

#[test]
fn server_sends_no_connection_alert_to_an_unknown_client() {
    let config = ServerConfig::<OpenSsl>::new(vec![]);
    let mut server = ServerConnection::new(Arc::new(config));
    let mut random = Scripted::new([]);
    server.handle_input(&mut cx(0, &mut random, &mut ()), &unhex(v::CLIENT_DATA_1));
    assert_eq!(server.poll_transmit().unwrap(), unhex(v::ALERT_NO_CONNECTION));
}

fn resumed_session(policy: PolicyId) -> Session {
    Session {
        id: SessionId::from_bytes("session id", &unhex("045e55104e")).unwrap(),
        key_exchange: KeyExchangeSuite::Rsa,
        cipher_suite: CipherSuite::RC5_SHA,
        master: master(v::MASTER_RSA),
        peer: None,
        policy,
        made_unix_s: 0x3AE5_C300,
    }
}

#[test]
fn a_client_resumes_the_worked_session() {
    let mut config = ClientConfig::new(Vec::new());
    config.key_refresh = KeyRefresh(3);
    let mut random = Scripted::new(0x10..=0x1B);
    let mut observer = ();
    let mut cx = cx(0x3AE5_C300, &mut random, &mut observer);
    let session = resumed_session(config.policy());
    let mut client = Client::new(Arc::new(config), Some(session), &mut cx);
    assert_eq!(client.poll_transmit().unwrap(), unhex(v::RESUME_CLIENT_HELLO));
    client.handle_input(&mut cx, &unhex(v::RESUME_SERVER_FLIGHT));
    let finish = unhex(v::RESUME_CLIENT_FINISH);
    assert_eq!(client.poll_transmit().unwrap(), finish[..51]);
    // Data is sent after the same records until the server has responded.
    client.write(&mut cx, b"WTLS test").unwrap();
    assert_eq!(client.poll_transmit().unwrap(), finish);
}

#[test]
fn a_server_resumes_the_worked_session() {
    let sessions = MemorySessions::new(1);
    let mut config = ServerConfig::new(vec![KeyExchangeSuite::Rsa]);
    sessions.insert(resumed_session(config.policy()));
    config.sessions = Arc::new(sessions);
    let mut random = Scripted::new(0x20..=0x2B);
    let mut observer = ();
    let mut cx = cx(0x3AE5_C301, &mut random, &mut observer);
    let mut server = ServerConnection::new(Arc::new(config));
    server.handle_input(&mut cx, &unhex(v::RESUME_CLIENT_HELLO));
    assert_eq!(server.poll_transmit().unwrap(), unhex(v::RESUME_SERVER_FLIGHT));
    server.handle_input(&mut cx, &unhex(v::RESUME_CLIENT_FINISH));
    assert!(matches!(server.poll_event(), Some(Event::Established(_))));
    assert_eq!(server.poll_event(), Some(Event::Data(b"WTLS test".to_vec())));
}

#[test]
fn records_match_the_vectors_for_every_cipher_and_mac() {
    let plaintext = b"WTLS test";
    for vector in v::SUITES {
        let suite = CipherSuite {
            bulk: BulkCipher::from_number(vector.bulk).unwrap(),
            mac: MacAlgorithm::from_number(vector.mac).unwrap(),
        };
        let secret = TrafficSecret::new(
            &master(v::MASTER_RSA),
            &randoms(),
            Direction::ClientToServer,
            suite,
            KeyRefresh(3),
        );
        let keys = secret.record_keys(&*PROVIDER, 9);
        assert_eq!(keys.interval_start, 8);
        assert_eq!(keys.key(), unhex(vector.key), "{suite}");
        if suite.bulk != BulkCipher::Null {
            assert_eq!(keys.record_iv(0)[..], unhex(vector.iv), "{suite}");
        }
        let header = [&[0, 9, 0xE4, 0, 9][..], plaintext];
        if suite.mac != MacAlgorithm::Sha0 {
            let mac = PROVIDER.hmac(suite.hash(), keys.mac_secret(), &header);
            assert_eq!(mac[..suite.mac.mac_bytes()], unhex(vector.mac_value), "{suite}");
        }
        let mut encryptor = RecordEncryptor::new(&*PROVIDER, secret.clone());
        for _ in 0..9 {
            encryptor.take_number().unwrap();
        }
        let mut datagram = Vec::new();
        let content = ContentType::ApplicationData;
        encryptor.encrypt(&*PROVIDER, &mut datagram, content, plaintext, true).unwrap();
        let fragment = unhex(vector.fragment);
        let header = [0xE4, 0, 9, 0, fragment.len() as u8];
        assert_eq!(datagram, [&header[..], &fragment].concat(), "{suite}");
        let mut opened = Vec::new();
        let record = Records::new(&datagram).next().unwrap().unwrap();
        RecordDecryptor::new(&*PROVIDER, secret).decrypt(&*PROVIDER, &record, &mut opened).unwrap();
        assert_eq!(opened, plaintext);
    }
    assert_eq!(v::SUITES.len(), 18);
}

#[test]
fn prf_matches_the_vectors_for_both_hashes() {
    let secret: Vec<u8> = (0..0x14).collect();
    let seed: Vec<u8> = (0..0x20).collect();
    for (hash, expected) in [(HashAlgorithm::Sha1, v::PRF_SHA1), (HashAlgorithm::Md5, v::PRF_MD5)] {
        let mut out = [0; 48];
        PROVIDER.prf(hash, &secret, "test label", &[&seed[..7], &seed[7..]], &mut out);
        assert_eq!(out[..], unhex(expected));
    }
    let Randoms { client, server } = randoms();
    let mut iv = [0; 8];
    let seed = [&[0, 0][..], &client, &server];
    PROVIDER.prf(HashAlgorithm::Sha1, &[], "client write IV", &seed, &mut iv);
    assert_eq!(iv[..], unhex(v::EXPORT_IV));
}

#[test]
fn master_secrets_match_the_vectors() {
    let of =
        |pre_master: PreMasterSecret, hash| *pre_master.into_master(&*PROVIDER, hash, &randoms()).as_bytes();
    let sha1 = HashAlgorithm::Sha1;
    assert_eq!(of(PreMasterSecret::null(), sha1)[..], unhex(v::MASTER_NULL));
    let shared = PreMasterSecret::shared(b"0123456789abcdef");
    assert_eq!(of(shared, sha1)[..], unhex(v::MASTER_SHARED));
    let agreed = PreMasterSecret::agreed(unhex(v::ECDH_Z).into());
    assert_eq!(of(agreed, sha1)[..], unhex(v::MASTER_ECDH));
    let secret: Vec<u8> = std::iter::once(1).chain(0xC0..=0xD2).collect();
    let secret = secret.try_into().unwrap();
    let key = EncodedRsaKey::new(&[1, 0, 1], &unhex(v::SERVER_MODULUS)).unwrap();
    assert_eq!(of(PreMasterSecret::rsa(&secret, &key), sha1)[..], unhex(v::MASTER_RSA));
    let md5 = of(PreMasterSecret::rsa(&secret, &key), HashAlgorithm::Md5);
    assert_eq!(md5[..], unhex(v::MASTER_RSA_MD5));
}

/// A private key from modulus and exponents: a square root of 1 other than 1 and -1 has a factor in common with the
/// modulus.
fn rsa_key(modulus: &str, private_exponent: &str) -> PrivateKey {
    let number = |text| BigNum::from_slice(&unhex(text)).unwrap();
    let (n, d, one) = (number(modulus), number(private_exponent), BigNum::from_u32(1).unwrap());
    let (e, last, mut cx) = (BigNum::from_u32(65_537).unwrap(), &n - &one, BigNumContext::new().unwrap());
    let mut odd = &(&e * &d) - &one;
    while !odd.is_bit_set(0) {
        odd = &odd >> 1;
    }
    let (mut root, mut p) = (BigNum::new().unwrap(), BigNum::new().unwrap());
    for base in [2, 3, 5, 7, 11, 13, 17, 19] {
        root.mod_exp(&BigNum::from_u32(base).unwrap(), &odd, &n, &mut cx).unwrap();
        while root != one && root != last && p <= one {
            p.gcd(&(&root - &one), &n, &mut cx).unwrap();
            let mut square = BigNum::new().unwrap();
            square.mod_sqr(&root, &n, &mut cx).unwrap();
            root = square;
        }
    }
    let (q, mut inverse) = (&n / &p, BigNum::new().unwrap());
    inverse.mod_inverse(&q, &p, &mut cx).unwrap();
    let (dp, dq) = (&d % &(&p - &one), &d % &(&q - &one));
    let key = Rsa::from_private_components(n, e, d, p, q, dp, dq, inverse).unwrap();
    PROVIDER.rsa_key_from_der(&key.private_key_to_der().unwrap()).unwrap()
}

#[test]
fn server_key_decrypts_only_the_encrypted_secret() {
    let key = rsa_key(v::SERVER_MODULUS, v::SERVER_PRIVATE_EXPONENT);
    let fallback = [0xFF; 20];
    let mut ciphertext = unhex(v::CLIENT_FLIGHT)[10..74].to_vec();
    let secret = PROVIDER.rsa_decrypt(&key, &ciphertext, 1, &fallback).unwrap();
    assert_eq!(secret[..], [&[1][..], &(0xC0..=0xD2).collect::<Vec<u8>>()].concat());
    assert_eq!(*PROVIDER.rsa_decrypt(&key, &ciphertext, 2, &fallback).unwrap(), fallback);
    ciphertext[63] ^= 1;
    assert_eq!(*PROVIDER.rsa_decrypt(&key, &ciphertext, 1, &fallback).unwrap(), fallback);
    // A number that is not below the modulus: anyone can see that.
    ciphertext[0] = 0xFF;
    assert!(PROVIDER.rsa_decrypt(&key, &ciphertext, 1, &fallback).is_err());
    assert!(PROVIDER.rsa_decrypt(&key, &ciphertext[1..], 1, &fallback).is_err());
}

#[test]
fn authority_signature_covers_the_bare_hash() {
    let key = rsa_key(v::CA_MODULUS, v::CA_PRIVATE_EXPONENT);
    let flight = unhex(v::SERVER_FLIGHT);
    // After ServerHello (36 bytes), the record header (5), that of the message (3), the length of
    // the list (2) and the format (1).
    let certificate = Certificate::decode(&mut codec::Reader::new(&flight[36 + 5 + 3 + 2 + 1..])).unwrap();
    let hash = PROVIDER.digest(HashAlgorithm::Sha1, &[certificate.signed_part()]);
    assert_eq!(hash[..], unhex(v::CERTIFICATE_HASH));
    assert_eq!(certificate.signed_part().len(), 144);
    assert_eq!(PROVIDER.rsa_sign(&key, &hash).unwrap(), certificate.signature());
}

#[test]
fn key_agreement_on_curve_7_matches_the_vector() {
    let curve = Curve::Secp160r1;
    let scalar = |first: u8| (first..first + 20).collect::<Vec<u8>>();
    let (a, b) = (scalar(0x01), scalar(0x11));
    let points = [v::ECDH_A, v::ECDH_B].map(unhex);
    for (own, peer, point) in [(&a, &points[1], &points[0]), (&b, &points[0], &points[1])] {
        let key = PROVIDER.ec_key(curve, own).unwrap();
        assert_eq!(PROVIDER.public_value(&key, PointForm::Compressed).unwrap(), *point);
        let peer = PROVIDER.import(PublicKeyRef::Ec { curve, point: peer }).unwrap();
        assert_eq!(PROVIDER.derive(&key, &peer).unwrap()[..], unhex(v::ECDH_Z));
    }
}

#[test]
fn signature_on_curve_7_matches_the_vector() {
    let key = PROVIDER.ec_key(Curve::Secp160r1, &(0x01..=0x14).collect::<Vec<u8>>()).unwrap();
    let hash = PROVIDER.digest(HashAlgorithm::Sha1, &[b"abc"]);
    let mut nonce = Scripted::new(std::iter::once(0).chain(0x21..=0x34));
    let signature = PROVIDER.ecdsa_sign(&key, &hash, &mut nonce).unwrap();
    assert_eq!(signature, [unhex(v::ECDSA_R), unhex(v::ECDSA_S)].concat());
}

#[test]
fn certificate_with_an_ecdh_key_matches_the_vector() {
    let certificate = Certificate::from_bytes("certificate", &unhex(v::EC_CERTIFICATE)).unwrap();
    let fields = certificate.fields();
    assert_eq!(fields.issuer.as_text(), Some("EC Root; Test Org; US"));
    assert_eq!(fields.subject.as_text(), Some("Gateway; Test Org; US; gw.test"));
    let point = |point| CertifiedPoint { parameters: ParameterSpecifier::Index(7), point };
    assert_eq!(fields.public_key, CertifiedKey::Ecdh(point(unhex(v::ECDH_A))));
    let hash = fields.public_key.key_hash(&*PROVIDER, false).unwrap();
    let x = &unhex(v::ECDH_A)[1..];
    assert_eq!(hash[..], PROVIDER.digest(HashAlgorithm::Sha1, &[x])[..]);

    let ca = CertifiedKey::Ecdsa(point(unhex(v::EC_CA_POINT)));
    let anchor = TrustAnchor::new(&*PROVIDER, fields.issuer.clone(), &ca, false).unwrap();
    let policy = certificate::ChainPolicy {
        holder: certificate::Holder::Server,
        family: KeyExchangeFamily::EcdhEcdsa,
        now_unix_s: HELLO_UNIX_S,
        private_curves: false,
        name: Some("gw.test"),
    };
    let verify = |certificate: Certificate| {
        certificate::verify_chain(&*PROVIDER, &[certificate.into()], std::slice::from_ref(&anchor), &policy)
    };
    assert!(verify(certificate.clone()).is_ok());
    let mut forged = certificate.as_bytes().to_vec();
    *forged.last_mut().unwrap() ^= 1;
    assert!(verify(Certificate::from_bytes("certificate", &forged).unwrap()).is_err());
}

#[test]
fn rc5_matches_rfc_2040() {
    let key = unhex("01020304050607081020304050607080");
    let iv = [1, 2, 3, 4, 5, 6, 7, 8];
    for (cipher, expected) in
        [(BulkCipher::Rc5Cbc56, "294ddb46b3278d60"), (BulkCipher::Rc5Cbc, "dad6bda9dfe8f7e8")]
    {
        let mut block = unhex("1020304050607080");
        PROVIDER.cbc_encrypt(cipher, &key, &iv, &mut block);
        assert_eq!(block, unhex(expected), "{cipher}");
        PROVIDER.cbc_decrypt(cipher, &key, &iv, &mut block);
        assert_eq!(block, unhex("1020304050607080"), "{cipher}");
    }
}

/// With one hash, OpenSSL's TLS1-PRF is P_hash over label and seed, which is the PRF of WTLS.
#[test]
fn prf_matches_openssl_with_one_hash() {
    let mut random = random();
    for (hash, name) in [(HashAlgorithm::Sha1, c"SHA1"), (HashAlgorithm::Md5, c"MD5")] {
        for length in [1, 12, 20, 44, 52, 100, 300] {
            let mut secret = vec![0; 1 + length % 90];
            let mut seed = vec![0; 32];
            random.fill(&mut secret);
            random.fill(&mut seed);
            let mut ours = vec![0; length];
            PROVIDER.prf(hash, &secret, "master secret", &[&seed], &mut ours);
            let seed = [&b"master secret"[..], &seed].concat();
            let theirs = openssl_tls1_prf(name, &secret, &seed, length);
            assert_eq!(ours, theirs, "{hash:?} {length}");
        }
    }
}

fn openssl_tls1_prf(hash: &std::ffi::CStr, secret: &[u8], seed: &[u8], length: usize) -> Vec<u8> {
    use openssl_sys::*;
    use std::ffi::c_char;
    unsafe extern "C" {
        fn OSSL_PARAM_construct_utf8_string(
            key: *const c_char,
            text: *mut c_char,
            length: usize,
        ) -> OSSL_PARAM;
    }
    let mut out = vec![0; length];
    let (mut hash, mut secret, mut seed) =
        (hash.to_bytes_with_nul().to_vec(), secret.to_vec(), seed.to_vec());
    // SAFETY: every pointer is valid for its length and outlives the calls, which write only to `out`; the objects
    // are freed once.
    unsafe {
        let parameters = [
            OSSL_PARAM_construct_utf8_string(c"digest".as_ptr(), hash.as_mut_ptr().cast(), 0),
            OSSL_PARAM_construct_octet_string(c"secret".as_ptr(), secret.as_mut_ptr().cast(), secret.len()),
            OSSL_PARAM_construct_octet_string(c"seed".as_ptr(), seed.as_mut_ptr().cast(), seed.len()),
            OSSL_PARAM_construct_end(),
        ];
        let kdf = EVP_KDF_fetch(std::ptr::null_mut(), c"TLS1-PRF".as_ptr(), std::ptr::null());
        let context = EVP_KDF_CTX_new(kdf);
        assert_eq!(EVP_KDF_derive(context, out.as_mut_ptr(), length, parameters.as_ptr()), 1);
        EVP_KDF_CTX_free(context);
        EVP_KDF_free(kdf);
    }
    out
}

#[test]
fn dh_groups_agree_and_have_the_specified_order() {
    use openssl::bn::{BigNum, BigNumContext};
    let orders = [
        (DhGroup::group_1(), "DD0838E2DFED712C9A9CD91A874143A0C5CBFE41"),
        (DhGroup::group_2(), "C5E121744718078DB3291BF8C13E28B3BC3092B3"),
    ];
    for (group, order) in orders {
        let number = |bytes: &[u8]| BigNum::from_slice(bytes).unwrap();
        let mut power = BigNum::new().unwrap();
        let mut context = BigNumContext::new().unwrap();
        let (generator, prime) = (number(&group.generator), number(&group.prime));
        power.mod_exp(&generator, &number(&unhex(order)), &prime, &mut context).unwrap();
        assert_eq!(power.to_vec(), [1]);
        let (a, b) = (
            PROVIDER.generate(Group::Dh(&group), &mut Seeded::new(1)).unwrap(),
            PROVIDER.generate(Group::Dh(&group), &mut Seeded::new(2)).unwrap(),
        );
        let public = |key| {
            let value = PROVIDER.public_value(key, PointForm::Compressed).unwrap();
            PROVIDER.import(PublicKeyRef::Dh { group: &group, value: &value }).unwrap()
        };
        let secret = PROVIDER.derive(&a, &public(&b)).unwrap();
        assert_eq!(secret, PROVIDER.derive(&b, &public(&a)).unwrap());
        assert_eq!(secret.len(), group.prime.len());
    }
}
