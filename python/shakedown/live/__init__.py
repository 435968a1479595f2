"""What runs on real sockets and wall clocks."""
