//! An open-loop load generator for TLS servers and WTLS gateways.
