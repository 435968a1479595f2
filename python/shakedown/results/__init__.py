"""Results folders: written completely, verified when read."""
