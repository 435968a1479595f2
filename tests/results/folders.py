"""Results folders for tests, of real measurements."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

import real
from shakedown.experiments.figure_kinds import kind
from shakedown.native.scenario import Scenario
from shakedown.results.folder import Results
from shakedown.results.names import MANIFEST, manifest_digest
from shakedown.results.writer import ResultsWriter
from shakedown.schema.saved import Manifest, Planned

SUITES = ("tls1.2/dhe_rsa+dh2048/rsa2048/server", "tls1.2/psk", "tls1.3/x25519mlkem768/mldsa65/server")


def manifest(**more: object) -> Manifest:
    return Manifest(**{"provenance": "0123456789ab", "created": "2026-01-31T12:00:00+00:00", **more})


def planned(*suites: str) -> tuple[Planned, ...]:
    return tuple(Planned(kind="measured", about=suite) for suite in suites)


def table_of(suite: str) -> pl.DataFrame:
    one = real.measurement(suite)
    return kind("measured").table([(Scenario(kind="measured", handshake=real.identity(one)), one)])


def in_memory(table: pl.DataFrame) -> Results:
    return Results(manifest(), table)


def write(folder: Path, *suites: str, **more: object) -> ResultsWriter:
    writer = ResultsWriter(folder, manifest(planned=planned(*suites), **more))
    for suite in suites:
        writer.add("measured", suite, table_of(suite))
    return writer


def edit(folder: Path, **changes: object) -> None:
    """Changes keys of a manifest and updates its digest."""
    path = folder / MANIFEST
    changed = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({**changed, "sha256": manifest_digest(changed)}))


def listed(folder: Path) -> list[dict]:
    """The parts that a manifest lists."""
    return json.loads((folder / MANIFEST).read_text())["parts"]
