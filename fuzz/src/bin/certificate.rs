#![no_main]
//! The parsers of WTLS certificates (binary and PEM) and X.509 certificates, and the verification of chains.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::Synthetic;
use shakedown_wtls::KeyExchangeFamily;
use shakedown_wtls::certificate::*;
use shakedown_wtls::codec::Codec;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = core::str::from_utf8(input) {
        if let Ok(certificate) = Certificate::from_pem(text) {
            let again = Certificate::from_pem(&certificate.to_pem());
            assert_eq!(again.as_ref(), Ok(&certificate));
        }
        let name = ServiceName::parse(text);
        assert_eq!(ServiceName::parse(&name.to_string()).service, name.service);
    }
    if let Ok(certificate) = X509Certificate::from_der(input) {
        assert_eq!(certificate.as_bytes(), input);
        let anchor = TrustAnchor::from_x509(&Synthetic, &certificate);
        verify(certificate.into(), anchor);
    }
    let Ok(certificate) = Certificate::from_bytes("certificate", input) else { return };
    assert_eq!(certificate.as_bytes(), input);
    let fields = certificate.fields();
    let _ = fields.public_key.key_hash(&Synthetic, true);
    let anchor = TrustAnchor::from_certificate(&Synthetic, &certificate, true);
    verify(certificate.into(), anchor);
});

/// Verifies a chain that contains the certificate twice, with the certificate as its trust anchor.
fn verify(certificate: ChainCertificate, anchor: Result<TrustAnchor<Synthetic>, CertificateError>) {
    let Ok(anchor) = anchor else { return };
    for family in [KeyExchangeFamily::Rsa, KeyExchangeFamily::EcdhEcdsa] {
        let policy = ChainPolicy {
            holder: Holder::Server,
            family,
            now_unix_s: certificate.validity_unix_s().0,
            private_curves: true,
            name: Some("peer.test"),
        };
        let chain = [certificate.clone(), certificate.clone()];
        let _ = verify_chain(&Synthetic, &chain, core::slice::from_ref(&anchor), &policy);
    }
}
