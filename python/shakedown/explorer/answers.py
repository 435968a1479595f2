"""What the page is answered: predictions at once, simulations as they refine. Everything is JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from shakedown.explorer.question import Question
from shakedown.models.distribution import Distribution
from shakedown.prediction.library import open_library
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.scenario import Scenario, scenario

SHARES = np.concatenate([np.linspace(0.005, 0.985, 99), [0.99, 0.995, 0.999]])
"""Where a curve of percentiles is drawn."""


def choices(*, report: bool) -> dict[str, Any]:
    """What the controls offer."""
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


def predicted(question: Question) -> dict[str, Any]:
    """The rows of `predict`, the curve of ready, and the work of both sides by message."""
    asked, library = question, open_library(server_software=question.server_software)
    rows = predict_rows(
        asked.suites,
        device=asked.device,
        server_device=asked.server_device,
        bearer=asked.network,
        from_idle=asked.from_idle,
        rate_per_s=asked.rate_per_s,
        server_workers=asked.server_workers,
        traces=library,
    )
    found = [
        None
        if "error" in row
        else scenario(
            row["suite"],
            asked.device,
            asked.server_device,
            asked.network,
            traces=library,
            from_idle=asked.from_idle,
        )
        for row in rows
    ]
    return {
        "rows": rows,
        "curves": [one and _curve(one, question) for one in found],
        "messages": [one and _messages(one) for one in found],
        "commands": question.commands(),
        "python": question.python(),
    }


def _curve(one: Scenario, question: Question) -> list[list[float]] | None:
    """Times until ready at rising shares of handshakes, the queue's wait included; None without a steady
    state.
    """
    wait = one.wait(question.rate_per_s, question.server_workers)
    if wait is None:
        return None
    ready: Distribution = one.few_points()[0].plus(wait)
    return [[ready.quantile(float(share)), float(share)] for share in SHARES]


def _messages(one: Scenario) -> list[dict[str, Any]]:
    """Each message with both sides' work and what its bytes take on the link."""
    rows = []
    for message in one.trace.messages:
        link = one.bearer.up if message.sender == "client" else one.bearer.down
        rows.append(
            {
                "message": message.name,
                "sender": message.sender,
                "bytes": message.size_bytes,
                "client_s": one.client.message_s.get(message.index, 0.0),
                "server_s": one.server.message_s.get(message.index, 0.0),
                "link_s": message.size_bytes * 8.0 / link.rate_bits_per_s,
            }
        )
    return rows


def simulated(question: Question, replications: int) -> list[dict[str, Any]]:
    """The rows of `simulate` with clients over time; each replication has the question's clients."""
    from shakedown.api.simulations import simulate

    rows = simulate(
        list(question.suites),
        question.arrivals,
        clients=question.clients * replications,
        device=question.device,
        server_device=question.server_device,
        bearer=question.network,
        server_workers=question.server_workers,
        seed=question.seed,
        resumption=question.resumption,
        cells=question.cells,
        server_software=question.server_software,
        from_idle=question.from_idle,
        replications=replications,
    )
    found: list[dict[str, Any]] = msgspec.to_builtins(rows)
    return found
