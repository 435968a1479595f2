//! EAP-TLS over RADIUS on UDP sockets: a peer at a rate, and a server.
