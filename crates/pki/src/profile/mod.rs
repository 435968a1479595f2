//! Certificate profiles: the content of certificates apart from their keys.

mod check;

pub(crate) use check::{attribute_of_name, is_visible_ascii};

use crate::date;
use crate::error::PkiError;
use crate::limits;
use crate::signature::Digest;
use serde::{Deserialize, Serialize};
use shakedown_trace::Side;
use shakedown_trace::suite::KeyType;
use std::path::Path;

const LAB: &str = include_str!("../../profiles/lab.toml");

/// The included profiles by name: the laboratory's own, and typical chains of public CAs.
const SHIPPED: [(&str, &str); 6] = [
    ("lab", LAB),
    ("style-automated", include_str!("../../profiles/style-automated.toml")),
    ("style-cross-signed", include_str!("../../profiles/style-cross-signed.toml")),
    ("style-extended", include_str!("../../profiles/style-extended.toml")),
    ("style-large-root", include_str!("../../profiles/style-large-root.toml")),
    ("style-many-names", include_str!("../../profiles/style-many-names.toml")),
];

/// The content of a chain's certificates apart from their keys, read from TOML; see `profiles/lab.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// The usual keys of chains with this profile, leaf first and root last: `p256@rsa2048@rsa4096`.
    #[serde(default)]
    pub keys: Option<String>,
    /// First day of validity, `YYYY-MM-DD`, midnight UTC.
    pub not_before: String,
    pub days: u32,
    /// Bytes of serial numbers, 1 to 20.
    #[serde(default = "sixteen")]
    pub serial_bytes: u8,
    /// Digests of signatures, by the issuer's key.
    #[serde(default)]
    pub digest: Digests,
    /// The self-signed end of the chain.
    pub root: Role,
    /// Between root and leaf, nearest to the leaf first; the last is also used for all that are farther away.
    #[serde(rename = "intermediate")]
    pub intermediates: Vec<Role>,
    pub server: Role,
    pub client: Role,
}

fn sixteen() -> u8 {
    16
}

/// Digests of signatures, by the issuer's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Digests {
    pub rsa: Digest,
    pub dsa: Digest,
    pub ec: Digest,
}

impl Default for Digests {
    fn default() -> Self {
        Self { rsa: Digest::Sha256, dsa: Digest::Sha256, ec: Digest::Sha256 }
    }
}

/// The certificates of one place in the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Role {
    /// Attributes of the name in order, `CN=…`; `{level}` is replaced by the distance from the leaf.
    pub subject: Vec<String>,
    /// The name in a WTLS certificate, `service; organization; country; common name; T=ca`; `{level}` as above.
    pub wtls_name: Option<String>,
    pub not_before: Option<String>,
    pub days: Option<u32>,
    pub serial_bytes: Option<u8>,
    pub basic_constraints: Option<BasicConstraints>,
    pub key_usage: Option<KeyUsage>,
    pub extended_key_usage: Vec<ExtendedUsage>,
    /// `dns:…`, `ip:…`, `uri:…`, `email:…`.
    pub subject_alternative_names: Vec<String>,
    /// Includes a digest of the certificate's key.
    pub subject_key_identifier: bool,
    /// Includes the issuer's key identifier, if the issuer has one.
    pub authority_key_identifier: bool,
    /// URLs of OCSP responders.
    pub ocsp_urls: Vec<String>,
    /// URLs of the issuer's certificate.
    pub ca_issuers_urls: Vec<String>,
    /// URLs of revocation lists.
    pub crl_urls: Vec<String>,
    /// Policies under which the certificate was issued.
    pub policies: Vec<Policy>,
    /// Number of Certificate Transparency timestamps; their format is correct, their signatures are random numbers.
    pub signed_certificate_timestamps: u8,
    /// Extensions with pseudorandom content.
    pub opaque: Vec<Opaque>,
    /// There is also a self-signed certificate with the same name and key, which a peer may trust instead.
    pub cross_signed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasicConstraints {
    #[serde(default = "yes")]
    pub critical: bool,
    pub ca: bool,
    #[serde(default)]
    pub path_length: Option<u8>,
}

/// The key usage extension. A certificate gets only the usages that its kind of key supports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyUsage {
    #[serde(default = "yes")]
    pub critical: bool,
    pub allow: Vec<Usage>,
}

fn yes() -> bool {
    true
}

/// What a key may be used for (RFC 5280, section 4.2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    DigitalSignature,
    NonRepudiation,
    KeyEncipherment,
    DataEncipherment,
    KeyAgreement,
    KeyCertSign,
    CrlSign,
}

/// What a certificate may be used for (RFC 5280, section 4.2.1.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtendedUsage {
    ServerAuth,
    ClientAuth,
    CodeSigning,
    EmailProtection,
    TimeStamping,
    OcspSigning,
}

/// A certificate policy, optionally with the URL of its statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub oid: String,
    #[serde(default)]
    pub cps: Option<String>,
}

/// An extension with `bytes` pseudorandom bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opaque {
    pub oid: String,
    /// Whether a peer that does not know it must reject the certificate.
    #[serde(default)]
    pub critical: bool,
    pub bytes: u16,
}

impl Default for Profile {
    fn default() -> Self {
        #[allow(clippy::expect_used)] // our own file, and a test reads it
        Self::parse(LAB, "lab").expect("the laboratory's own profile is well formed")
    }
}

