//! The only crate with sockets and wall clocks: it runs the endpoints that are measured in memory on a real network.

pub mod aka;
pub mod bearer;
pub mod connection_cost;
pub mod eap;
pub mod load;
mod maybe_recorded;
pub mod serve;
pub mod socket;
mod stamped;
mod trace_line;
