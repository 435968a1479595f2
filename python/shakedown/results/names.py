"""What the files of a results folder are called, and the digests that tie its parts to its manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from shakedown.files.write import digest

MANIFEST, JOURNAL = "manifest.json", "parts.jsonl"

PART_KEY = "shakedown"
"""Where a part's metadata holds what it belongs to."""

OWN_NAMES = (MANIFEST, JOURNAL)

PART_NAME = re.compile(r"part-[0-9]{4,}\.parquet")


def manifest_digest(manifest: Mapping[str, object]) -> str:
    """The digest of a manifest as it is in JSON, however that is written."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return digest(json.dumps(rest, sort_keys=True).encode())


def line_digest(before: str, content: bytes) -> str:
    """The digest of a list of parts up to a line, from that up to the line before."""
    return digest(before.encode() + content)
