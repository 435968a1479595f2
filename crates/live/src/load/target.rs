//! The target of a load: its address and transport.

use super::error::LoadError;
use shakedown_trace::Suite;
use shakedown_trace::endpoint::Transport;
use shakedown_trace::suite::Protocol;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// Time limit for an address of this machine to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub text: String,
    /// Name or address.
    pub host: String,
    /// The first address of the name; of several addresses of this machine, the first with a listener.
    pub address: SocketAddr,
    pub transport: Transport,
    pub is_own: bool,
}

impl Target {
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
        let addresses = (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let addresses: Vec<_> = addresses.collect();
        let answering = (!wtls).then(|| answering(&addresses)).flatten();
        let address = answering.or(addresses.first().copied());
        let address = address.ok_or_else(|| unknown("has no address".into()))?;
        Ok(Self {
            text: text.to_owned(),
            host: host.to_owned(),
            address,
            transport: if wtls { Transport::Datagram } else { Transport::Stream },
            is_own: is_own(address),
        })
    }
}

/// The first address with a listener, if a name such as `localhost` has several addresses, all of this machine. Nothing
/// is sent to other machines before the permission to load them is checked.
fn answering(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    if addresses.len() < 2 || !addresses.iter().copied().all(is_own) {
        return None;
    }
    addresses.iter().copied().find(|address| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok())
}

/// True for this machine's addresses: loopback, and those to which a socket can be bound. Multicast addresses can be
/// bound too, but do not belong to this machine.
fn is_own(address: SocketAddr) -> bool {
    let ip = address.ip();
    ip.is_loopback() || !ip.is_multicast() && UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_are_parsed_in_every_form() {
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
    fn each_invalid_target_has_its_error() {
        let told = |text: &str| Target::resolve(text, None).unwrap_err().to_string();
        assert!(told("localhost").contains("has no port;"));
        assert!(told("localhost:0").contains("has no port from 1 to 65535"));
        assert!(told(":443").contains("has no host"));
        assert!(told("ftp://localhost:21").contains("is of another scheme"));
        assert!(told("wtls://localhost:9203").contains("needs a WTLS suite"));
        assert!(told("name.invalid:443").starts_with("name.invalid: "));
    }

    #[test]
    fn local_address_with_a_listener_is_chosen() {
        let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
        let there = listener.local_addr().unwrap();
        let refused = SocketAddr::new("127.0.0.3".parse().unwrap(), there.port());
        assert_eq!(answering(&[refused, there]), Some(there));
        assert_eq!(answering(&[there, refused]), Some(there));
        assert_eq!(answering(&[refused, refused]), None);
        // Addresses of other machines get no connection.
        assert_eq!(answering(&["192.0.2.1:443".parse().unwrap(), there]), None);
    }

    #[test]
    fn multicast_addresses_are_not_local() {
        assert!(!is_own("239.1.2.3:9203".parse().unwrap()));
        assert!(!is_own("[ff02::1]:9203".parse().unwrap()));
        assert!(is_own("127.0.0.1:1".parse().unwrap()));
    }

    #[test]
    fn documentation_addresses_are_not_local() {
        assert!(!is_own("192.0.2.1:443".parse().unwrap()));
    }
}
