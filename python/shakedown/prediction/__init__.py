"""Recorded traces estimated on devices, carried over bearers, queued at servers."""
