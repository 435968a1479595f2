"""The controls of the page: read from the address, and written as a command or as Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec

from shakedown.errors import InputError
from shakedown.native.scenario import DEFAULT_SERVER_DEVICE
from shakedown.native.suite_names import listed
from shakedown.profiles import changed_bearer
from shakedown.profiles.software import DEFAULT_SOFTWARE
from shakedown.schema.base import described
from shakedown.simulation.arrivals import FROM_FILE, KINDS

MAX_SUITES = 12
MAX_CLIENTS = 100_000
"""Limit of simulated clients, because the user waits; the command `simulate` accepts more."""
MAX_REPLICATIONS = 10
"""Limit of the fleet's replications, for the final figures on the page, which the commands also print."""
REFUSED_ARRIVALS = (*FROM_FILE, "diurnal")
"""Arrivals from files are refused. Those of a day determine a number of clients above `MAX_CLIENTS`."""

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The controls of the page.

    Attributes:
        suites: the compared suites.
        device, server_device, bearer: names of profiles. Paths are refused: a page reads no files.
        loss: loss rate of both directions; None: the profile's.
        congestion: congestion control of both hosts; empty: the profile's.
        rate_per_s: handshakes per second at the server, for the prediction.
        server_software: name of the server's software.
        server_workers: number of the server's workers.
        from_idle: the radio is idle at first.
        cells: number of cells that the clients share; None: each client has its own link.
        arrivals, clients, resumption, seed: the simulated fleet.
    """

    suites: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=MAX_SUITES)] = (
        "tls1.2/psk",
        "tls1.3/x25519/p256/server",
        "tls1.3/x25519mlkem768/mldsa65/server",
    )
    device: Name = "cortex-m4"
    server_device: Name = DEFAULT_SERVER_DEVICE
    server_software: Name = DEFAULT_SOFTWARE
    bearer: Name = "nb-iot"
    loss: Annotated[float, msgspec.Meta(ge=0.0, le=0.9)] | None = None
    congestion: Literal["", "cubic", "reno", "bbr"] = ""
    rate_per_s: Annotated[float, msgspec.Meta(ge=0.0, le=1e9)] = 0.0
    server_workers: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1
    from_idle: bool = False
    arrivals: Name = "storm:2s"
    cells: Annotated[int, msgspec.Meta(ge=1, le=MAX_CLIENTS)] | None = None
    clients: Annotated[int, msgspec.Meta(ge=1, le=MAX_CLIENTS)] = 2000
    resumption: Share = 0.0
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 1

    @property
    def network(self) -> str:
        """The bearer's name with loss rate and congestion control, as for commands."""
        loss = None if self.loss is None else f"{self.loss:g}"
        return changed_bearer(self.bearer, loss=loss, congestion=self.congestion or None)

    @property
    def replications(self) -> int:
        """Number of replications of the fleet, each with `clients`."""
        return min(MAX_REPLICATIONS, MAX_CLIENTS // self.clients)

    def commands(self) -> dict[str, str]:
        """The commands that print the same figures: `predict` and `simulate`."""
        place = f"--device {shlex.quote(self.device)} --bearer {shlex.quote(self.network)}"
        if self.server_device != DEFAULT_SERVER_DEVICE:
            place += f" --server-device {shlex.quote(self.server_device)}"
        if self.server_software != DEFAULT_SOFTWARE:
            place += f" --server-software {shlex.quote(self.server_software)}"
        if self.server_workers > 1:
            place += f" --server-workers {self.server_workers}"
        if self.from_idle:
            place += " --from-idle"
        suites = " ".join(map(shlex.quote, self.suites))
        rate = f" --rate {self.rate_per_s:.15g}/s" if self.rate_per_s else ""
        fleet = f"--arrivals {shlex.quote(self.arrivals)} --clients {self.clients * self.replications}"
        fleet += f" --replications {self.replications}"
        if self.cells:
            fleet += f" --cells {self.cells}"
        if self.resumption:
            fleet += f" --resumption {self.resumption:.15g}"
        return {
            "predict": f"shakedown predict {suites} {place}{rate}",
            "simulate": f"shakedown simulate {suites} {fleet} {place} --seed {self.seed}",
        }

    def python(self) -> str:
        """The calls that return the same figures."""
        place = f"device={self.device!r}, bearer={self.network!r}, server=server"
        fleet = f"arrivals={self.arrivals!r}, clients={self.clients * self.replications}"
        fleet += f", replications={self.replications}"
        fleet += f", resumption={self.resumption:.15g}" if self.resumption else ""
        fleet += f", cells={self.cells}" if self.cells else ""
        predict = f"suites, {place}"
        predict += f", rate_per_s={self.rate_per_s:.15g}" if self.rate_per_s else ""
        lines = [
            "import shakedown",
            "",
            f"suites = {list(self.suites)!r}",
            f"server = shakedown.ServerModel({self.server_device!r}, workers={self.server_workers}, "
            f"software={self.server_software!r})",
        ]
        if self.from_idle:
            fleet += ", from_idle=True"
            predict += ", options=idle"
            lines.append("idle = shakedown.PredictionOptions(from_idle=True)")
        lines += [
            f"predicted = shakedown.predict({predict})",
            f"fleet = shakedown.Fleet({fleet})",
            f"simulated = shakedown.simulate(suites, fleet, {place}, seed={self.seed})",
        ]
        return "\n".join(lines) + "\n"


def first_view(results: Path) -> tuple[str, Path | None]:
    """The query for a results folder's suites, first device and first bearer, and its report if there is one.

    Raises:
        InputError: if it is not a results folder.
    """
    from shakedown.results.folder import load_results

    table = load_results(results).table
    view: list[tuple[str, str]] = []
    for column, name, most in (
        ("suite", "suites", MAX_SUITES),
        ("device", "device", 1),
        ("bearer", "bearer", 1),
    ):
        values = [value for value in table[column].unique(maintain_order=True) if value]
        view += [(name, value) for value in values[:most]]
    report = results / "report.html"
    return urlencode(view), report if report.is_file() else None


def parse_question(query: Mapping[str, Sequence[str]]) -> Question:
    """Converts an address's query (from `urllib.parse.parse_qs`) to a question.

    Raises:
        InputError: for an unknown control, or an invalid value.
    """
    given = {name: tuple(values) if name == "suites" else values[-1] for name, values in query.items()}
    try:
        found = msgspec.convert(given, described(Question), strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"the address: {error}") from None
    kind = found.arrivals.partition(":")[0].strip().lower()
    if kind in REFUSED_ARRIVALS:
        why = "reads no files" if kind in FROM_FILE else "simulates no days"
        others = ", ".join(one for one in KINDS if one not in REFUSED_ARRIVALS)
        raise InputError(f"arrivals: a page {why}; accepted: {others}")
    for name in (found.device, found.server_device, found.server_software, found.bearer):
        if "/" in name or name.endswith(".toml"):
            raise InputError(f"{name!r}: a page reads no files; accepted: the name of a profile")
    many = len(listed(found.suites))
    if many > MAX_SUITES:
        raise InputError(f"{' '.join(found.suites)}: matches {many} suites; accepted: at most {MAX_SUITES}")
    return found
