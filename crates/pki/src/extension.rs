//! Encodes the extensions of a profile.

use crate::error::{Doing, PkiError};
use crate::profile::{ExtendedUsage, Role, Usage, is_visible_ascii};
use openssl::asn1::{Asn1Object, Asn1OctetString};
use openssl::x509::X509Extension;
use shakedown_trace::suite::KeyFamily;
use std::net::IpAddr;
use x509_cert::der::asn1::{Any, Ia5String, OctetString};
use x509_cert::der::{self, Encode, flagset::FlagSet, oid::AssociatedOid, oid::ObjectIdentifier};
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::ext::pkix::{
    AuthorityInfoAccessSyntax, AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies,
    CrlDistributionPoints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName, SubjectKeyIdentifier,
    certpolicy, crl::dp,
};

/// Signed certificate timestamps (RFC 6962, section 3.3).
pub(crate) const TIMESTAMPS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.11129.2.4.2");
const OCSP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");
const CA_ISSUERS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.2");
const CPS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.2.1");

/// Inputs of extensions other than the profile.
pub(crate) struct Subject<'a> {
    /// Kind of the certified key.
    pub family: KeyFamily,
    pub key_identifier: [u8; 20],
    /// Digest of the issuer's key, if the issuer's certificate contains it.
    pub authority_key_identifier: Option<&'a [u8]>,
    /// Start of the validity, in seconds since 1970.
    pub not_before_s: i64,
    pub seed: [u8; 32],
}

struct Encoded {
    oid: ObjectIdentifier,
    critical: bool,
    value: Vec<u8>,
}

/// The extensions of a role in the order of today's public CAs.
pub(crate) fn extensions(role: &Role, subject: &Subject<'_>) -> Result<Vec<X509Extension>, PkiError> {
    let encoded = encode(role, subject).map_err(|error| PkiError::Encoding {
        what: "extensions of a certificate",
        detail: error.to_string(),
    })?;
    encoded.into_iter().map(|extension| hand_over(&extension).doing("make an extension")).collect()
}

fn hand_over(extension: &Encoded) -> Result<X509Extension, openssl::error::ErrorStack> {
    let oid = Asn1Object::from_str(&extension.oid.to_string())?;
    X509Extension::new_from_der(
        &oid,
        extension.critical,
        Asn1OctetString::new_from_bytes(&extension.value)?.as_ref(),
    )
}

fn encode(role: &Role, subject: &Subject<'_>) -> der::Result<Vec<Encoded>> {
    let mut list = Vec::new();
    let mut add = |oid, critical, value| list.push(Encoded { oid, critical, value });
    if let Some(usage) = &role.key_usage {
        let bits =
            usage.allow.iter().filter(|usage| serves(subject.family, **usage)).map(|usage| bit(*usage));
        let bits = bits.fold(FlagSet::default(), |all: FlagSet<KeyUsages>, bit| all | bit);
        add(KeyUsage::OID, usage.critical, KeyUsage(bits).to_der()?);
    }
    if !role.extended_key_usage.is_empty() {
        let list = role.extended_key_usage.iter().map(|usage| extended_usage(*usage)).collect();
        add(ExtendedKeyUsage::OID, false, ExtendedKeyUsage(list).to_der()?);
    }
    if let Some(constraints) = role.basic_constraints {
        let value = BasicConstraints { ca: constraints.ca, path_len_constraint: constraints.path_length };
        add(BasicConstraints::OID, constraints.critical, value.to_der()?);
    }
    if role.subject_key_identifier {
        let value = SubjectKeyIdentifier(OctetString::new(&subject.key_identifier[..])?);
        add(SubjectKeyIdentifier::OID, false, value.to_der()?);
    }
    if let (true, Some(identifier)) = (role.authority_key_identifier, subject.authority_key_identifier) {
        let value = AuthorityKeyIdentifier {
            key_identifier: Some(OctetString::new(identifier)?),
            ..Default::default()
        };
        add(AuthorityKeyIdentifier::OID, false, value.to_der()?);
    }
    if !role.ocsp_urls.is_empty() || !role.ca_issuers_urls.is_empty() {
        add(AuthorityInfoAccessSyntax::OID, false, information_access(role)?.to_der()?);
    }
    if !role.subject_alternative_names.is_empty() {
        let names = role.subject_alternative_names.iter().map(|name| general_name(name));
        add(SubjectAltName::OID, false, SubjectAltName(names.collect::<der::Result<_>>()?).to_der()?);
    }
    if !role.policies.is_empty() {
        add(CertificatePolicies::OID, false, policies(role)?.to_der()?);
    }
    if !role.crl_urls.is_empty() {
        add(CrlDistributionPoints::OID, false, distribution_points(&role.crl_urls)?.to_der()?);
    }
    if role.signed_certificate_timestamps > 0 {
        add(TIMESTAMPS, false, timestamps(role.signed_certificate_timestamps, subject)?);
    }
    for (index, opaque) in role.opaque.iter().enumerate() {
        let label = format!("opaque {index}");
        let value = bytes_of(subject.seed, &label, usize::from(opaque.bytes));
        add(ObjectIdentifier::new(&opaque.oid)?, opaque.critical, value);
    }
    Ok(list)
}

/// Whether a kind of key supports a usage.
fn serves(family: KeyFamily, usage: Usage) -> bool {
    match usage {
        Usage::KeyEncipherment | Usage::DataEncipherment => family == KeyFamily::Rsa,
        Usage::KeyAgreement => family == KeyFamily::Ec,
        _ => true,
    }
}

