"""Experiments: their files, the kinds of figures, and running them on this machine or on a cluster."""
