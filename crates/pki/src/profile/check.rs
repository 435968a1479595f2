//! Checks of a profile beyond its types.

use super::{Profile, Role};
use crate::date;
use crate::error::PkiError;
use crate::extension::general_name;
use crate::limits::quoted;
use shakedown_trace::suite::KeyType;
use x509_cert::der::asn1::ObjectIdentifier;

impl Profile {
    /// Checks values that the types do not restrict.
    pub(crate) fn check(&self, origin: &str) -> Result<(), PkiError> {
        let check = Check { origin };
        if let Some(keys) = &self.keys {
            let right = keys.contains('@') && keys.split('@').all(|key| KeyType::from_name(key).is_some());
            check.that(
                right,
                "keys",
                keys,
                "keys of suite names, leaf first and root last, such as p256@rsa2048",
            )?;
        }
        check.date("not_before", &self.not_before)?;
        check.days("days", self.days)?;
        check.end("days", &self.not_before, self.days)?;
        check.serial_bytes("serial_bytes", self.serial_bytes)?;
        check.that(!self.intermediates.is_empty(), "intermediate", "[]", "one table or more")?;
        check.role(self, "root", &self.root)?;
        for (index, role) in self.intermediates.iter().enumerate() {
            check.role(self, &format!("intermediate[{index}]"), role)?;
        }
        check.role(self, "server", &self.server)?;
        check.role(self, "client", &self.client)
    }
}

/// Checks whose errors name the origin of the values.
struct Check<'a> {
    origin: &'a str,
}

impl Check<'_> {
    fn that(&self, right: bool, key: &str, value: impl ToString, accepted: &str) -> Result<(), PkiError> {
        if right {
            return Ok(());
        }
        let (origin, key) = (self.origin.into(), key.into());
        let value = quoted(&value.to_string());
        Err(PkiError::ProfileValue { origin, key, value, accepted: accepted.into() })
    }

    fn serial_bytes(&self, key: &str, bytes: u8) -> Result<(), PkiError> {
        self.that((1..=20).contains(&bytes), key, bytes, "1 to 20 bytes")
    }

    fn date(&self, key: &str, text: &str) -> Result<(), PkiError> {
        self.that(date::parse(text).is_some(), key, text, "a date YYYY-MM-DD from 1950 on")
    }

    fn days(&self, key: &str, days: u32) -> Result<(), PkiError> {
        self.that((1..=100_000).contains(&days), key, days, "1 to 100000 days")
    }

    /// X.509 has no years beyond 9999.
    fn end(&self, key: &str, not_before: &str, days: u32) -> Result<(), PkiError> {
        let start_s = date::parse(not_before).unwrap_or(0);
        let in_time = start_s + i64::from(days) * date::DAY_S <= date::MAX_S;
        self.that(in_time, key, days, "as many days as end by 9999-12-31")
    }

    fn role(&self, profile: &Profile, name: &str, role: &Role) -> Result<(), PkiError> {
        let key = |field: &str| format!("{name}.{field}");
        self.that(
            !role.subject.is_empty(),
            &key("subject"),
            "[]",
            "one attribute or more, such as \"CN=name\"",
        )?;
        for attribute in &role.subject {
            self.that(
                attribute_of_name(attribute).is_some(),
                &key("subject"),
                attribute,
                "ATTRIBUTE=value with an attribute of X.500 such as C, ST, L, O, OU, CN, serialNumber, \
                 and a value of its length",
            )?;
        }
        if let Some(name) = &role.wtls_name {
            let right = name.split(';').count() > 2 && name.len() <= 255;
            self.that(right, &key("wtls_name"), name, "service; organization; country, 255 bytes at most")?;
        }
        if let Some(bytes) = role.serial_bytes {
            self.serial_bytes(&key("serial_bytes"), bytes)?;
        }
        if let Some(date) = &role.not_before {
            self.date(&key("not_before"), date)?;
        }
        if let Some(days) = role.days {
            self.days(&key("days"), days)?;
        }
        let start = role.not_before.as_deref().unwrap_or(&profile.not_before);
        self.end(&key("days"), start, role.days.unwrap_or(profile.days))?;
        if let Some(usage) = &role.key_usage {
            self.that(!usage.allow.is_empty(), &key("key_usage.allow"), "[]", "one usage or more")?;
        }
        for name in &role.subject_alternative_names {
            self.that(
                general_name(name).is_ok(),
                &key("subject_alternative_names"),
                name,
                "dns:NAME, ip:ADDRESS, uri:URI or email:ADDRESS, in ASCII",
            )?;
        }
        for (field, urls) in [
            ("ocsp_urls", &role.ocsp_urls),
            ("ca_issuers_urls", &role.ca_issuers_urls),
            ("crl_urls", &role.crl_urls),
        ] {
            for url in urls {
                self.that(is_visible_ascii(url), &key(field), url, "a URL in visible ASCII")?;
            }
        }
        for policy in &role.policies {
            self.object_identifier(&key("policies.oid"), &policy.oid)?;
            if let Some(cps) = &policy.cps {
                self.that(is_visible_ascii(cps), &key("policies.cps"), cps, "a URL in visible ASCII")?;
            }
        }
        for opaque in &role.opaque {
            self.object_identifier(&key("opaque.oid"), &opaque.oid)?;
        }
        Ok(())
    }

    fn object_identifier(&self, key: &str, oid: &str) -> Result<(), PkiError> {
        self.that(ObjectIdentifier::new(oid).is_ok(), key, oid, "an object identifier such as 2.23.140.1.2.1")
    }
}

/// Attribute and value of `CN=value`; `None` if OpenSSL rejects them in a name.
pub(crate) fn attribute_of_name(text: &str) -> Option<(&str, &str)> {
    let (attribute, value) = text.split_once('=')?;
    if attribute.contains('\0') || value.is_empty() {
        return None;
    }
    let mut name = openssl::x509::X509NameBuilder::new().ok()?;
    name.append_entry_by_text(attribute, value).ok()?;
    Some((attribute, value))
}

pub(crate) fn is_visible_ascii(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