impl Profile {
    /// The names of the included profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|row| row.0)
    }

    /// An included profile, and its TOML text.
    pub fn named(name: &str) -> Result<(Self, &'static str), PkiError> {
        let row = SHIPPED.iter().find(|row| row.0 == name).ok_or_else(|| PkiError::UnknownProfile {
            name: name.into(),
            accepted: Self::names().collect::<Vec<_>>().join(", "),
        })?;
        Ok((Self::parse(row.1, name)?, row.1))
    }

    /// A profile by name, or from a file if the argument is a path (it contains `/` or ends in `.toml`).
    pub fn find(name_or_path: &str) -> Result<Self, PkiError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            return Self::load(Path::new(name_or_path));
        }
        Self::named(name_or_path).map(|(profile, _)| profile)
    }

    /// The usual keys of chains with this profile, leaf first and root last; empty if it names none.
    pub fn usual_keys(&self) -> Vec<KeyType> {
        let names = self.keys.iter().flat_map(|keys| keys.split('@'));
        names.filter_map(KeyType::from_name).collect()
    }

    /// Reads a profile from a file.
    pub fn load(path: &Path) -> Result<Self, PkiError> {
        let text = limits::read_profile(path)?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads a profile from a text; `origin` is its name in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PkiError> {
        let profile: Self = toml::from_str(text).map_err(|error| PkiError::ProfileSyntax {
            origin: origin.into(),
            line: error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1),
            detail: match error.message() {
                // The TOML parser limits nesting, and reports it in several messages that do not explain it.
                deep if deep.contains("recurs") => {
                    "nested too deep; accepted: tables and lists as in a profile".into()
                }
                other => limits::quoted(&other.replace('\n', "; ")),
            },
        })?;
        profile.check(origin)?;
        Ok(profile)
    }

    /// The role of the certificate at `level` (the leaf is 0) of a side's chain of `length` certificates.
    pub fn role(&self, side: Side, level: usize, length: usize) -> &Role {
        match (level, side) {
            (0, Side::Server) => &self.server,
            (0, Side::Client) => &self.client,
            _ if level + 1 == length => &self.root,
            _ => self.intermediate(level),
        }
    }

    pub(crate) fn intermediate(&self, level: usize) -> &Role {
        let last = self.intermediates.len().saturating_sub(1);
        self.intermediates.get(level.saturating_sub(1).min(last)).unwrap_or(&self.root)
    }

    /// Start and end of a role's validity, in seconds since 1970.
    pub fn validity_s(&self, role: &Role) -> (i64, i64) {
        let start = role.not_before.as_ref().unwrap_or(&self.not_before);
        let start_s = date::parse(start).unwrap_or(0);
        (start_s, start_s + i64::from(role.days.unwrap_or(self.days)) * date::DAY_S)
    }

    /// A digest of everything on which the certificates depend.
    pub fn digest(&self) -> [u8; 32] {
        // Serialising a parsed profile cannot fail; if it did, all such profiles would share a folder.
        openssl::sha::sha256(&serde_json::to_vec(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn built_in_profiles_are_well_formed() {
        assert_eq!(Profile::default().name, "lab");
        for name in Profile::names() {
            let (profile, _) = Profile::named(name).unwrap();
            assert_eq!(profile.name, name);
            assert!(profile.usual_keys().len() > 1);
        }
        let unknown = Profile::find("mine").unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown certificate profile 'mine'; accepted: lab, style-automated"),
            "{unknown}"
        );
    }

    #[test]
    fn comments_do_not_change_the_digest_and_values_do() {
        let profile = Profile::parse(&format!("# another comment\n{LAB}"), "x").unwrap();
        assert_eq!(profile.digest(), Profile::default().digest());
        let other = Profile::parse(&LAB.replace("serial_bytes = 16", "serial_bytes = 8"), "x").unwrap();
        assert_ne!(other.digest(), Profile::default().digest());
    }

    #[test]
    fn wrong_profiles_are_reported_with_file_key_and_accepted_values() {
        for (from, to, wanted) in [
            (
                "days = 10950",
                "dayz = 1",
                "line 7: unknown field `dayz`, expected one of `name`, `keys`, `not_before`, `days`",
            ),
            ("days = 10950", "days = 0", "days: '0' is not accepted; accepted: 1 to 100000"),
            ("2020-01-01", "2020-02-30", "not_before: '2020-02-30' is not accepted; accepted: a date"),
            ("rsa = \"sha256\"", "rsa = \"sha3\"", "unknown variant `sha3`, expected one of `md5`, `sha1`"),
            ("CN=client", "XX=client", "client.subject: 'XX=client.shakedown.test' is not accepted"),
            (
                "dns:server",
                "server",
                "server.subject_alternative_names: 'server.shakedown.test' is not accepted",
            ),
            ("\"server_auth\"", "\"serve\"", "unknown variant `serve`, expected one of `server_auth`"),
            ("[server]", "[server", "line"),
            (
                "Gateway; Shakedown Laboratory; ZZ;",
                "Gateway;",
                "server.wtls_name: 'Gateway; server.shakedown.test'",
            ),
        ] {
            let message = Profile::parse(&LAB.replacen(from, to, 1), "mine.toml").unwrap_err().to_string();
            assert!(message.starts_with("certificate profile mine.toml"), "{message}");
            assert!(message.contains(wanted), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
