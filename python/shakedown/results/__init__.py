"""Results folders: written whole, read back checked."""
