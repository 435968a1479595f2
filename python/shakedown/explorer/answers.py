"""The server's answers to the page, as JSON: predictions and simulations."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from threading import Thread
from typing import Any

import msgspec
import numpy as np

from shakedown.explorer.question import Question
from shakedown.models.distribution import Distribution
from shakedown.native.scenario import Fleet
from shakedown.native.suite_names import listed
from shakedown.prediction.figures import Same
from shakedown.prediction.inputs import ServerModel
from shakedown.prediction.library import TraceLibrary, open_library
from shakedown.prediction.network import replays
from shakedown.prediction.predict import resumption, suite_rows
from shakedown.prediction.scenario import Scenario, scenario
from shakedown.profiles.delay import distribution
from shakedown.profiles.registry import load_software
from shakedown.profiles.software import ServerSoftware
from shakedown.reporting.columns import named
from shakedown.reporting.columns.notes import software_notes
from shakedown.reporting.columns.objects import object_table
from shakedown.reporting.display import with_figures
from shakedown.reporting.terminal.listing import marks_in
from shakedown.schema.base import SIDES, opposite

SHARES = np.concatenate([np.linspace(0.005, 0.985, 99), [0.99, 0.995, 0.999]])
"""The points of a curve of percentiles."""

BINS = 60
"""Number of intervals of a density, from the shortest time until ready to the largest 99th percentile."""

COLUMNS = {
    "predict": (
        *("suite", "ready_mean_s", "ready_low_s", "ready_p99_s", "client_s", "server_s", "transmission_s"),
        *("queue_s", "utilisation", "energy_j", "wake_tail_j"),
    ),
    "simulate": (
        *("suite", "ready_p50_s", "ready_p95_s", "ready_p99_s", "ready_max_s", "queue_wait_mean_s"),
        *("utilisation", "failed", "recovery_s", "energy_mean_j", "wake_tail_j"),
    ),
}
"""The columns of the commands' tables that fit next to the controls."""

_answered: deque[tuple[object, ...]] = deque(maxlen=1)
"""The inputs of the last precise answer. Its replays are cached, so a precise answer to the same inputs is as
fast as a coarse one.
"""


def choices(*, report: bool) -> dict[str, Any]:
    """The choices and defaults of the controls."""
    from shakedown import native
    from shakedown.profiles import bearer_names, existing_device_names
    from shakedown.profiles.registry import software_names

    return {
        "suites": [entry.suite for entry in native.suites(all=False)],
        "devices": existing_device_names(),
        "bearers": bearer_names(),
        "software": software_names(),
        "report": report,
        "defaults": msgspec.to_builtins(Question()),
    }


def predicted(question: Question, *, coarse: bool = False) -> dict[str, Any]:
    """The rows of `predict` and their table, the time until ready as a curve and as a density, and the
    times of the messages.

    A coarse answer uses few replays, and does not contain the energy that resumption saves. If the precise
    answer is as fast, it is returned instead; `coarse` states which one it is.
    """
    library = _library(Same(load_software(question.server_software)))
    place = {"device": question.device, "server_device": question.server_device, "bearer": question.network}
    what = (question.suites, *place.values(), question.server_software, question.from_idle)
    coarse = coarse and what not in _answered

    @cache
    def estimate(suite: str) -> Scenario:
        return scenario(
            suite,
            question.device,
            question.server_device,
            question.network,
            traces=library,
            from_idle=question.from_idle,
        )

    def replay(suite: str) -> None:
        # An error of a suite is reported when its row is computed.
        with replays(coarse=coarse), suppress(Exception):
            found = estimate(suite)
            _ = found.exchange
            resumed = None if coarse else resumption(found.trace, library)
            if resumed is not None:
                _ = estimate(resumed).exchange

    suites = listed(question.suites)
    # The threads run in parallel, because most of the time is spent in the core. They are daemons, so the
    # program can end without waiting for them.
    threads = [Thread(target=replay, args=(suite,), daemon=True) for suite in suites]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with replays(coarse=coarse):
        found = suite_rows(
            suites,
            estimate,
            library,
            question.rate_per_s,
            {**place, "kind": "modelled"},
            workers=question.server_workers,
            resumptions=not coarse,
        )
        ready = [None if one is None else _ready(one, question) for one, _ in found]
    if not coarse:
        _answered.append(what)
    rows = [row for _, row in found]
    return {
        "coarse": coarse,
        "table": _table([row for row in rows if "error" not in row], "Prediction", COLUMNS["predict"]),
        "rows": rows,
        "curves": [one and [[one.quantile(float(share)), float(share)] for share in SHARES] for one in ready],
        "densities": _densities(ready),
        "messages": [one and _messages(one) for one, _ in found],
        "replications": question.replications,
        "commands": question.commands(),
        "python": question.python(),
    }


@lru_cache(maxsize=8)
def _library(software: Same[ServerSoftware]) -> TraceLibrary:
    """The recorded handshakes of a server's software. They are cached, and with them the costs of their
    messages on devices.
    """
    return open_library(server_software=software.thing.name)


