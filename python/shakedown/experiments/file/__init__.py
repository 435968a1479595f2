"""Experiments: a TOML file that names suites, repetitions, devices and bearers.

    name = "quickstart"
    title = "Which handshake for a small device?"
    question = "What does a sensor pay to open a connection?"
    suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
    repeat = 30

A table for each side names user-supplied certificates, and captures are inspected and estimated like suites:

    captures = [{ file = "gateway.pcapng", keylog = "keys.log" }]

    [server]
    chain = "gateway.pem"
    key = "gateway.key"

Every error is one line: file, line, key, the value, and the accepted values. Keys for several kinds of
figures are read here; each kind declares and reads its own table (`table.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from shakedown.errors import InputError
from shakedown.experiments.file.captures import read_captures
from shakedown.experiments.file.document import Document
from shakedown.experiments.file.experiment import Experiment
from shakedown.experiments.file.options import keys, read_options
from shakedown.experiments.file.places import KEYS as PLACE_KEYS
from shakedown.experiments.file.places import read_places
from shakedown.experiments.file.suites import KEYS as SUITE_KEYS
from shakedown.experiments.file.suites import read_side_files, read_suites
from shakedown.experiments.file.table import Table
from shakedown.schema.saved import AboutExperiment


def known_keys(tables: Iterable[str]) -> set[str]:
    """The top-level keys of a file, including the `tables` of single kinds."""
    return {"name", "title", "question", "captures", "wtls", *PLACE_KEYS, *SUITE_KEYS, *keys(), *tables}


def read_experiment(path: str | Path, tables: Mapping[str, Table]) -> Experiment:
    """Reads and checks an experiment; `tables` are those of single kinds. Raises `InputError`."""
    document = Document(Path(path))
    document.no_others(document.data, known_keys(tables))
    if "suites" not in document.data and "captures" not in document.data:
        raise InputError(f'{document.path}: key suites is missing; accepted: suites = ["tls1.2/psk", …]')
    options = read_options(document)
    captures = read_captures(document)
    files = read_side_files(document)
    # User-supplied certificates are validated at the present time, generated ones on a fixed day.
    today = int(time.time()) if options.now is None else options.now
    measured, notes = read_suites(document, files, today, options)
    found = Experiment(
        about=AboutExperiment(
            name=document.string("name", document.path.stem, pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
            title=document.string("title", ""),
            question=document.string("question", ""),
            text=document.text,
        ),
        scenarios=(*captures, *measured),
        places=read_places(document),
        options=options,
        chains=files,
        notes=notes,
    )
    kind_tables = {}
    for name, table in tables.items():
        if name in document.data:
            given = document.table(name, [key.name for key in table.keys])
            kind_tables[name] = table.read(document, given, found)
    return replace(found, kind_tables=kind_tables)
