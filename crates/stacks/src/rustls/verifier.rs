//! Verifiers that report where the check of a CertificateVerify begins. The checks, and the traits' default methods,
//! are webpki's.

use super::boundaries::update_boundaries;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use shakedown_trace::{MessageName, recorder};
use std::sync::Arc;

#[derive(Debug)]
pub struct Observed<V: ?Sized> {
    inner: Arc<V>,
}

impl<V: ?Sized> Observed<V> {
    pub fn new(inner: Arc<V>) -> Self {
        Self { inner }
    }
}

/// The chain has been verified, which belongs to Certificate; the signature of the handshake is next.
fn signature_begins() {
    update_boundaries(|boundaries| {
        if boundaries.next_is(MessageName::CertificateVerify) {
            recorder::boundary();
        }
    });
}

/// The methods that both kinds of verifiers share.
macro_rules! observed_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            signature_begins();
            self.inner.verify_tls12_signature(message, certificate, signature)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            signature_begins();
            self.inner.verify_tls13_signature(message, certificate, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.inner.supported_verify_schemes()
        }
    };
}

impl ServerCertVerifier for Observed<dyn ServerCertVerifier> {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.inner.verify_server_cert(leaf, intermediates, server_name, ocsp_response, now)
    }

    observed_signatures!();
}

impl ClientCertVerifier for Observed<dyn ClientCertVerifier> {
    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.inner.verify_client_cert(leaf, intermediates, now)
    }

    observed_signatures!();
}
