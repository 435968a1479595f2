//! Under which name anything is measured, kept, compared and cached.

use crate::spelled;
use crate::suite::Suite;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// An implementation of protocols: its name and version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StackId {
    /// As options and files write it.
    pub name: Cow<'static, str>,
    pub version: Cow<'static, str>,
}

impl StackId {
    pub fn new(name: impl Into<Cow<'static, str>>, version: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

impl fmt::Display for StackId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version.as_ref() {
            "" => formatter.pad(&self.name),
            version => formatter.pad(&format!("{} {version}", self.name)),
        }
    }
}

spelled! {
    /// In what a handshake is carried.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Carrier {
        /// Nothing: its records go straight into TCP or UDP.
        #[default]
        Bare = "bare",
        Eap = "eap",
    }
}

/// Whose keys and certificates a handshake presents.
///
/// Its text is `generated`, `generated:PROFILE`, or `user-supplied:FINGERPRINT`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Credentials {
    /// Generated here by the default certificate profile, or none at all.
    #[default]
    Generated,
    /// Generated here by another certificate profile, which has this name.
    GeneratedBy(String),
    /// Supplied by the user; the text tells one user's from another's.
    UserSupplied(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown credentials '{0}'; accepted: generated, generated:PROFILE, user-supplied:FINGERPRINT")]
pub struct UnknownCredentials(pub String);

impl fmt::Display for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generated => formatter.pad("generated"),
            Self::GeneratedBy(profile) => formatter.pad(&format!("generated:{profile}")),
            Self::UserSupplied(fingerprint) => formatter.pad(&format!("user-supplied:{fingerprint}")),
        }
    }
}

impl FromStr for Credentials {
    type Err = UnknownCredentials;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "generated" => Ok(Self::Generated),
            Some(("generated", profile)) if !profile.is_empty() => Ok(Self::GeneratedBy(profile.to_owned())),
            Some(("user-supplied", fingerprint)) if !fingerprint.is_empty() => {
                Ok(Self::UserSupplied(fingerprint.to_owned()))
            }
            _ => Err(UnknownCredentials(text.to_owned())),
        }
    }
}

impl Serialize for Credentials {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Credentials {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What tells one kind of handshake from another. Figures of equal identity may be compared over time; figures that
/// differ in one part may be laid side by side.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandshakeId {
    pub suite: Suite,
    pub client_stack: StackId,
    pub server_stack: StackId,
    pub carrier: Carrier,
    pub credentials: Credentials,
}

impl fmt::Display for HandshakeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({} against {}", self.suite, self.client_stack, self.server_stack)?;
        if self.carrier != Carrier::Bare {
            write!(formatter, ", {}", self.carrier)?;
        }
        if self.credentials != Credentials::Generated {
            write!(formatter, ", {}", self.credentials)?;
        }
        formatter.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_read_back_as_they_are_written() {
        for credentials in [
            Credentials::Generated,
            Credentials::GeneratedBy("iot".into()),
            Credentials::UserSupplied("1f3a".into()),
        ] {
            assert_eq!(credentials.to_string().parse(), Ok(credentials));
        }
        for text in ["", "own", "generated:", "user-supplied", "user-supplied:"] {
            assert!(text.parse::<Credentials>().is_err(), "{text}");
        }
    }

    #[test]
    fn identities_say_what_is_unusual() {
        let mut id = HandshakeId {
            suite: "tls1.2/psk".parse().expect("a suite"),
            client_stack: StackId::new("openssl", "3.5.5"),
            server_stack: StackId::new("unknown", ""),
            carrier: Carrier::Bare,
            credentials: Credentials::Generated,
        };
        assert_eq!(id.to_string(), "tls1.2/psk (openssl 3.5.5 against unknown)");
        id.carrier = Carrier::Eap;
        id.credentials = Credentials::UserSupplied("1f3a".into());
        assert_eq!(id.to_string(), "tls1.2/psk (openssl 3.5.5 against unknown, eap, user-supplied:1f3a)");
    }
}
