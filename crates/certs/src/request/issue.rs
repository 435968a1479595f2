//! Issues one certificate on request, by an existing issuer or as a root.

use super::{Issue, Response, criteria, key_pem, pems};
use crate::files::{self, Sheet};
use crate::{CertsError, describe, wtls};
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use shakedown_pki::credentials::{CredentialFile, ReadError, read_bytes};
use shakedown_pki::issue::{self, Overrides, Place};
use shakedown_pki::order::is_self_signed;
use shakedown_pki::{Profile, keys};
use shakedown_trace::Side;
use shakedown_trace::suite::KeyType;
use shakedown_wtls::certificate::Certificate as WtlsCertificate;
use std::path::Path;

impl Issue {
    pub(super) fn run(&self) -> Result<Response, CertsError> {
        let place = Place::from_name(&self.place).ok_or_else(|| CertsError::UnknownWord {
            what: "place in a chain",
            value: self.place.clone(),
            accepted: "root, intermediate, server, client",
        })?;
        let kind =
            KeyType::from_name(&self.key).ok_or_else(|| CertsError::UnknownKey { key: self.key.clone() })?;
        let overrides = Overrides {
            common_name: self.name.clone(),
            alternative_names: self.alternative_names.clone(),
            not_before: self.not_before.clone(),
            days: self.days,
        };
        let profile = Profile::find(&self.profile)?.with(place, &overrides)?;
        let sheets = match self.ca.as_deref().map(|ca| self.wtls_issuers(ca)).transpose()?.flatten() {
            Some(issuers) => self.wtls_sheets(&profile, place, kind, &issuers)?,
            None if self.wtls => self.wtls_sheets(&profile, place, kind, &[])?,
            None => self.x509_sheets(&profile, place, kind)?,
        };
        let files = files::write(&self.out, &sheets, self.replace)?;
        let side = if place == Place::Client { Side::Client } else { Side::Server };
        let ca = self.ca.as_deref();
        let path = self.out.join("chain.pem");
        let key = self.out.join("key.pem");
        let mut description =
            describe(&path, Some(&key), ca, self.ca_password.as_deref(), &criteria(side, self.now))?;
        if !matches!(place, Place::Server | Place::Client) {
            // These checks apply only to leaves.
            use shakedown_pki::inspect::Reason::{NoAlternativeName, WrongPurpose};
            description
                .violations
                .retain(|violation| !matches!(violation.reason, NoAlternativeName | WrongPurpose));
        }
        Ok(Response::Made { files, description })
    }

    fn x509_sheets(&self, profile: &Profile, place: Place, kind: KeyType) -> Result<Vec<Sheet>, CertsError> {
        let issuer = self.ca.as_deref().map(|ca| self.issuer(ca)).transpose()?;
        let pair = issuer.as_ref().map(|(certificates, key)| (&certificates[0], key));
        let issued = issue::one(profile, place, kind, pair)?;
        let above = issuer.iter().flat_map(|(certificates, _)| certificates);
        let above = above.filter(|one| !is_self_signed(*one)).filter_map(|one| one.to_der().ok());
        let chain: Vec<Vec<u8>> = std::iter::once(issued.certificate.clone()).chain(above).collect();
        Ok(vec![
            Sheet::public("chain.pem", ISSUED, pems(&chain)?),
            Sheet::private("key.pem", "its private key", key_pem(&issued.key)?),
        ])
    }

    /// The certificates of the issuer's file, if they are WTLS certificates.
    fn wtls_issuers(&self, ca: &Path) -> Result<Option<Vec<WtlsCertificate>>, CertsError> {
        let found = wtls::read_certificates(&read_bytes(ca)?, ca)?;
        match &found {
            None if self.wtls => Err(CertsError::WrongKind { path: ca.into(), wanted: "WTLS" }),
            _ => Ok(found),
        }
    }

    fn wtls_sheets(
        &self,
        profile: &Profile,
        place: Place,
        kind: KeyType,
        issuers: &[WtlsCertificate],
    ) -> Result<Vec<Sheet>, CertsError> {
        let key = match (&self.ca, &self.ca_key) {
            (None, _) => None,
            (Some(ca), None) => return Err(ReadError::NoKey { path: ca.clone() }.into()),
            (Some(_), Some(path)) => {
                let key = CredentialFile::load_key(path, self.ca_password.as_deref())?;
                Some(keys::to_pkcs8(&key)?)
            }
        };
        let issuer = issuers.first().zip(key.as_deref());
        let (issued, pkcs8) = wtls::one(profile, place, kind, issuer)?;
        let is_root = |one: &&WtlsCertificate| one.fields().issuer == one.fields().subject;
        let above = issuers.iter().filter(|one| !is_root(one));
        let chain: Vec<&WtlsCertificate> = std::iter::once(&issued).chain(above).collect();
        let text: String = chain.iter().map(|one| one.to_pem()).collect();
        let raw: Vec<u8> = chain.iter().flat_map(|one| one.as_bytes().to_vec()).collect();
        Ok(vec![
            Sheet::public("chain.pem", ISSUED, text),
            Sheet::public("chain.wtls", "the same certificates in binary form", raw),
            Sheet::private("key.pem", "its private key", key_pem(&pkcs8)?),
        ])
    }

    /// The certificates of the issuer's file, and the issuer's key.
    fn issuer(&self, ca: &Path) -> Result<(Vec<X509>, PKey<Private>), CertsError> {
        let password = self.ca_password.as_deref();
        let issuer = CredentialFile::load(ca, password)?;
        if issuer.certificates.is_empty() {
            return Err(CertsError::NoCertificate { path: ca.into() });
        }
        let key = match &self.ca_key {
            Some(path) => CredentialFile::load_key(path, password)?,
            None => issuer.key.ok_or_else(|| ReadError::NoKey { path: ca.into() })?,
        };
        Ok((issuer.certificates, key))
    }
}

const ISSUED: &str = "the new certificate, then its issuers without the root";
