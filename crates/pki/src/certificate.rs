//! Creates one certificate.

use crate::error::{Doing, PkiError};
use crate::extension::{self, Subject};
use crate::ffi;
use crate::keys;
use crate::profile::{Profile, Role, attribute_of_name};
use crate::signature::{Digest, likeliest_bytes};
use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::error::ErrorStack;
use openssl::pkey::{PKeyRef, Private};
use openssl::x509::{X509, X509Builder, X509Name, X509NameBuilder, X509Ref};
use shakedown_trace::suite::KeyFamily;

/// Limit of attempts to get a signature of the likeliest length, which more than every third one has.
const MAX_SIGNATURES: usize = 200;

pub(crate) struct Issuer<'a> {
    pub certificate: &'a X509Ref,
    pub key: &'a PKeyRef<Private>,
}

/// Creates the certificate of `key` in a role, `level` places from the leaf; without an issuer, it is self-signed.
pub(crate) fn make(
    profile: &Profile,
    role: &Role,
    level: usize,
    key: &PKeyRef<Private>,
    issuer: Option<&Issuer<'_>>,
) -> Result<X509, PkiError> {
    let signing_key = issuer.map_or(key, |issuer| issuer.key);
    let digest = digest_for(profile, signing_key)?;
    let name = subject_name(role, level).doing("make the name of a certificate")?;
    let seed = seed(profile, key, signing_key)?;
    let (not_before_s, not_after_s) = profile.validity_s(role);
    let own_identifier = key_identifier(key)?;
    let subject = Subject {
        family: keys::family(key).unwrap_or(KeyFamily::Rsa),
        key_identifier: own_identifier,
        authority_key_identifier: match issuer {
            Some(issuer) => issuer.certificate.subject_key_id().map(|identifier| identifier.as_slice()),
            None => role.subject_key_identifier.then_some(&own_identifier[..]),
        },
        not_before_s,
        seed,
    };
    let extensions = extension::extensions(role, &subject)?;

    let serial_bytes = usize::from(role.serial_bytes.unwrap_or(profile.serial_bytes));
    let build = || -> Result<X509, ErrorStack> {
        let mut builder = X509Builder::new()?;
        builder.set_version(2)?;
        let serial = BigNum::from_slice(&serial(seed, serial_bytes))?.to_asn1_integer()?;
        builder.set_serial_number(&serial)?;
        builder.set_issuer_name(issuer.map_or(&*name, |issuer| issuer.certificate.subject_name()))?;
        builder.set_subject_name(&name)?;
        builder.set_not_before(&*Asn1Time::from_unix(not_before_s)?)?;
        builder.set_not_after(&*Asn1Time::from_unix(not_after_s)?)?;
        builder.set_pubkey(key)?;
        for extension in &extensions {
            builder.append_extension2(extension)?;
        }
        Ok(builder.build())
    };
    let mut certificate = build().doing("build a certificate")?;
    let wanted = likeliest_bytes(signing_key)?;
    for _ in 0..MAX_SIGNATURES {
        ffi::sign(&mut certificate, signing_key, digest.map(Digest::message_digest))?;
        if wanted.is_none_or(|bytes| certificate.signature().as_slice().len() == bytes) {
            break;
        }
    }
    Ok(certificate)
}

fn digest_for(profile: &Profile, key: &PKeyRef<Private>) -> Result<Option<Digest>, PkiError> {
    let digest = match keys::family(key) {
        Some(KeyFamily::Rsa) => profile.digest.rsa,
        Some(KeyFamily::Dsa) => profile.digest.dsa,
        Some(KeyFamily::Ec) => profile.digest.ec,
        _ => return Ok(None),
    };
    if keys::family(key) == Some(KeyFamily::Rsa) && !digest.fits_rsa(u32::try_from(key.size()).unwrap_or(0)) {
        let issuer = keys::key_type(key).map_or("short RSA".into(), |key| key.standard_name().to_owned());
        return Err(PkiError::DigestTooLong { digest: digest.as_str(), issuer });
    }
    Ok(Some(digest))
}

fn subject_name(role: &Role, level: usize) -> Result<X509Name, ErrorStack> {
    let mut name = X509NameBuilder::new()?;
    for text in &role.subject {
        let text = text.replace("{level}", &level.to_string());
        if let Some((attribute, value)) = attribute_of_name(&text) {
            name.append_entry_by_text(attribute, value)?;
        }
    }
    Ok(name.build())
}

/// SHA-1 of the public key's bit string (RFC 5280, section 4.2.1.2, method 1).
fn key_identifier(key: &PKeyRef<Private>) -> Result<[u8; 20], PkiError> {
    use x509_cert::der::Decode;
    let der = key.public_key_to_der().doing("encode a public key")?;
    let info = x509_cert::spki::SubjectPublicKeyInfoRef::from_der(&der)
        .map_err(|error| PkiError::Encoding { what: "public key", detail: error.to_string() })?;
    Ok(openssl::sha::sha1(info.subject_public_key.raw_bytes()))
}

/// The seed of serial numbers and opaque bytes: the same keys and profile give the same bytes.
fn seed(profile: &Profile, key: &PKeyRef<Private>, issuer: &PKeyRef<Private>) -> Result<[u8; 32], PkiError> {
    let key = key.public_key_to_der().doing("encode a public key")?;
    let issuer = issuer.public_key_to_der().doing("encode a public key")?;
    Ok(openssl::sha::sha256(&[&profile.digest()[..], &key, &issuer].concat()))
}

/// A positive serial number of exactly `bytes` bytes.
fn serial(seed: [u8; 32], bytes: usize) -> Vec<u8> {
    let mut serial = extension::bytes_of(seed, "serial", bytes);
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    serial
}
