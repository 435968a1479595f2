//! Code that the fuzz targets share: synthetic cryptography, configurations, seed conversations, and captures of them.
//!
//! Synthetic cryptography has the right formats and sizes, but no security: every signature of the right length
//! verifies, every MAC is zero, and encryption does not change data. A fuzzer therefore reaches the code behind it.

#![forbid(unsafe_code)]

mod access;
mod attaching;
mod captures;
mod environment;
mod scripted;
mod synthetic;

pub use access::{Sponge, conversation_seed, radius_seed};
pub use attaching::{Environment as AkaEnvironment, Handshaker, message_seeds};
pub use captures::{Talk, as_next_generation, as_pieces, talks, write_capture};
pub use environment::{Choices, Environment, FLOWS, Flow, certificate_bytes, flow, genuine, steps};
pub use synthetic::{Synthetic, SyntheticKey};

/// Sends arbitrary datagrams to one side of a connection, and asserts that its output per datagram is limited.
#[macro_export]
macro_rules! send_arbitrary {
    ($side:ident, $environment:ident, $input:ident) => {
        for (_, _, datagram) in $crate::steps($input) {
            $side.handle_input(&mut $environment.cx(), datagram);
            let mut answers = 0;
            while let Some(answer) = $side.poll_transmit() {
                assert!(!answer.is_empty());
                answers += answer.len();
            }
            assert!(answers <= 4_096 + datagram.len(), "{answers} bytes for {}", datagram.len());
            while $side.poll_event().is_some() {}
            if let Some(deadline) = $side.poll_timeout().filter(|_| datagram.len() % 7 == 0) {
                $environment.now = $environment.now.max(deadline);
                $side.handle_timeout(&mut $environment.cx());
            }
            let _ = $side.write(&mut $environment.cx(), b"data");
            while $side.poll_transmit().is_some() {}
        }
    };
}
