"""`simulate --mix`: clients of several kinds at one server, each with suite, device and bearer, by weight.

``docs/guides/simulate.md`` has an example of the file. Every error is one line: file, line, key, value, and
what is accepted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shakedown import native
from shakedown.errors import InputError, did_you_mean
from shakedown.files import limits
from shakedown.files.toml import describe, load_toml
from shakedown.native import virtual_time
from shakedown.native.scenario import ClientKind, Fleet
from shakedown.prediction.library import TraceLibrary, resumed_of
from shakedown.prediction.trace import Trace
from shakedown.prediction.work import known_basis
from shakedown.schema.base import convert
from shakedown.schema.simulated import SimulatedMix
from shakedown.simulation.deployment import Site
from shakedown.simulation.figures import cost_basis, figures, may_shorten_times, missing_of, spread
from shakedown.simulation.fleet import Settled, settle
from shakedown.simulation.memory_limit import check_room
from shakedown.simulation.pieces import Pool, in_pieces
from shakedown.simulation.simulate import Progress
from shakedown.simulation.spec import Client, simulation_spec, with_lowest_work, works

KEYS = ("suite", "weight", "device", "bearer", "resumption")
_NUMBERS = {"weight": (1e9, "a number from 0 to 1e9"), "resumption": (1.0, "a share from 0 to 1")}


class Kind(ClientKind, frozen=True):
    """A kind of client of a file, and its position there, for errors."""

    where: str = ""

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Add the position to errors."""
        try:
            yield
        except InputError as error:
            raise InputError(f"{self.where}: {error}" if self.where else str(error)) from None


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
            f"{path}: {len(tables):,} kinds of clients; "
            f"accepted: 1 to {limits.MAX_KINDS:,} tables [[clients]]"
        )
    kinds = tuple(reader.kind(number, one) for number, one in enumerate(tables, start=1))
    if not any(one.weight for one in kinds):
        raise InputError(f"{path}: all weights are 0; accepted: at least one above 0")
    return kinds


class _Reader:
    """The reader of one file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def line(self, number: int, key: str) -> int:
        """The line of a key of the n-th table, or of the table; 0: of no table."""
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
        where = f"{self.path}, line {self.line(number, 'suite')}"
        return Kind(**{key: self.value(number, key, one) for key, one in table.items()}, where=where)

    def value(self, number: int, key: str, value: object) -> Any:  # noqa: ANN401 - as its field is
        if key not in _NUMBERS:
            if isinstance(value, str) and value.strip():
                return value
            raise self.wrong(number, key, f"found {describe(value)}; accepted: a non-empty string")
        most, accepted = _NUMBERS[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= most:
            return float(value)
        raise self.wrong(number, key, f"found {describe(value)}; accepted: {accepted}")


def simulate_mix(
    kinds: Sequence[Kind],
    fleet: Fleet,
    site: Site,
    *,
    name: str = "mix",
    pool: Pool | None = None,
    progress: Progress | None = None,
) -> SimulatedMix:
    """Simulate one fleet of several kinds of clients. The same seed gives the same row. Raises `InputError`.

    Args:
        site: the server that all share, and the device and bearer of kinds that name none.
        name: the mixture's name in the row.
        pool: the processes that simulate pieces of the fleet; None: this process.
        progress: called with the number of completed clients, and of all.
    """
    settled = settle(fleet)
    clients = []
    for kind in kinds:
        with kind.blamed():
            resumption = kind.share_resuming(settled.fleet)
            full = site.estimate(kind.suite, kind.device, kind.bearer, from_idle=fleet.from_idle)
            resumed = None
            if resumption > 0.0:
                resumed = site.estimate(resumed_of(full.trace.suite), kind.device, kind.bearer)
            clients.append(Client(full, resumed, kind.weight, kind.resumption))
    return run_mix(
        clients,
        settled,
        name=name,
        workers=site.server_workers,
        seed=site.draws,
        pool=pool,
        progress=progress,
    )


def recorded(
    kinds: Sequence[ClientKind], fleet: Fleet, library: TraceLibrary, own: Mapping[str, Trace]
) -> dict[str, Trace]:
    """The traces for the estimates of a mixture, by the names that its kinds use.

    Traces of `own`, by canonical names, precede the library's. Raises `InputError`.
    """
    found: dict[str, Trace] = {}
    for kind in kinds:
        name = native.canonical(kind.suite)
        found[kind.suite] = own[name] if name in own else library[name]
        if kind.share_resuming(fleet) > 0.0:
            again = resumed_of(name)
            found[again] = own[again] if again in own else library[again]
    return found


def run_mix(
    clients: Sequence[Client],
    settled: Settled,
    *,
    name: str,
    workers: int,
    seed: int,
    pool: Pool | None = None,
    progress: Progress | None = None,
) -> SimulatedMix:
    """Simulate estimated kinds of clients. Raises `InputError`."""
    whole = math.fsum(one.weight for one in clients)
    if not whole > 0.0:
        raise InputError("the weights of all kinds of clients are 0; accepted: at least one above 0")
    clients = with_lowest_work(clients, settled)
    spec = simulation_spec(clients, settled, workers=workers, seed=seed)
    if pool is None or pool.is_here():
        check_room(clients, settled, workers, spec)
    if pool is None:
        report = virtual_time.simulate(spec, progress=progress)
    else:
        (report,) = pool.results([in_pieces(spec, name, pool.threads())])
        # All clients wait in one queue, so the work of every kind affects all.
    work, bounded = works(clients, settled), not may_shorten_times(settled, report)
    missing, basis = missing_of(work), known_basis(work)
    found = {
        "mix": name,
        "kind": "simulated",
        "server_device": clients[0].full.server_device.name,
        "kinds": [
            _part(
                one, each, whole, spread(each["handshake_s"], missing, bounded=bounded, basis=basis), settled
            )
            for one, each in zip(clients, report["classes"], strict=True)
        ],
        **figures(report, settled, clients, workers=workers, seed=seed),
    }
    return convert(found, SimulatedMix)


def _part(
    client: Client, report: Mapping[str, Any], whole: float, ready: Mapping[str, Any], settled: Settled
) -> dict[str, Any]:
    full = client.full
    return {
        "suite": full.trace.suite,
        "device": full.device.name,
        "bearer": full.bearer.name,
        "weight": client.weight,
        "share": client.weight / whole,
        "resumption": client.share_resuming(settled),
        "clients": report["clients"],
        "failed": report["failed"],
        "ready_s": ready,
        "unused_key_share_s": full.unused_key_share_s,
        **({"series": report["series"]} if report["series"] else {}),
        **cost_basis(client, settled),
    }
