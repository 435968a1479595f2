"""Saved results as one page for people, with figures beside it."""

from __future__ import annotations
