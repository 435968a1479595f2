"""`simulate --mix`: clients of several kinds at one server, each with suite, device and bearer, by weight.

    [[clients]]
    weight = 9
    suite = "tls1.3/x25519/p256/server"
    device = "phone"
    bearer = "lte"
    resumption = 0.6

    [[clients]]
    suite = "tls1.3/x25519mlkem768/mldsa65/server"
    device = "cortex-m4"
    bearer = "nb-iot"

Every complaint is one line: file, line, key, what was found, what is accepted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shakedown import core
from shakedown.errors import InputError, did_you_mean
from shakedown.files import limits
from shakedown.files.toml import describe, load_toml
from shakedown.pricing.library import TraceLibrary, open_library
from shakedown.pricing.scenario import DEFAULT_BEARER, DEFAULT_DEVICE, DEFAULT_SERVER_DEVICE
from shakedown.pricing.scenario import Scenario as Priced
from shakedown.pricing.scenario import scenario as price_scenario
from shakedown.scenario import Fleet
from shakedown.schema.base import convert
from shakedown.schema.simulated import SimulatedMix
from shakedown.simulation.fleet import DEFAULT_SEED, settle
from shakedown.simulation.simulate import Progress, check_server, figures, resumed_of, spread
from shakedown.simulation.spec import Client, series_width_s, simulation_spec

KEYS = ("suite", "weight", "device", "bearer", "resumption")
MAX_WEIGHT = 1e9


@dataclass(frozen=True)
class Kind:
    """A kind of client; what is None is as the command's options have it.

    Attributes:
        where: where it was written, for complaints.
    """

    suite: str
    weight: float = 1.0
    device: str | None = None
    bearer: str | None = None
    resumption: float | None = None
    where: str = ""


def read_mix(path: str | Path) -> tuple[Kind, ...]:
    """The kinds of clients of a file. Raises `InputError`."""
    path = Path(path)
    data, text = load_toml(path, limits.MAX_EXPERIMENT_BYTES, "TOML file")
    reader = _Reader(path, text)
    for key in data:
        if key != "clients":
            hint = did_you_mean(key, ("clients",)) or "; accepted: tables [[clients]]"
            raise InputError(f"{path}, line {reader.line(0, key)}, key {key}: unknown key{hint}")
    tables = data.get("clients", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        found = describe(tables)
        raise InputError(f"{path}: key clients: found {found}; accepted: tables [[clients]]")
    if not 1 <= len(tables) <= limits.MAX_KINDS:
        raise InputError(
            f"{path}: {len(tables):,} kinds of clients; accepted: 1 to {limits.MAX_KINDS:,}, as [[clients]]"
        )
    kinds = tuple(reader.kind(number, one) for number, one in enumerate(tables, start=1))
    if not any(one.weight for one in kinds):
        raise InputError(f"{path}: all weights are 0; accepted: at least one above 0")
    return kinds


class _Reader:
    """One file under scrutiny."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def line(self, number: int, key: str) -> int:
        """Where a key of the n-th table stands, or the table; 0: of no table."""
        start = 0
        for found, line in enumerate(self.lines, start=1):
            if re.match(r"\s*\[\[\s*clients\s*\]\]", line):
                number -= 1
                if number < 0:
                    break
                start = found
            elif number == 0 and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""", line):
                return found
        return max(start, 1)

    def wrong(self, number: int, key: str, what: str) -> InputError:
        return InputError(f"{self.path}, line {self.line(number, key)}, key clients.{key}: {what}")

    def kind(self, number: int, table: Mapping[str, Any]) -> Kind:
        for key in table:
            if key not in KEYS:
                hint = did_you_mean(key, KEYS) or f"; accepted: {', '.join(KEYS)}"
                raise self.wrong(number, key, f"unknown key{hint}")
        if "suite" not in table:
            raise self.wrong(number, "suite", 'is missing; accepted: suite = "tls1.3/x25519"')
        named = {key: self.name(number, key, table[key]) for key in ("device", "bearer") if key in table}
        return Kind(
            suite=self.name(number, "suite", table["suite"]),
            weight=self.number(
                number, "weight", table.get("weight", 1.0), MAX_WEIGHT, "a number from 0 to 1e9"
            ),
            device=named.get("device"),
            bearer=named.get("bearer"),
            resumption=(
                self.number(number, "resumption", table["resumption"], 1.0, "a share from 0 to 1")
                if "resumption" in table
                else None
            ),
            where=f"{self.path}, line {self.line(number, 'suite')}",
        )

    def name(self, number: int, key: str, value: object) -> str:
        if isinstance(value, str) and value.strip():
            return value
        raise self.wrong(number, key, f"found {describe(value)}; accepted: a non-empty string")

    def number(self, number: int, key: str, value: object, most: float, accepted: str) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= most:
            return float(value)
        raise self.wrong(number, key, f"found {describe(value)}; accepted: {accepted}")


def simulate_mix(
    kinds: Sequence[Kind],
    fleet: Fleet,
    *,
    name: str = "mix",
    device: str = DEFAULT_DEVICE,
    server_device: str = DEFAULT_SERVER_DEVICE,
    bearer: str = DEFAULT_BEARER,
    workers: int = 1,
    seed: int | None = None,
    traces: TraceLibrary | None = None,
    scale_from: str | None = None,
    progress: Progress | None = None,
) -> SimulatedMix:
    """Simulate one fleet of several kinds of clients. The same seed gives the same row.

    Args:
        kinds: of clients, by weight.
        fleet: when clients arrive, how many, how patient, how they are served.
        name: what the row calls the mixture.
        device, bearer: profile names or paths where a kind names none.
        server_device: of the server, which all share.
        workers: the server's workers.
        seed: of everything that is drawn.
        traces: where recorded handshakes come from; default: the shipped library.
        scale_from: device whose figures stand in, scaled by the clock, for one without primitives.
        progress: called with the clients done, and of how many.

    Raises:
        InputError: naming what was wrong and what is accepted.
    """
    settled = settle(fleet)
    check_server(workers, seed)
    whole = math.fsum(one.weight for one in kinds)
    if not whole > 0.0:
        raise InputError("the weights of all kinds of clients are 0; accepted: at least one above 0")
    library = traces or open_library()

    def priced(suite: str, kind: Kind) -> Priced:
        return price_scenario(
            suite,
            kind.device or device,
            server_device,
            kind.bearer or bearer,
            traces=library,
            scale_from=scale_from,
        )

    def client(kind: Kind) -> Client:
        resumption = fleet.resumption if kind.resumption is None else kind.resumption
        full = priced(kind.suite, kind)
        resumed = priced(resumed_of(full.trace.suite), kind) if resumption > 0.0 else None
        return Client(full, resumed, kind.weight, resumption)

    clients = []
    for kind in kinds:
        try:
            clients.append(client(kind))
        except InputError as error:
            raise InputError(f"{kind.where}: {error}" if kind.where else str(error)) from None
    seed = DEFAULT_SEED if seed is None else seed
    spec = simulation_spec(
        clients, settled, workers=workers, seed=seed, series_s=series_width_s(clients, settled, workers)
    )
    report = core.simulate(spec, progress=progress)["report"]
    found = {
        "mix": name,
        "kind": "simulated",
        "server_device": clients[0].full.server_device.name,
        "kinds": [_part(one, each, whole) for one, each in zip(clients, report["classes"], strict=True)],
        **figures(report, settled, workers=workers, seed=seed),
    }
    return convert(found, SimulatedMix)


def _part(client: Client, report: Mapping[str, Any], whole: float) -> dict[str, Any]:
    full = client.full
    return {
        "suite": full.trace.suite,
        "device": full.device.name,
        "bearer": full.bearer.name,
        "weight": client.weight,
        "share": client.weight / whole,
        "resumption": client.resumption,
        "clients": report["clients"],
        "failed": report["failed"],
        "handshake_s": spread(report["handshake_s"]),
        "basis": full.basis,
        "unpriced": [*full.client.unpriced, *full.server.unpriced],
        "extrapolated": [*full.client.figures, *full.server.figures],
    }
