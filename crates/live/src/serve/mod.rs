//! Servers for every stack: TLS over TCP, WTLS over UDP.
