"""Files as they come in and go out: bounded reading, durable writing, TOML with its lines."""
