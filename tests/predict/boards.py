"""Predictions compared with published handshakes: primitives and handshake of the same chip, clock and build.

Matched boards are Bayoglu's (thesis, 2004): the primitives come only from his mutual runs, and they predict
the totals of his server-authenticated runs, which were measured separately. Two modern boards have both
figures for one build; the work besides the primitives is taken from their other kinds of handshakes. Another
has both, but does not describe its handshake, so each interpretation is estimated. Boards whose handshake was
published for another build than their primitives are listed separately; their error shows the effect of the
build.
"""

from __future__ import annotations

import csv
import math
import statistics
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shakedown.papers.load import DATA
from shakedown.prediction.figures import call_figure
from shakedown.profiles import load_device
from shakedown.profiles.costs import Triple

LEAST_DIFFERENCE_BYTES = 500.0
"""Handshakes whose keys and signatures differ by less do not show the cost of a byte."""
_THESIS = DATA / "wtls-nokia7650"
_THESIS_SOURCE = "B. Bayoglu, master thesis, Sabanci University, 2004, tables 4.1 to 4.10"


@dataclass(frozen=True, slots=True)
class Check:
    """A published handshake and its prediction; ``why`` names what does not match, empty if all does."""

    board: str
    handshake: str
    published_s: float
    predicted_s: float
    source: str
    why: str = ""

    @property
    def error(self) -> float:
        """Predicted over published, less 1."""
        return self.predicted_s / self.published_s - 1.0


def matched() -> list[Check]:
    """The thesis's 24 server-authenticated cases on both its machines, from the primitives of its mutual
    runs.
    """
    checks = []
    totals = _table("table_4_2_serverauth_processing_times")
    for board, side in (("nokia-7650", "client"), ("wap-gateway-p4", "server")):
        costs_ms, rest_ms = _mutual_primitives(side)
        for (ca, end), row in totals.items():
            parts = _server_authenticated(side, ca, end)
            predicted_ms = rest_ms + sum(costs_ms[part] for part in parts)
            suite = "wtls/rsa" if end.startswith("rsa") else "wtls/ecdh_ecdsa"
            published_s = float(row[f"{side}_ms"]) / 1e3
            name = f"{suite}/{end}@{ca}/requested, {side}"
            checks.append(Check(board, name, published_s, predicted_ms / 1e3, _THESIS_SOURCE))
    return checks


def fitted() -> list[Check]:
    """Modern boards with primitives and handshakes of one build.

    A handshake is its primitives, and a rest that the primitives do not explain: what each byte of keys and
    signatures adds, and the median of what is then left of the board's handshakes of every other kind. No
    handshake is predicted with the help of its own kind.
    """
    checks = []
    for board in _boards()["fitted"]:
        checks += _Fitted(board).checks()
    return checks


class _Fitted:
    """A board with primitives and handshakes of one build: each predicted from those of other kinds."""

    def __init__(self, board: dict[str, Any]) -> None:
        device = load_device(board["device"])
        others_s = board.get("others_s", {})
        self.board = board
        self.cases: list[dict[str, Any]] = board["case"]
        self.bytes: dict[str, float] = board.get("bytes", {})
        self.primitives_s: dict[str, float] = {
            kind: math.fsum(count * call_figure(device, (o, a, p)).mean_s for count, o, a, p in operations)
            + others_s.get(kind, 0.0)
            for kind, operations in board["operations"].items()
        }

    def checks(self) -> list[Check]:
        """Every handshake, predicted from the others."""
        found = []
        for case in self.cases:
            kind = case["kind"]
            predicted_s = self.primitives_s[kind] + self.rest_s(case)
            found.append(
                Check(
                    self.board["board"],
                    case["handshake"],
                    case["published_s"],
                    predicted_s,
                    self.board["source"],
                )
            )
        return found

    def rest_s(self, case: dict[str, Any]) -> float:
        """The time besides primitives, from handshakes of other kinds, for this one's bytes."""
        s_per_byte = self.s_per_byte(case["kind"])
        left: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for one in self.cases:
            if one["what"] == case["what"] and one["kind"] != case["kind"]:
                rest_s = self.left_s(one) - s_per_byte * self.bytes.get(one["kind"], 0.0)
                left[one["kind"]][one.get("cipher", "")].append(rest_s)
        usual = {
            kind: statistics.median(rest_s for rests in ciphers.values() for rest_s in rests)
            for kind, ciphers in left.items()
        }
        # The difference of this cipher from the usual one, if other kinds have it.
        cipher = case.get("cipher", "")
        differs = [
            statistics.median(ciphers[cipher]) - usual[kind]
            for kind, ciphers in left.items()
            if cipher in ciphers
        ]
        base_s = statistics.median(usual.values()) + (statistics.median(differs) if differs else 0.0)
        return base_s + s_per_byte * self.bytes.get(case["kind"], 0.0)

    def left_s(self, case: dict[str, Any]) -> float:
        """The time of a published handshake that its primitives do not explain."""
        return float(case["published_s"]) - self.primitives_s[case["kind"]]

    def s_per_byte(self, kind: str) -> float:
        """The time per byte in all handshakes of other kinds: the median slope of pairs (Theil and Sen)."""
        rows = [one for one in self.cases if one["kind"] != kind and one["kind"] in self.bytes]
        slopes = [
            (self.left_s(one) - self.left_s(other)) / (self.bytes[one["kind"]] - self.bytes[other["kind"]])
            for index, one in enumerate(rows)
            for other in rows[:index]
            if one["what"] == other["what"]
            and one["kind"] != other["kind"]
            and abs(self.bytes[one["kind"]] - self.bytes[other["kind"]]) > LEAST_DIFFERENCE_BYTES
        ]
        return max(0.0, statistics.median(slopes)) if slopes else 0.0


