//! The list of the available stacks.

use crate::stack::{SetupError, Stack, Unsupported};
use crate::wtls;
use serde::Serialize;
use shakedown_trace::suite::{KeyExchange, Protocol};
use shakedown_trace::{Side, Suite};
use std::fmt;
use std::sync::Arc;

/// Stacks by name, the preferred ones first.
#[derive(Clone)]
pub struct Registry {
    stacks: Arc<[Arc<dyn Stack>]>,
}

impl Default for Registry {
    /// All stacks of this program, with their default options.
    fn default() -> Self {
        Self::with(wtls::Options::default())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.stacks.iter().map(|stack| stack.id())).finish()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The name in options and results.
    pub name: String,
    pub version: String,
    /// Protocols with at least one suite that the stack supports as a client.
    pub client: Vec<&'static str>,
    /// Protocols with at least one suite that the stack supports as a server.
    pub server: Vec<&'static str>,
}

impl Registry {
    pub fn with(wtls: wtls::Options) -> Self {
        Self::new(crate::stacks(wtls))
    }

    pub fn new(stacks: Vec<Arc<dyn Stack>>) -> Self {
        Self { stacks: stacks.into() }
    }

    /// All stacks, the preferred ones first.
    pub fn stacks(&self) -> impl Iterator<Item = &Arc<dyn Stack>> {
        self.stacks.iter()
    }

    pub fn get(&self, name: &str) -> Result<&Arc<dyn Stack>, SetupError> {
        let names = || self.stacks().map(|stack| stack.id().name.into_owned()).collect::<Vec<_>>().join(", ");
        let found = self.stacks().find(|stack| stack.id().name == name);
        found.ok_or_else(|| SetupError::UnknownStack { name: name.to_owned(), accepted: names() })
    }

    /// The stack with this name, if it supports this side of the suite; without a name, the first that supports it.
    pub fn choose(
        &self,
        suite: &Suite,
        side: Side,
        name: Option<&str>,
    ) -> Result<&Arc<dyn Stack>, SetupError> {
        let refuse = |reason: String| Unsupported { suite: suite.to_string(), reason };
        if let Some(name) = name {
            let stack = self.get(name)?;
            return stack.supports(suite, side).map(|()| stack).map_err(|reason| refuse(reason).into());
        }
        let mut reasons = Vec::new();
        for stack in self.stacks() {
            match stack.supports(suite, side) {
                Ok(()) => return Ok(stack),
                Err(reason) => reasons.push((stack.speaks(suite.protocol), reason)),
            }
        }
        // The reason of a stack that supports the protocol is more useful than that of another stack.
        let best = reasons.iter().find(|(speaks, _)| *speaks);
        let no_stack = || format!("no stack here runs {}", suite.protocol.as_str());
        Err(refuse(best.map_or_else(no_stack, |(_, reason)| reason.clone())).into())
    }

    /// Checks that both sides of a suite have a default stack, and returns the server's.
    pub fn supports(&self, suite: &Suite) -> Result<&Arc<dyn Stack>, Unsupported> {
        let chosen =
            self.choose(suite, Side::Client, None).and_then(|_| self.choose(suite, Side::Server, None));
        chosen.map_err(|error| match error {
            SetupError::Unsupported(unsupported) => unsupported,
            other => Unsupported { suite: suite.to_string(), reason: other.to_string() },
        })
    }

    pub fn entries(&self) -> Vec<Entry> {
        let entry = |stack: &Arc<dyn Stack>| {
            let id = stack.id();
            let runs = |side| {
                let protocols =
                    Protocol::ALL.into_iter().filter(|(protocol, _)| stack.speaks_as(*protocol, side));
                protocols.map(|(_, name)| name).collect()
            };
            Entry {
                name: id.name.into_owned(),
                version: id.version.into_owned(),
                client: runs(Side::Client),
                server: runs(Side::Server),
            }
        };
        self.stacks().map(entry).collect()
    }
}

impl dyn Stack {
    /// Whether the stack supports at least one suite of a protocol, on any side.
    fn speaks(&self, protocol: Protocol) -> bool {
        Side::BOTH.into_iter().any(|side| self.speaks_as(protocol, side))
    }

    fn speaks_as(&self, protocol: Protocol, side: Side) -> bool {
        let suites = plain_suites(protocol);
        suites.iter().any(|suite| self.supports(suite, side).is_ok())
    }
}

/// One suite for each key exchange of a protocol, with default values for all other parts.
pub(crate) fn plain_suites(protocol: Protocol) -> Vec<Suite> {
    let name = |exchange: &KeyExchange| match exchange {
        KeyExchange::Ephemeral => "x25519",
        other => other.as_str(),
    };
    let names = KeyExchange::of(protocol).iter().map(name);
    names.filter_map(|name| format!("{}/{name}", protocol.as_str()).parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn stacks_list_their_protocols() {
        let entries = Registry::default().entries();
        let of = |name: &str| entries.iter().find(|entry| entry.name == name).unwrap().client.clone();
        assert_eq!(of("openssl"), ["ssl3", "tls1.0", "tls1.1", "tls1.2", "tls1.3"]);
        assert_eq!(of("wtls"), ["wtls"]);
    }

    #[test]
    fn stack_is_chosen_by_name_or_capability() {
        let registry = Registry::default();
        let suite: Suite = "tls1.2/psk".parse().unwrap();
        assert_eq!(registry.choose(&suite, Side::Client, None).unwrap().id().name, "openssl");
        let refused = registry.choose(&suite, Side::Server, Some("wtls")).err().unwrap().to_string();
        assert!(refused.starts_with("tls1.2/psk: the stack wtls runs wtls only"), "{refused}");
        let unknown = registry.get("gnutls").err().unwrap().to_string();
        assert_eq!(unknown, "unknown stack 'gnutls'; accepted: openssl, rustls, wtls");
    }
}
