"""Experiments: their files, the kinds of figures they make, and what runs them here or on a cluster."""