def same_build() -> list[Check]:
    """The board whose handshake is published with its primitives, under each reading of what it does.

    First the whole handshake in software, network and waiting included, then what the secure element saves:
    the difference of two handshakes that differ in nothing but the primitives.
    """
    board = _boards()["same_build"]
    whole_s, times_s = board["handshake_s"], board["times_s"]
    checks = []
    for saved in (False, True):
        published_s = whole_s["software"] - saved * whole_s["atecc508a"]
        what = "saved by the ATECC508A" if saved else "in software, network included"
        for reading in board["reading"]:
            predicted_s = sum(
                count * (times_s[name]["software"] - saved * times_s[name]["atecc508a"])
                for name, count in reading["calls"].items()
            )
            checks.append(
                Check(
                    board["board"],
                    f"{what}: {reading['name']}",
                    published_s,
                    predicted_s,
                    board["source"],
                    "the handshake's operations are not published",
                )
            )
    return checks


def unmatched() -> list[Check]:
    """Published handshakes of boards whose primitives come from another build, estimated nevertheless."""
    checks = []
    for board in _boards()["board"]:
        device = load_device(board["device"])
        calls: list[tuple[int, Triple]] = [(count, (o, a, p)) for count, o, a, p in board["operations"]]
        predicted_s = sum(count * call_figure(device, triple).mean_s for count, triple in calls)
        predicted_s *= device.clock_hz / board["clock_hz"]
        checks.append(
            Check(
                board["board"],
                board["handshake"],
                board["published_s"],
                predicted_s,
                board["source"],
                board["why"],
            )
        )
    return checks


def _boards() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("boards.toml").read_text(encoding="utf-8"))


def _mutual_primitives(side: str) -> tuple[dict[tuple[str, str], float], float]:
    """Medians over the mutual cases of each primitive, and of the rest of a handshake, in ms."""
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    rest: list[float] = []
    number = {"client": (3, 4), "server": (5, 6)}[side]
    totals = _table("table_4_1_mutual_processing_times")
    for kind, table in zip(("ecdh", "rsa"), number, strict=True):
        for (ca, end), row in _table(f"table_4_{table}_mutual_{kind}_{side}_pct").items():
            total_ms = float(totals[ca, end][f"{side}_ms"])
            share = {key: float(value) / 100 for key, value in row.items() if key.endswith("_pct")}
            exchange = share[f"{side}_kx_pct"]
            parts = {
                ("verify", ca): share[
                    "verify_server_cert_pct" if side == "client" else "verify_client_cert_pct"
                ],
                ("exchange", end): exchange
                * share[
                    f"ecdh_of_{side}_kx_pct"
                    if kind == "ecdh"
                    else f"rsa_{'encrypt' if side == 'client' else 'decrypt'}_of_{side}_kx_pct"
                ],
            }
            for part, portion in parts.items():
                samples[part].append(total_ms * portion)
            rest.append(
                total_ms * (share["others_pct"] + exchange * share[f"master_secret_of_{side}_kx_pct"])
            )
    return {part: statistics.median(times) for part, times in samples.items()}, statistics.median(rest)


def _server_authenticated(side: str, ca: str, end: str) -> list[tuple[str, str]]:
    return [("verify", ca), ("exchange", end)] if side == "client" else [("exchange", end)]


def _table(name: str) -> dict[tuple[str, str], dict[str, str]]:
    with (_THESIS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return {(row["ca_cert"], row["end_cert"]): row for row in csv.DictReader(file)}
