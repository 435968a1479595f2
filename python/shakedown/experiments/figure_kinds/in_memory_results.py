"""Results without a results folder: objects that `measure` returns, and JSON files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from shakedown import native
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import Kind, captured
from shakedown.files.limits import MAX_TRACES_BYTES, parse_json, read_bytes
from shakedown.native.scenario import CaptureFile, HandshakeId, Scenario
from shakedown.results.folder import Results
from shakedown.results.table import empty
from shakedown.schema.base import convert
from shakedown.schema.measured import Measurement
from shakedown.schema.saved import AboutExperiment, Manifest
from shakedown.schema.trace import CapturedTrace

UNSAVED = "unsaved"


def results_of(
    measurements: Iterable[Measurement] = (),
    manifest: Manifest | None = None,
    captures: Iterable[captured.Capture] = (),
) -> Results:
    """Measurements and captures as results, without a results folder."""
    tables = []
    for one in measurements:
        identity = HandshakeId(
            suite=one.suite,
            client_stack=one.client_stack.name,
            server_stack=one.server_stack.name,
            carrier=one.carrier,
            credentials=one.credentials,
        )
        tables.append(Kind("measured").table([(Scenario(kind="measured", handshake=identity), one)]))
    for capture in captures:
        place = Scenario(kind="captured", capture=CaptureFile(file=capture.name))
        tables.append(Kind("captured").table([(place, capture)]))
    table = pl.concat(tables) if tables else empty()
    table = table.with_columns(provenance=pl.lit(UNSAVED))
    return Results(manifest or Manifest(provenance=UNSAVED, created=""), table)


def results_of_json(path: str | Path) -> Results:
    """Converts a file of objects of `measure --json` or `inspect --traces-out` to results.

    Raises `InputError` with one line if the file has other content.
    """
    path = Path(path)
    accepted = "accepted: what measure --json prints, or inspect --traces-out writes"
    try:
        found = parse_json(read_bytes(path, MAX_TRACES_BYTES, "file of traces"), str(path))
    except InputError as error:
        raise InputError(f"{error}; {accepted}") from None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path}: holds no traces; {accepted}")
    measurements: list[Measurement] = []
    traces: list[CapturedTrace] = []
    for number, one in enumerate(found, start=1):
        where, kind = f"{path}: trace {number}", one.get("kind")
        try:
            if kind == "measured":
                measurements.append(convert(one, Measurement, where))
            elif kind == "captured":
                traces.append(convert(one, CapturedTrace, where))
            else:
                raise InputError(f'{path}: a trace\'s kind is neither "measured" nor "captured"')
            if not one["messages"]:
                raise InputError(f"{where}: messages: is empty")
        except InputError as error:
            raise InputError(f"{error}; {accepted}") from None
        try:
            native.canonical(one["suite"])
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
    identities = [
        (one.suite, one.client_stack, one.server_stack, one.carrier, one.credentials) for one in measurements
    ]
    if len(set(identities)) < len(identities):
        raise InputError(f"{path}: a suite of the same stacks and credentials is repeated; {accepted}")
    about = AboutExperiment(title=f"What {path.name} holds")
    captures = [captured.capture_of_traces(path.name, traces)] if traces else []
    return results_of(measurements, Manifest(provenance=UNSAVED, created="", experiment=about), captures)
