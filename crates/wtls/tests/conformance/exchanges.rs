//! Key exchanges: invalid RSA blocks, points and values, signatures of other handshakes.

use super::*;

#[test]
fn invalid_rsa_blocks_are_indistinguishable() {
    let configs = of(RSA);
    let key = private_key(RSA, 100);
    let (exponent, modulus) = PROVIDER.rsa_public(&key).unwrap();
    let public = openssl::rsa::Rsa::from_public_components(
        openssl::bn::BigNum::from_slice(&modulus).unwrap(),
        openssl::bn::BigNum::from_slice(&exponent).unwrap(),
    )
    .unwrap();
    let size = modulus.len();
    let good = || -> Vec<u8> {
        let mut block = vec![0xAB; size];
        block[..2].copy_from_slice(&[0, 2]);
        block[size - 21] = 0;
        block[size - 20] = 1;
        block
    };
    let mut blocks = vec![good()];
    let mut with = |at: usize, byte: u8| {
        let mut block = good();
        block[at] = byte;
        blocks.push(block);
    };
    with(0, 1);
    with(1, 0);
    with(1, 1);
    with(2, 0);
    with(9, 0);
    with(40, 0);
    with(size - 21, 1);
    with(size - 22, 0);
    with(size - 20, 0);
    with(size - 20, 2);
    blocks.push([&[0u8, 2][..], &vec![7; size - 2]].concat());
    blocks.push([&[0u8; 1][..], &vec![0; size - 1]].concat());
    let mut seen = BTreeSet::new();
    for block in blocks {
        let mut ciphertext = vec![0; size];
        public.public_encrypt(&block, &mut ciphertext, openssl::rsa::Padding::NONE).unwrap();
        let body = [&(size as u16).to_be_bytes()[..], &ciphertext].concat();
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
        let (error, alert) = script.server_rejects(&datagram);
        seen.insert(format!("{error} {alert}"));
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen.first().unwrap().contains("bad_record_mac (warning)"), "{seen:?}");
    // Anyone can see that a ciphertext is not below the modulus.
    for body in [
        [&(size as u16).to_be_bytes()[..], &vec![0xFF; size]].concat(),
        [&(size as u16 - 1).to_be_bytes()[..], &vec![1; size - 1]].concat(),
        vec![0, 0],
    ] {
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
        let (error, alert) = script.server_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::BadCiphertext));
        assert_eq!(alert, Alert::fatal(D::DecryptError));
    }
}

#[test]
fn points_off_the_curve_or_of_small_order_are_refused() {
    for curve in [Curve::Secp160r1, Curve::Sect163k1, Curve::Sect233k1, Curve::Wtls1] {
        let configs = anonymous(KeyExchangeSuite::EcdhAnon, ParameterSpecifier::of_curve(curve, false));
        let field = curve.field_bytes();
        let mut one = vec![0; field];
        one[field - 1] = 1;
        let points = [
            vec![0],
            [&[4][..], &vec![0; 2 * field]].concat(),
            [&[4][..], &vec![1; 2 * field]].concat(),
            [&[2][..], &vec![0xFF; field]].concat(),
            [&[6][..], &vec![1; 2 * field]].concat(),
            [&[5][..], &vec![1; field]].concat(),
            [&[2][..], &vec![1; field - 1]].concat(),
            [&[2][..], &vec![1; field + 1]].concat(),
        ];
        let mut points = points.to_vec();
        if curve.cofactor() > 1 {
            points.push([&[2][..], &vec![0; field]].concat());
        }
        if curve.cofactor() == 4 {
            points.push([&[2][..], &one].concat());
        }
        for point in points {
            let body = [&[point.len() as u8][..], &point].concat();
            let script = at_server(&configs);
            let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
            let (error, alert) = script.server_rejects(&datagram);
            assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{curve} {point:02x?}");
            assert_eq!(alert, Alert::fatal(D::IllegalParameter));
            let script = at_client(&configs);
            let datagram = with_body(
                &script.answer,
                H::ServerKeyExchange,
                &[&[0, point.len() as u8][..], &point].concat(),
            );
            let (error, alert) = script.client_rejects(&datagram);
            assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{curve} {point:02x?}");
            assert_eq!(alert, Alert::fatal(D::IllegalParameter));
        }
    }
}

#[test]
fn degenerate_diffie_hellman_values_are_refused() {
    let group = DhGroup::group_1();
    let configs = anonymous(KeyExchangeSuite::DhAnon, ParameterSpecifier::Index(1));
    let mut less_one = group.prime.clone();
    *less_one.last_mut().unwrap() -= 1;
    for value in [vec![], vec![0], vec![1], less_one, group.prime.clone(), vec![0xFF; 64], vec![1; 65]] {
        let body = [&(value.len() as u16).to_be_bytes()[..], &value].concat();
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
        let (error, alert) = script.server_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{value:02x?}");
        assert_eq!(alert, Alert::fatal(D::IllegalParameter));
        let script = at_client(&configs);
        let datagram = with_body(&script.answer, H::ServerKeyExchange, &[&[0][..], &body].concat());
        let (error, _) = script.client_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{value:02x?}");
    }
}

#[test]
fn full_length_exponent_stays_below_the_prime() {
    // 2^520 + 2^516 - 1 need not be prime: only its size matters.
    for (first, second) in [(1, 0x0F), (1, 0), (2, 0), (3, 0xFF), (0x80, 0), (0xFF, 0xFF)] {
        let mut prime = vec![0xFF; 66];
        (prime[0], prime[1]) = (first, second);
        let group = Arc::new(DhGroup { number: None, prime, generator: vec![2], exponent_bytes: 66 });
        let mut random = |out: &mut [u8]| out.fill(0xFF);
        let one = PROVIDER.generate(Group::Dh(&group), &mut random).unwrap();
        let other = PROVIDER.generate(Group::Dh(&group), &mut Seeded::new(5)).unwrap();
        let public = |key| {
            let value = PROVIDER.public_value(key, PointForm::Compressed).unwrap();
            PROVIDER.import(crypto::PublicKeyRef::Dh { group: &group, value: &value }).unwrap()
        };
        let secret = PROVIDER.derive(&one, &public(&other)).unwrap();
        assert_eq!(secret, PROVIDER.derive(&other, &public(&one)).unwrap());
    }
}

#[test]
fn certificate_verify_must_match_handshake_and_key() {
    let configs = mutual(RSA);
    let script = at_server(&configs);
    let good = body(&script.last, H::CertificateVerify);
    // The signature of another handshake of the same client.
    let other = {
        let mut pair = Pair::new(&configs.0, &configs.1, None, 2);
        let hello = pair.client.poll_transmit().unwrap();
        pair.deliver_to_server(&hello);
        let answer = pair.server.poll_transmit().unwrap();
        pair.deliver_to_client(&answer);
        body(&pair.client.poll_transmit().unwrap(), H::CertificateVerify)
    };
    let mut cases = vec![other, [&[0, 128][..], &[0; 128]].concat(), vec![0, 0]];
    for at in [2, 60, good.len() - 1] {
        let mut changed = good.clone();
        changed[at] ^= 0x10;
        cases.push(changed);
    }
    cases.push([&[0, 127][..], &good[3..]].concat());
    for case in cases {
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::CertificateVerify, &case);
        let (error, alert) = script.server_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::BadSignature));
        assert_eq!(alert, Alert::fatal(D::DecryptError));
    }
}