fn bit(usage: Usage) -> KeyUsages {
    match usage {
        Usage::DigitalSignature => KeyUsages::DigitalSignature,
        Usage::NonRepudiation => KeyUsages::NonRepudiation,
        Usage::KeyEncipherment => KeyUsages::KeyEncipherment,
        Usage::DataEncipherment => KeyUsages::DataEncipherment,
        Usage::KeyAgreement => KeyUsages::KeyAgreement,
        Usage::KeyCertSign => KeyUsages::KeyCertSign,
        Usage::CrlSign => KeyUsages::CRLSign,
    }
}

/// Object identifiers of RFC 5280, section 4.2.1.12.
fn extended_usage(usage: ExtendedUsage) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(match usage {
        ExtendedUsage::ServerAuth => "1.3.6.1.5.5.7.3.1",
        ExtendedUsage::ClientAuth => "1.3.6.1.5.5.7.3.2",
        ExtendedUsage::CodeSigning => "1.3.6.1.5.5.7.3.3",
        ExtendedUsage::EmailProtection => "1.3.6.1.5.5.7.3.4",
        ExtendedUsage::TimeStamping => "1.3.6.1.5.5.7.3.8",
        ExtendedUsage::OcspSigning => "1.3.6.1.5.5.7.3.9",
    })
}

fn uri(text: &str) -> der::Result<GeneralName> {
    Ok(GeneralName::UniformResourceIdentifier(Ia5String::new(text)?))
}

fn information_access(role: &Role) -> der::Result<AuthorityInfoAccessSyntax> {
    let describe = |access_method: ObjectIdentifier, url: &String| {
        Ok(x509_cert::ext::pkix::AccessDescription { access_method, access_location: uri(url)? })
    };
    let ocsp = role.ocsp_urls.iter().map(|url| describe(OCSP, url));
    let issuers = role.ca_issuers_urls.iter().map(|url| describe(CA_ISSUERS, url));
    ocsp.chain(issuers).collect::<der::Result<_>>().map(AuthorityInfoAccessSyntax)
}

/// One name of the extension SubjectAltName: `dns:…`, `ip:…`, `uri:…`, `email:…`.
pub(crate) fn general_name(text: &str) -> der::Result<GeneralName> {
    let wrong = || der::Error::from(der::ErrorKind::Failed);
    match text.split_once(':').filter(|(_, value)| is_visible_ascii(value)).ok_or_else(wrong)? {
        ("dns", name) => Ok(GeneralName::DnsName(Ia5String::new(name)?)),
        ("ip", address) => address.parse::<IpAddr>().map(GeneralName::from).map_err(|_| wrong()),
        ("uri", text) => uri(text),
        ("email", address) => Ok(GeneralName::Rfc822Name(Ia5String::new(address)?)),
        _ => Err(wrong()),
    }
}

fn policies(role: &Role) -> der::Result<CertificatePolicies> {
    let encode = |policy: &crate::profile::Policy| {
        let qualifier = policy.cps.as_ref().map(|cps| {
            let qualifier = Some(Any::encode_from(&Ia5String::new(cps)?)?);
            Ok::<_, der::Error>(vec![certpolicy::PolicyQualifierInfo { policy_qualifier_id: CPS, qualifier }])
        });
        Ok(certpolicy::PolicyInformation {
            policy_identifier: ObjectIdentifier::new(&policy.oid)?,
            policy_qualifiers: qualifier.transpose()?,
        })
    };
    role.policies.iter().map(encode).collect::<der::Result<_>>().map(CertificatePolicies)
}

fn distribution_points(urls: &[String]) -> der::Result<CrlDistributionPoints> {
    let encode = |url: &String| {
        let name = DistributionPointName::FullName(vec![uri(url)?]);
        Ok(dp::DistributionPoint { distribution_point: Some(name), reasons: None, crl_issuer: None })
    };
    urls.iter().map(encode).collect::<der::Result<_>>().map(CrlDistributionPoints)
}

/// A list of signed certificate timestamps (RFC 6962, sections 3.2 and 3.3) in the format of public logs:
/// version 1, ECDSA over P-256 with SHA-256. The signatures are random numbers: they are not checked here.
fn timestamps(count: u8, subject: &Subject<'_>) -> der::Result<Vec<u8>> {
    let mut list = Vec::new();
    for index in 0..count {
        let mut entry = vec![0]; // version 1
        entry.extend(bytes_of(subject.seed, &format!("log {index}"), 32));
        let time_ms = u64::try_from(subject.not_before_s).unwrap_or(0) * 1000;
        entry.extend(time_ms.to_be_bytes());
        entry.extend([0, 0, 4, 3]); // no extensions; SHA-256, ECDSA
        // r and s of 32 bytes, of which one begins with a one bit: 71 bytes, the likeliest length.
        let mut numbers = bytes_of(subject.seed, &format!("timestamp {index}"), 64);
        numbers[0] |= 0x80;
        numbers[32] = numbers[32] & 0x7f | 0x40;
        entry.extend([0, 71, 0x30, 69, 0x02, 33, 0]);
        entry.extend(&numbers[..32]);
        entry.extend([0x02, 32]);
        entry.extend(&numbers[32..]);
        list.extend(u16::try_from(entry.len()).unwrap_or(u16::MAX).to_be_bytes());
        list.extend(entry);
    }
    let length = u16::try_from(list.len()).map_err(|_| der::ErrorKind::Overflow)?;
    OctetString::new([&length.to_be_bytes()[..], &list].concat())?.to_der()
}

/// `count` pseudorandom bytes that depend only on `seed` and `label`.
pub(crate) fn bytes_of(seed: [u8; 32], label: &str, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + 32);
    for counter in 0_u32.. {
        if bytes.len() >= count {
            break;
        }
        let block = [&seed[..], label.as_bytes(), &counter.to_be_bytes()].concat();
        bytes.extend(openssl::sha::sha256(&block));
    }
    bytes.truncate(count);
    bytes
}
