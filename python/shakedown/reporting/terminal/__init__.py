"""Output on a terminal: tables and figures with units."""
