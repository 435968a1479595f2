//! Certificate, CertificateRequest and CertificateVerify.

use super::hello::encode_all;
use crate::certificate::{Certificate, CertificateError, ChainCertificate, X509Certificate};
use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer};
use crate::numbers::CertificateFormat;
use crate::parameters::KeyExchangeId;

/// A certificate in one of the forms that a list may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateEntry {
    Wtls(Certificate),
    /// X.509 in DER.
    X509(Vec<u8>),
    /// X9.68, a form that was never defined.
    X968(Vec<u8>),
    Url(Vec<u8>),
}

impl From<ChainCertificate> for CertificateEntry {
    fn from(certificate: ChainCertificate) -> Self {
        match certificate {
            ChainCertificate::Wtls(certificate) => Self::Wtls(certificate),
            ChainCertificate::X509(certificate) => Self::X509(certificate.as_bytes().to_vec()),
        }
    }
}

impl Codec for CertificateEntry {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        match self {
            Self::Wtls(certificate) => {
                to.u8(CertificateFormat::Wtls.number());
                to.raw(certificate.as_bytes());
                Ok(())
            }
            Self::X509(der) => {
                to.u8(CertificateFormat::X509.number());
                to.v16("X.509 certificate", der)
            }
            Self::X968(bytes) => {
                to.u8(CertificateFormat::X968.number());
                to.v16("X9.68 certificate", bytes)
            }
            Self::Url(url) => {
                to.u8(CertificateFormat::Url.number());
                to.v8("certificate URL", url)
            }
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match CertificateFormat::from_number(from.u8("certificate format")?)? {
            CertificateFormat::Wtls => Self::Wtls(Certificate::decode(from)?),
            CertificateFormat::X509 => Self::X509(from.v16("X.509 certificate")?.to_vec()),
            CertificateFormat::X968 => Self::X968(from.v16("X9.68 certificate")?.to_vec()),
            CertificateFormat::Url => Self::Url(from.v8("certificate URL")?.to_vec()),
        })
    }
}

/// The Certificate message: the sender's certificate first; each following one certifies the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateList(pub Vec<CertificateEntry>);

impl CertificateList {
    /// Writes a list without taking ownership of its entries.
    pub(crate) fn encode_entries(entries: &[CertificateEntry], to: &mut Writer) -> Result<(), EncodeError> {
        to.v16_with("certificate list", |to| encode_all(entries, to))
    }

    /// The chain, if all its certificates have a supported form.
    pub fn into_chain(self) -> Result<Vec<ChainCertificate>, CertificateError> {
        self.0
            .into_iter()
            .map(|entry| match entry {
                CertificateEntry::Wtls(certificate) => Ok(certificate.into()),
                CertificateEntry::X509(der) => Ok(X509Certificate::from_der(&der)?.into()),
                CertificateEntry::X968(_) | CertificateEntry::Url(_) => Err(CertificateError::Format),
            })
            .collect()
    }
}

impl Codec for CertificateList {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        Self::encode_entries(&self.0, to)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(Reader::new(from.v16("certificate list")?).list()?))
    }
}

/// The CertificateRequest message: the authorities that the server trusts. An empty list means any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateRequest {
    pub trusted_authorities: Vec<KeyExchangeId>,
}

impl Codec for CertificateRequest {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.v16_with("trusted authorities", |to| encode_all(&self.trusted_authorities, to))
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let trusted_authorities = Reader::new(from.v16("trusted authorities")?).list()?;
        Ok(Self { trusted_authorities })
    }
}

/// The CertificateVerify message: a signature over all messages before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateVerify {
    pub signature: Vec<u8>,
}

impl Codec for CertificateVerify {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.v16("signature", &self.signature)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { signature: from.v16("signature")?.to_vec() })
    }
}
