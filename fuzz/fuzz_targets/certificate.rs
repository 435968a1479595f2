#![no_main]
//! The certificate parser, in both forms, and what is done with a certificate.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::MakeBelieve;
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
    let Ok(certificate) = Certificate::from_bytes("certificate", input) else { return };
    assert_eq!(certificate.as_bytes(), input);
    let summary = Summary::of(&certificate, true);
    assert_eq!(summary.bytes, input.len());
    let _ = summary.to_string();
    let fields = certificate.fields();
    let _ = fields.public_key.key_hash(&MakeBelieve, true);
    let Ok(anchor) = TrustAnchor::from_certificate(&MakeBelieve, &certificate, true) else { return };
    for family in [KeyExchangeFamily::Rsa, KeyExchangeFamily::EcdhEcdsa] {
        let policy = ChainPolicy {
            family,
            now_unix_s: fields.valid_not_before_unix_s.into(),
            private_curves: true,
            require_authority_mark: false,
            name: None,
        };
        let chain = [certificate.clone(), certificate.clone()];
        let _ = verify_chain(&MakeBelieve, &chain, core::slice::from_ref(&anchor), &policy);
    }
});
