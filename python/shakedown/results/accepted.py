"""What objects and manifests that come back from a disk must hold, as shapes (see `results.shapes`)."""

from __future__ import annotations

from typing import Any

from shakedown.measurement import CLASSES
from shakedown.pricing.trace import MESSAGE, OPERATION, TRACE
from shakedown.results.shapes import (
    BOOLEAN,
    NUMBER,
    OBJECT,
    SIZE,
    STRING,
    TEXT,
    WHOLE,
    Choice,
    Leaf,
    Some,
    one_of,
)

_BYTES: dict[str, Any] = {"client_to_server": SIZE, "server_to_client": SIZE, "total": SIZE}
_PER_SIDE: dict[str, Any] = {"client": NUMBER, "server": NUMBER}
_SPREAD: dict[str, Any] = {
    **dict.fromkeys(("median", "mean", "sd", "min", "max"), NUMBER),
    "n": WHOLE,
}
_WHOSE = one_of("own", "made")

CAPTURED: dict[str, Any] = {**TRACE, "bytes": _BYTES, "flights": WHOLE}
"""An object that `inspect --traces` writes."""

MEASURED: dict[str, Any] = {
    **CAPTURED,
    "client_stack": {"name": TEXT, "version": STRING},
    "server_stack": {"name": TEXT, "version": STRING},
    "repeat": WHOLE,
    "preempted": WHOLE,
    "clock": STRING,
    "handshake": {"client_us": _SPREAD, "server_us": _SPREAD},
    "messages": Some(
        MESSAGE | dict.fromkeys(("generate_us", "process_us", "generate_mean_us", "process_mean_us"), NUMBER)
    ),
    "operations": [
        OPERATION | {"class": one_of(*CLASSES), "us": NUMBER, "mean_us": NUMBER, "count": SIZE, "bytes": SIZE}
    ],
    "unattributed_us": _PER_SIDE | {"client_mean": NUMBER, "server_mean": NUMBER},
    "memory?": {
        **dict.fromkeys(
            ("client_peak_bytes", "client_held_bytes", "server_peak_bytes", "server_held_bytes"), NUMBER
        ),
        "context_bytes": _PER_SIDE,
        "released_bytes": NUMBER,
    },
    "certificates?": {"client?": _WHOSE, "server?": _WHOSE},
}
"""An object that `measure --json` prints (see `shakedown.measurement`)."""

_CERTIFICATE: dict[str, Any] = {
    "kind": TEXT,
    "subject": STRING,
    "issuer": STRING,
    "not_before": STRING,
    "not_after": STRING,
    "is_self_signed": BOOLEAN,
    "alternative_names": [STRING],
    "fingerprint": STRING,
    "bytes": WHOLE,
    "key": {"name": STRING, "security_bits": NUMBER},
    "signature": {"algorithm": STRING, "digest": Choice(STRING, None)},
    "parts": [{"name": STRING, "bytes": WHOLE}],
}
_MOMENT = Leaf(
    "Unix seconds before the year 10000", lambda value: WHOLE.fits(value) and value < 253_402_300_800
)
_CERTIFICATES: dict[str, Any] = {
    "suites": [STRING],
    "files": {"chain": TEXT, "key?": STRING, "ca?": STRING},
    "judged_at": _MOMENT,
    "level": WHOLE,
    "keys_name": Choice(STRING, None),
    "travelling_bytes": WHOLE,
    "certificates": Some(_CERTIFICATE),
    "refusals": [{"place": Choice(WHOLE, None), "detail": STRING}],
}
_WORDS = Choice(STRING, None)

ABOUT_A_RUN: dict[str, Any] = {
    "created?": STRING,
    "parts?": WHOLE,
    "tables?": [STRING],
    "experiment?": Choice({"name?": _WORDS, "title?": _WORDS, "question?": _WORDS, "text?": _WORDS}, None),
    "build?": Choice({"shakedown?": STRING}, None),
    "machine?": Choice(OBJECT, None),
    "command?": Choice([STRING], None),
    "failures?": Choice([{"suite": STRING, "reason": STRING}], None),
    "certificates?": Choice({"server?": _CERTIFICATES, "client?": _CERTIFICATES}, None),
}
"""The manifest of a results folder, as far as anything reads it."""
