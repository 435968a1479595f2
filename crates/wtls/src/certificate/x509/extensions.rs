//! Extensions that restrict the use of an X.509 certificate's key (RFC 5280, section 4.2.1).

use super::super::Holder;
use super::X509Error;
use x509_cert::der::{Decode, asn1::ObjectIdentifier};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAltName};

const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const BASIC_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.19");
const NAME_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.30");
const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");

const ANY_PURPOSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");
/// WAP defines no purposes, so those of TLS are used.
const SERVER_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// The extensions that the engine evaluates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in super::super) struct Extensions {
    is_authority: bool,
    path_limit: Option<u8>,
    usage: Option<KeyUsage>,
    purposes: Option<Vec<ObjectIdentifier>>,
    /// The DNS names among the subject alternative names.
    pub host_names: Vec<String>,
}

impl Extensions {
    pub fn read(extensions: &[Extension], subject: &str) -> Result<Self, X509Error> {
        let mut found = Self::default();
        for (place, extension) in extensions.iter().enumerate() {
            let (id, value) = (extension.extn_id, extension.extn_value.as_bytes());
            if extensions[..place].iter().any(|other| other.extn_id == id) {
                return Err(X509Error::Malformed(format!("the extension {id} occurs twice")));
            }
            match id {
                BASIC_CONSTRAINTS => {
                    let constraints = BasicConstraints::from_der(value)?;
                    found.is_authority = constraints.ca;
                    found.path_limit = constraints.path_len_constraint;
                }
                KEY_USAGE => found.usage = Some(KeyUsage::from_der(value)?),
                EXTENDED_KEY_USAGE => found.purposes = Some(ExtendedKeyUsage::from_der(value)?.0),
                SUBJECT_ALT_NAME => found.host_names = host_names(&SubjectAltName::from_der(value)?),
                // Name constraints are not implemented, so they are rejected, critical or not.
                NAME_CONSTRAINTS => {
                    return Err(X509Error::NameConstraints { subject: subject.to_owned() });
                }
                other if extension.critical => {
                    let (subject, extension) = (subject.to_owned(), other.to_string());
                    return Err(X509Error::CriticalExtension { subject, extension });
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether the key may certify others, with `below` intermediates between it and the leaf.
    pub fn may_certify(&self, below: usize) -> bool {
        let long_enough = self.path_limit.is_none_or(|limit| below <= limit.into());
        let allowed = self.usage.as_ref().is_none_or(KeyUsage::key_cert_sign);
        self.is_authority && long_enough && allowed
    }

    /// Whether key usage permits a leaf's key in a handshake: an RSA server's to encipher keys, an RSA client's to
    /// sign, an EC key to agree on a secret.
    pub fn may_take_part(&self, holder: Holder, is_rsa: bool) -> bool {
        let needed = match (is_rsa, holder) {
            (true, Holder::Server) => KeyUsage::key_encipherment,
            (true, Holder::Client) => KeyUsage::digital_signature,
            (false, _) => KeyUsage::key_agreement,
        };
        self.usage.as_ref().is_none_or(needed)
    }

    /// Whether extended key usage permits this holder.
    pub fn is_for(&self, holder: Holder) -> bool {
        let wanted = match holder {
            Holder::Server => SERVER_AUTHENTICATION,
            Holder::Client => CLIENT_AUTHENTICATION,
        };
        let serves = |purposes: &Vec<_>| purposes.contains(&wanted) || purposes.contains(&ANY_PURPOSE);
        self.purposes.as_ref().is_none_or(serves)
    }
}

fn host_names(names: &SubjectAltName) -> Vec<String> {
    let of = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    };
    names.0.iter().filter_map(of).collect()
}
