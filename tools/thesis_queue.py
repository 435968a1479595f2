"""Figures 4.13 to 4.23 and 4.44 to 4.46 of the WTLS thesis, simulated and compared with its model.

    python -m tools.thesis_queue     prints the table of docs/validation/thesis-queue.md

In the thesis each message of a handshake is a separate customer, drawn at random and independent of the
others (equations 3.12 to 3.82), and a handshake waits once. The simulation has the same server times, but
clients arrive as a Poisson process; a client's flight is one datagram, whose messages the server processes
without interruption; and a handshake waits whenever one of its flights does. It is simulated twice: with
clients whose own times differ, and with clients that are exactly alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.native import virtual_time
from shakedown.papers.load import load
from shakedown.papers.thesis.figures import GROUPS, mixtures
from shakedown.papers.thesis.inputs import SLUG, Authentication, Case, Thesis
from shakedown.papers.thesis.network_claims import overall_s
from shakedown.papers.thesis.queue import queue
from shakedown.prediction.spec import message_spec, work_spec
from shakedown.schema.base import Side
from tools import ideal, pages

CLIENTS = {0.5: 4_000, 0.9: 16_000}
"""Clients in a replication by load; at a lower load fewer are sufficient."""

REPLICATIONS = 10
ONE_WAY_S = 0.391
"""One-way delay of the thesis's CSD line."""

CLIENT_TIME_RANGE = 20.0
"""Range of the clients' own times in the first simulation, in busy periods of the server."""


@dataclass(frozen=True)
class Curve:
    """One curve of one figure: certificates mixed by share, with the thesis's server times."""

    figure: str
    name: str
    authentication: Authentication
    cases: tuple[Case, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Point:
    """One load of a curve: the mean wait of a message by the model, of a handshake as simulated, in s."""

    curve: Curve
    load: float
    model_s: float
    different_s: float
    alike_s: float


def curves(thesis: Thesis) -> Iterator[Curve]:
    """All curves of 4.13 to 4.23; 4.44 to 4.46 contain those of 4.17 to 4.19 again."""
    both: tuple[tuple[Authentication, int], ...] = (("mutual", 12), ("serverauth", 19))
    for authentication, before in both:
        for group in GROUPS:
            for name, cases, shares in mixtures(thesis, group):
                yield Curve(f"4.{before + group}", name, authentication, tuple(cases), tuple(shares))
    for level, number in ((1, 17), (2, 18), (3, 19)):
        for case in thesis.select(3, level):
            yield Curve(f"4.{number}", case.name, "mutual", (case,), (1.0,))


def simulate(thesis: Thesis, curve: Curve, load: float) -> Point:
    """A curve's waits at a utilisation of the server by the queued messages."""
    model = queue(thesis, curve.authentication, curve.cases, curve.shares)
    work_s = model.first_s * model.messages
    return Point(
        curve,
        load,
        float(model.wait_s(load / model.first_s)),
        _handshake_waits_s(thesis, curve, load / work_s, load, CLIENT_TIME_RANGE * work_s / (1.0 - load)),
        _handshake_waits_s(thesis, curve, load / work_s, load, 0.0),
    )


def _handshake_waits_s(
    thesis: Thesis, curve: Curve, handshakes_per_s: float, load: float, apart_s: float
) -> float:
    clients = CLIENTS[load]
    report = virtual_time.simulate(
        {
            "classes": [
                _clients(thesis, case, share, curve.authentication, apart_s)
                for case, share in zip(curve.cases, curve.shares, strict=True)
            ],
            "clients": clients * 5 // 4,
            "warmup_clients": clients // 4,
            "replications": REPLICATIONS,
            "arrivals": {"kind": "poisson", "per_s": handshakes_per_s},
            "server": {"workers": 1},
            "seed": 1,
        }
    )
    return float(report["client_wait_s"]["mean"])


def _clients(
    thesis: Thesis, case: Case, share: float, authentication: Authentication, apart_s: float
) -> dict[str, Any]:
    """Clients of one certificate: hello, the server's flight, all that is queued, the server's Finished."""

    def message(sender: Side, flight: int, process_s: float, within_s: float = 0.0) -> dict[str, Any]:
        generate = {"kind": "uniform", "minimum_s": 0.0, "maximum_s": within_s} if within_s else None
        process, name = work_spec(process_s), f"message {flight}"
        return message_spec(sender, name, 1, flight=flight, unit=flight, generate=generate, process=process)

    queued = [time_s for time_s in map(float, thesis.queued_s(case, authentication)) if time_s > 0.0]
    messages = [
        message("client", 1, 0.0),
        message("server", 2, 0.0),
        message("client", 3, queued[0], apart_s),
        *(message("client", 3, time_s) for time_s in queued[1:]),
        message("server", 4, 0.0),
    ]
    return ideal.clients(messages, one_way_s=ONE_WAY_S, weight=share)


def rows(points: Sequence[Point], thesis: Thesis) -> Iterator[Sequence[str]]:
    """One row per figure: the model at 50 and 90 %, and the simulated waits as multiples of it."""
    for figure in sorted({point.curve.figure for point in points}):
        pure = [point for point in points if point.curve.figure == figure and len(point.curve.cases) == 1]
        mixed = [point for point in points if point.curve.figure == figure and len(point.curve.cases) > 1]
        for words, mine in (("one certificate", pure), ("half and half", mixed)):
            if not mine:
                continue
            cells = []
            for busy in CLIENTS:
                there = [one for one in mine if one.load == busy]
                cells += [
                    _span([1e3 * one.model_s for one in there]),
                    "× " + _span([one.different_s / one.model_s for one in there]),
                    "× " + _span([one.alike_s / one.model_s for one in there]),
                ]
            yield figure, words, *cells
    for level in (1, 2, 3):
        mine = [one for one in points if one.curve.figure == f"4.{16 + level}" and one.load == 0.9]
        whole = [overall_s(thesis, one.curve.cases[0], "mutual", one.model_s) for one in mine]
        more = [
            "× "
            + _span(
                [
                    overall_s(thesis, one.curve.cases[0], "mutual", getattr(one, field)) / whole_s
                    for one, whole_s in zip(mine, whole, strict=True)
                ]
            )
            for field in ("different_s", "alike_s")
        ]
        yield f"4.{43 + level}", "whole handshakes | | |", f"{_span(whole)} s", *more


def _span(numbers: Sequence[float]) -> str:
    least, most = (
        f"{number:.2g}" if number < 100 else f"{number:.0f}" for number in (min(numbers), max(numbers))
    )
    return least if least == most else f"{least} to {most}"


def main() -> None:
    """Simulate, and print the table."""
    thesis = Thesis(load(SLUG))
    points = [simulate(thesis, curve, at) for curve in curves(thesis) for at in CLIENTS]
    head = "figure | curves" + "".join(
        f" | model at {100 * load:.0f} % (ms) | different clients | equal clients" for load in CLIENTS
    )
    print(pages.table(head, rows(points, thesis)))


if __name__ == "__main__":
    main()
