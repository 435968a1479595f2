"""Recorded traces priced on devices, carried over bearers, queued at servers."""
