"""The names of a results folder's files, and the digests that connect its parts to its manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from shakedown.files.write import digest

MANIFEST, JOURNAL = "manifest.json", "parts.jsonl"

PART_KEY = "shakedown"
"""The key in a part's Parquet metadata that identifies its run."""

OWN_NAMES = (MANIFEST, JOURNAL)

PART_NAME = re.compile(r"part-[0-9]{4,}\.parquet")


def manifest_digest(manifest: Mapping[str, object]) -> str:
    """The digest of a manifest's content, independent of the formatting of its JSON."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return digest(json.dumps(rest, sort_keys=True).encode())


def line_digest(before: str, content: bytes) -> str:
    """The digest of a list of parts up to a line, from the digest up to the previous line."""
    return digest(before.encode() + content)
