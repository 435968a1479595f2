//! The list of suites: combinations in which one part at a time differs from its default.

use crate::registry::Registry;
use serde::Serialize;
use shakedown_trace::Suite;
use shakedown_trace::suite::{Authentication, Cipher, Curve, Group, KeyExchange, KeyType, Mode, Protocol};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Canonical name, or the name that was not accepted.
    pub suite: String,
    pub stack: Option<String>,
    /// False if no stack supports it.
    pub supported: bool,
    pub reason: Option<String>,
}

/// Every protocol and key exchange in every authentication and mode, and for each its groups, keys and ciphers one at a
/// time. With `all`, suites that cannot run are listed too, with the reason.
pub fn suites(registry: &Registry, all: bool) -> Vec<Offer> {
    let mut offers: Vec<Offer> = Vec::new();
    for name in names() {
        let offer = match name.parse::<Suite>() {
            Ok(suite) => match registry.supports(&suite) {
                Ok(stack) => Offer {
                    suite: suite.to_string(),
                    stack: Some(stack.id().name.into_owned()),
                    supported: true,
                    reason: None,
                },
                Err(unsupported) => Offer {
                    suite: suite.to_string(),
                    stack: None,
                    supported: false,
                    reason: Some(unsupported.reason),
                },
            },
            Err(error) => {
                Offer { suite: name, stack: None, supported: false, reason: Some(plain(&error.to_string())) }
            }
        };
        if (all || offer.supported) && !offers.iter().any(|known| known.suite == offer.suite) {
            offers.push(offer);
        }
    }
    offers
}

/// The reason without the suite's name, and without the list of accepted values.
fn plain(message: &str) -> String {
    let reason = message.split_once("': ").map_or(message, |(_, reason)| reason);
    reason.split("; accepted").next().unwrap_or(reason).to_owned()
}

fn names() -> Vec<String> {
    let mut names = Vec::new();
    for (protocol, protocol_name) in Protocol::ALL {
        for exchange in KeyExchange::of(protocol) {
            let exchange_name = match exchange {
                KeyExchange::Ephemeral => "x25519",
                other => other.as_str(),
            };
            let base = format!("{protocol_name}/{exchange_name}");
            names.push(base.clone());
            for (_, mode) in Mode::ALL {
                let authentications = exchange.has_authentication().then_some(Authentication::ALL);
                for (_, authentication) in authentications.into_iter().flatten() {
                    names.push(format!("{base}/{authentication}/{mode}"));
                }
                names.push(format!("{base}/{mode}"));
            }
            if exchange.group_kind().is_some() {
                for group in Group::NAMED.iter().map(|row| row.0).chain(Curve::all().map(Group::Curve)) {
                    let group = group.name(protocol);
                    names.push(match exchange {
                        KeyExchange::Ephemeral => format!("{protocol_name}/{group}"),
                        _ => format!("{base}+{group}"),
                    });
                }
            }
            if exchange.leaf_kind().is_some() {
                names.extend(keys().map(|key| format!("{base}/{}", key.name(protocol))));
            }
            names.extend(Cipher::names(protocol).iter().map(|cipher| format!("{base}/{cipher}")));
        }
    }
    // A part that a key exchange cannot have is not listed.
    names.retain(|name| has_usable_parts(name));
    names
}

fn keys() -> impl Iterator<Item = KeyType> {
    let rsa = KeyType::RSA_BITS.map(|bits| KeyType::Rsa { bits, exponent_3: false });
    let rsa_e3 = KeyType::RSA_BITS.map(|bits| KeyType::Rsa { bits, exponent_3: true });
    let dsa = KeyType::DSA_BITS.map(KeyType::Dsa);
    let others = [KeyType::Ed25519, KeyType::MlDsa(44), KeyType::MlDsa(65), KeyType::MlDsa(87)];
    rsa.into_iter().chain(rsa_e3).chain(dsa).chain(Curve::all().map(KeyType::Ec)).chain(others)
}

/// False for a group or key of another kind than the key exchange uses.
fn has_usable_parts(name: &str) -> bool {
    use shakedown_trace::suite::SuiteError;
    !matches!(name.parse::<Suite>(), Err(SuiteError::UnusableGroup { .. } | SuiteError::UnusableKey { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_large_and_its_names_are_canonical() {
        let offers = suites(&Registry::default(), false);
        assert!(offers.len() > 500, "{}", offers.len());
        for offer in &offers {
            let suite: Suite = offer.suite.parse().expect("supported suites parse");
            assert_eq!(suite.to_string(), offer.suite);
        }
    }

    #[test]
    fn unsupported_suites_have_a_reason() {
        let offers = suites(&Registry::default(), true);
        let impossible = offers.iter().find(|offer| offer.suite == "tls1.3/psk/resumed").expect("listed");
        assert!(impossible.reason.as_deref().is_some_and(|reason| reason.contains("pre-shared key")));
        assert!(offers.iter().any(|offer| offer.suite.starts_with("dtls1.2/") && !offer.supported));
    }
}
