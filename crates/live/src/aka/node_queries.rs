//! Queries of an SGSN to other nodes. A query ends with its attach, and the number of queries to one node is limited.

use super::sockets::{MAX_ANSWER, POLL_INTERVAL, connect, locked, read, ready};
use shakedown_aka::core::{Answer, Query};
use shakedown_aka::frame::Frames;
use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum number of simultaneous queries to one node for unauthenticated clients; further ones are not sent. An
/// attacker who names a silent node, or queries for all its subscribers, can exhaust neither its places nor those of
/// this node. Queries for authenticated mobiles, which have their own places at this node, are not counted.
pub(super) const MAX_UNPROVED: usize = 32;

pub(super) struct NodeQueries {
    timeout: Duration,
    unproved: Mutex<HashMap<SocketAddr, usize>>,
}

impl Default for NodeQueries {
    fn default() -> Self {
        Self { timeout: MAX_ANSWER, unproved: Mutex::default() }
    }
}

/// A query that is counted until it ends.
struct Counted<'a> {
    queries: &'a NodeQueries,
    address: SocketAddr,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut unproved = locked(&self.queries.unproved);
        if let Some(count) = unproved.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                unproved.remove(&self.address);
            }
        }
    }
}

/// True for queries that precede the authentication of a mobile.
fn is_unproved(query: &Query) -> bool {
    matches!(query, Query::Context { .. } | Query::CrossCertificate { .. })
}

impl NodeQueries {
    /// Queries a node. `None` if it does not answer in time or before `is_over`, or if too many queries wait.
    pub(super) fn ask(
        &self,
        address: SocketAddr,
        query: &Query,
        is_over: &dyn Fn() -> bool,
    ) -> Option<Answer> {
        let _counted = if is_unproved(query) { Some(self.count(address)?) } else { None };
        let until = Instant::now() + self.timeout;
        let mut step = || if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let mut stream = connect(address, self.timeout, &mut step).ok()?;
        ready(&stream, POLL_INTERVAL).then_some(())?;
        stream.write_all(&query.to_bytes()).ok()?;
        let (mut frames, mut buffer) = (Frames::default(), [0; 4096]);
        while Instant::now() < until && !is_over() {
            let length = read(&stream, &mut buffer)?;
            frames.push(&buffer[..length]);
            if let Some((kind, body)) = frames.next_frame() {
                return Answer::read(kind, &body).ok();
            }
        }
        None
    }

    fn count(&self, address: SocketAddr) -> Option<Counted<'_>> {
        let mut unproved = locked(&self.unproved);
        let count = unproved.entry(address).or_default();
        if *count >= MAX_UNPROVED {
            return None;
        }
        *count += 1;
        Some(Counted { queries: self, address })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use shakedown_aka::names::{Imsi, Network, NodeName};
    use std::io::Read;
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// At most `MAX_UNPROVED` queries wait for a silent node, and each ends with its attach.
    #[test]
    fn queries_to_a_silent_node_are_limited_and_end_with_the_attach() {
        let mute = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = mute.local_addr().unwrap();
        // The queries end because they are stopped, not by the timeout.
        let queries = NodeQueries { timeout: Duration::from_secs(600), ..NodeQueries::default() };
        let over = AtomicBool::new(false);
        let is_over = || over.load(Ordering::Relaxed);
        let context = Query::Context { ptmsi: 1 };
        let location = Query::Location {
            serving: Network::new("20801").unwrap(),
            node: NodeName::new("sgsn-1").unwrap(),
            imsi: Imsi::new("202010000000000").unwrap(),
            certificate: None,
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                (0..MAX_UNPROVED).map(|_| scope.spawn(|| queries.ask(address, &context, &is_over))).collect();
            let mut accepted: Vec<_> = (0..MAX_UNPROVED).map(|_| mute.accept().unwrap().0).collect();
            assert_eq!(queries.ask(address, &context, &|| panic!("it is asked")), None);
            assert_eq!(locked(&queries.unproved)[&address], MAX_UNPROVED);
            // Queries for authenticated mobiles are not limited.
            let other = scope.spawn(|| queries.ask(address, &location, &is_over));
            let mut proved = mute.accept().unwrap().0;
            proved.read_exact(&mut [0; 3]).unwrap();
            proved.write_all(&Answer::Located.to_bytes()).unwrap();
            assert_eq!(other.join().unwrap(), Some(Answer::Located));
            over.store(true, Ordering::Relaxed);
            for one in asked {
                assert_eq!(one.join().unwrap(), None);
            }
            // The connections are closed: the stream ends after the query.
            for one in &mut accepted {
                let mut said = Vec::new();
                let _ = one.read_to_end(&mut said);
                assert!(said.len() <= context.to_bytes().len());
            }
        });
        assert!(locked(&queries.unproved).is_empty());
    }
}
