"""Files: bounded reading, durable writing, TOML with line numbers."""
