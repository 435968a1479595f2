//! What is loaded.

use super::error::LoadError;
use shakedown_trace::Suite;
use shakedown_trace::endpoint::Transport;
use shakedown_trace::suite::Protocol;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

/// A server's address, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As the user wrote it.
    pub text: String,
    /// Name or address.
    pub host: String,
    /// What the name stands for: the first address.
    pub address: SocketAddr,
    /// What carries the protocol.
    pub transport: Transport,
    /// The address is this machine's.
    pub is_own: bool,
}

impl Target {
    /// Reads a target and looks its name up.
    ///
    /// # Errors
    /// [`LoadError::Target`], [`LoadError::Unknown`] for a name without an address, [`LoadError::Protocol`] where the
    /// suite does not go with it.
    pub fn resolve(text: &str, suite: Option<&Suite>) -> Result<Self, LoadError> {
        let refused = |reason: &str| LoadError::Target {
            target: text.chars().take(80).collect(),
            reason: reason.into(),
        };
        let (scheme, rest) =
            text.split_once("://").map_or((None, text), |(scheme, rest)| (Some(scheme), rest));
        let wtls_suite = suite.is_some_and(|suite| suite.protocol == Protocol::Wtls);
        let wtls = match scheme {
            None => wtls_suite,
            Some("tls") => false,
            Some("wtls") => true,
            Some(_) => return Err(refused("is of another scheme")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(|| refused("has no port"))?;
        let port: u16 = port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| refused("has no port from 1 to 65535"))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.contains('/') {
            return Err(refused("has no host"));
        }
        if wtls != wtls_suite {
            return Err(LoadError::Protocol { target: text.to_owned() });
        }
        let unknown = |reason: String| LoadError::Unknown { host: host.to_owned(), reason };
        let mut addresses = (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let address = addresses.next().ok_or_else(|| unknown("has no address".into()))?;
        Ok(Self {
            text: text.to_owned(),
            host: host.to_owned(),
            address,
            transport: if wtls { Transport::Datagram } else { Transport::Stream },
            is_own: is_own(address),
        })
    }
}

/// True for this machine's addresses: loopback, and those that a socket can be bound to.
fn is_own(address: SocketAddr) -> bool {
    address.ip().is_loopback() || UdpSocket::bind((address.ip(), 0)).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_are_read_in_every_form() {
        let wtls: Suite = "wtls/ecdh_anon+163k".parse().unwrap();
        let tls: Suite = "tls1.3/x25519/p256/server".parse().unwrap();
        for (text, suite, transport) in [
            ("127.0.0.1:443", None, Transport::Stream),
            ("tls://127.0.0.1:443/", Some(&tls), Transport::Stream),
            ("tls://[::1]:443", None, Transport::Stream),
            ("127.0.0.1:443", Some(&wtls), Transport::Datagram),
            ("wtls://127.0.0.1:443", Some(&wtls), Transport::Datagram),
        ] {
            let target = Target::resolve(text, suite).unwrap();
            assert_eq!(
                (target.transport, target.address.port(), target.is_own),
                (transport, 443, true),
                "{text}"
            );
        }
    }

    #[test]
    fn no_target_is_an_error_of_its_own_kind() {
        let told = |text: &str| Target::resolve(text, None).unwrap_err().to_string();
        assert!(told("localhost").contains("has no port;"));
        assert!(told("localhost:0").contains("has no port from 1 to 65535"));
        assert!(told(":443").contains("has no host"));
        assert!(told("ftp://localhost:21").contains("is of another scheme"));
        assert!(told("wtls://localhost:9203").contains("takes a WTLS suite"));
        assert!(told("name.invalid:443").starts_with("name.invalid: "));
    }

    #[test]
    fn documentation_addresses_are_nobodys() {
        assert!(!is_own("192.0.2.1:443".parse().unwrap()));
    }
}