def _ready(one: Scenario, question: Question) -> Distribution | None:
    """The times until ready, including the wait in the queue; None without a steady state."""
    wait = one.wait(question.rate_per_s, question.server_workers)
    return None if wait is None else one.unloaded()[0].compact.plus(wait)


def _densities(ready: Sequence[Distribution | None]) -> dict[str, Any]:
    """The share of each suite's handshakes that become ready in each interval of time; the intervals are
    equal.
    """
    known = [one for one in ready if one is not None]
    if not known:
        return {"edges_s": [], "shares": [None for _ in ready]}
    low_s, high_s = min(one.quantile(0.0) for one in known), max(one.quantile(0.99) for one in known)
    # A constant time also needs an interval.
    margin_s = max(high_s - low_s, 0.01 * high_s) / BINS
    edges_s = np.linspace(low_s - margin_s, high_s + margin_s, BINS + 1)
    return {
        "edges_s": edges_s.tolist(),
        "shares": [
            one and np.histogram(one.values_s, edges_s, weights=one.weights)[0].tolist() for one in ready
        ],
    }


def _messages(one: Scenario) -> list[dict[str, Any]]:
    """Each message with the work of both sides, its time on the link, and the start of each of these. Loss,
    queues and TCP's windows are ignored. A side processes one message at a time, and a direction transmits
    one.
    """
    links = {"client": one.bearer.up, "server": one.bearer.down}
    delays_s = {side: distribution(link.delay).mean for side, link in links.items()}
    rows, begun_s = [], 0.0
    if one.from_idle and one.bearer.setup is not None:
        begun_s = distribution(one.bearer.setup).mean
        rows.append(_nothing_but_the_link("radio set-up", 0.0, begun_s))
    if not one.trace.datagrams:
        rows.append(_nothing_but_the_link("TCP connection", begun_s, begun_s + sum(delays_s.values())))
        begun_s = rows[-1]["link_end_s"]
    free_s = dict.fromkeys(SIDES, begun_s)
    sent_s = dict.fromkeys(SIDES, begun_s)
    for message in one.trace.messages:
        sender, receiver = message.sender, opposite(message.sender)
        work_s = {side: getattr(one, side).message_s.get(message.index, 0.0) for side in SIDES}
        link_s = message.size_bytes * 8.0 / links[sender].rate_bits_per_s
        starts_s = {sender: free_s[sender]}
        free_s[sender] += work_s[sender]
        link_start_s = max(free_s[sender], sent_s[sender])
        sent_s[sender] = link_start_s + link_s
        link_end_s = sent_s[sender] + delays_s[sender]
        starts_s[receiver] = max(link_end_s, free_s[receiver])
        free_s[receiver] = starts_s[receiver] + work_s[receiver]
        rows.append(
            {
                "message": message.name,
                "sender": sender,
                "bytes": message.size_bytes,
                "link_s": link_s,
                "link_start_s": link_start_s,
                "link_end_s": link_end_s,
                **{f"{side}_s": work_s[side] for side in SIDES},
                **{f"{side}_start_s": starts_s[side] for side in SIDES},
                **{f"{side}_end_s": starts_s[side] + work_s[side] for side in SIDES},
            }
        )
    return rows


def _nothing_but_the_link(name: str, start_s: float, end_s: float) -> dict[str, Any]:
    """A row for time on the link before the first message, without work of either side."""
    row: dict[str, Any] = {"message": name, "sender": None, "bytes": 0.0, "link_s": end_s - start_s}
    row |= {"link_start_s": start_s, "link_end_s": end_s}
    return row | {f"{side}{key}": 0.0 for side in SIDES for key in ("_s", "_start_s", "_end_s")}


def simulated(question: Question, replications: int) -> dict[str, Any]:
    """The rows of `simulate` with the numbers of clients over time, and their table. Each replication has the
    number of clients in the question.
    """
    from shakedown.api.simulations import simulate

    rows = simulate(
        list(question.suites),
        Fleet(
            arrivals=question.arrivals,
            clients=question.clients * replications,
            replications=replications,
            resumption=question.resumption,
            cells=question.cells,
            from_idle=question.from_idle,
        ),
        device=question.device,
        bearer=question.network,
        server=ServerModel(question.server_device, question.server_workers, question.server_software),
        seed=question.seed,
    )
    return {
        "table": _table(with_figures(rows), "Simulated", COLUMNS["simulate"]),
        "rows": msgspec.to_builtins(rows),
    }


def _table(objects: Sequence[Any], kind: str, keys: Sequence[str]) -> dict[str, Any]:
    """Columns of a command's table, formatted as the command prints them, and the lines below the table."""
    table = object_table(objects, kind)
    assert table is not None
    columns = [named(table.columns, key) for key in keys]
    return {
        "head": [one.name for one in columns],
        "cells": [[one.cell(row) for one in columns] for row in table.rows],
        "notes": [marks_in(columns, table.rows), *software_notes(table.rows), *table.notes(set(keys))],
    }
