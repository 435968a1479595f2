//! What an X.509 certificate allows its key to do (RFC 5280, section 4.2.1).

use super::X509Error;
use x509_cert::der::{Decode, asn1::ObjectIdentifier};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, SubjectAltName};

const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const BASIC_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.19");
/// Of TLS servers and clients; WAP names none of its own, so any purpose will do.
const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");

/// The extensions that decide something here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Extensions {
    is_authority: bool,
    path_limit: Option<u8>,
    usage: Option<KeyUsage>,
    /// DNS names, where there is an extension for them.
    pub host_names: Option<Vec<String>>,
}

impl Extensions {
    pub fn read(extensions: &[Extension], subject: &str) -> Result<Self, X509Error> {
        let mut found = Self::default();
        for extension in extensions {
            let value = extension.extn_value.as_bytes();
            match extension.extn_id {
                BASIC_CONSTRAINTS => {
                    let constraints = BasicConstraints::from_der(value)?;
                    found.is_authority = constraints.ca;
                    found.path_limit = constraints.path_len_constraint;
                }
                KEY_USAGE => found.usage = Some(KeyUsage::from_der(value)?),
                SUBJECT_ALT_NAME => found.host_names = Some(host_names(&SubjectAltName::from_der(value)?)),
                EXTENDED_KEY_USAGE => {}
                other if extension.critical => {
                    let (subject, extension) = (subject.to_owned(), other.to_string());
                    return Err(X509Error::CriticalExtension { subject, extension });
                }
                _ => {}
            }
        }
        Ok(found)
    }

    pub fn may_certify(&self, below: usize) -> bool {
        let long_enough = self.path_limit.is_none_or(|limit| below <= limit.into());
        let allowed = self.usage.as_ref().is_none_or(KeyUsage::key_cert_sign);
        self.is_authority && long_enough && allowed
    }

    pub fn may_exchange(&self, is_rsa: bool) -> bool {
        let needed = if is_rsa { KeyUsage::key_encipherment } else { KeyUsage::key_agreement };
        self.usage.as_ref().is_none_or(needed)
    }
}

fn host_names(names: &SubjectAltName) -> Vec<String> {
    let of = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    };
    names.0.iter().filter_map(of).collect()
}
