"""Code that uses real sockets and wall clocks."""
