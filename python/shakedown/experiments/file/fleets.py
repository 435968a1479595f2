"""What an experiment simulates in each of its places: the table `[simulated]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec.structs import replace

from shakedown.errors import InputError
from shakedown.experiments.file.table import Key, Table
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native.scenario import Fleet, Fleets, Mix

if TYPE_CHECKING:
    from shakedown.experiments.file import Experiment
    from shakedown.experiments.file.document import Document

KEYS = (
    Key(
        "arrivals",
        'array of arrival processes: `"poisson:50/s"`, `"deterministic:50/s"`, `"bursts:100@2/min"`, '
        '`"storm:10s"`, `"storm:10s+backoff"`, `"file:PATH"`',
        "Poisson's at each of `rates`",
    ),
    Key("clients", "clients that are counted", "100,000 at a rate, 10,000 in a storm, a file's times"),
    Key(
        "timeout",
        'the time-out of one attempt: `"30s"`',
        "its transport's; 30 s where clients try again",
    ),
    Key("retries", "attempts after the first", "0; 10 with `+backoff`"),
    Key("resumption", "share of the clients that resume", "0"),
    Key("from_idle", "`true`: radios begin idle", "`false`"),
    Key("discipline", '`"fifo"` or `"ps"`, processor sharing', '`"fifo"`'),
    Key("max_handshakes", "handshakes that the server works on at once", "any number"),
    Key("accept_queue", "connections that wait meanwhile", "any number"),
    Key("replications", "runs that share the clients", "10 at a rate"),
    Key("seed", "of what is drawn", "the file's `seed`, or 1"),
    Key(
        "endpoints",
        "`true`: beside each replayed fleet, one of the protocol engines themselves, of a thousand clients",
        "`false`",
    ),
    Key(
        "mix",
        "a file, or an array of them, from this file's folder: [clients of several kinds]"
        "(../how-to/simulate.md#clients-of-several-kinds), a fleet for each arrival process",
        "none",
    ),
)
WHOLE = ("clients", "retries", "max_handshakes", "accept_queue", "replications", "seed")


def read_fleets(document: Document, table: Mapping[str, Any], experiment: Experiment) -> Fleets:
    """The fleets that a file asks for. Raises `InputError`."""
    from shakedown.simulation.deployment import check_server

    if experiment.options.carrier == "eap":
        raise document.wrong(
            "carrier", 'fleets over EAP are not simulated; accepted with [simulated]: "bare"'
        )
    given = {name: document.whole(f"simulated.{name}", table[name]) for name in WHOLE if name in table}
    seed = given.pop("seed", experiment.options.seed)
    arrivals = _arrivals(document, table, experiment.places.rates_per_s)
    fleets = tuple(_fleet(document, text, table, given) for text in arrivals)
    if document.truth("simulated.endpoints", table.get("endpoints", False)):
        fleets += _of_endpoints(document, fleets)
    try:
        check_server(experiment.places.workers, seed)
    except InputError as error:
        raise document.wrong("simulated.seed", str(error)) from error
    return Fleets(fleets=fleets, mixes=_mixes(document, table), seed=seed)


def _arrivals(document: Document, table: Mapping[str, Any], rates_per_s: tuple[float, ...]) -> list[str]:
    """Arrival processes; where they are left out, Poisson's at each of the experiment's rates."""
    value = table.get("arrivals", [f"poisson:{rate:g}/s" for rate in rates_per_s if rate > 0.0])
    shape = 'an array of arrival processes, as ["storm:10s", "poisson:50/s"]'
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise document.wrong("simulated.arrivals", f"found {describe(value)}; accepted: {shape}")
    if not value:
        what = "is empty" if "arrivals" in table else "is missing, and there are no rates"
        raise document.wrong("simulated.arrivals", f"{what}; accepted: {shape}")
    document.bounded("simulated.arrivals", value, limits.MAX_RATES)
    document.different("simulated.arrivals", value, value)
    return value


def _fleet(document: Document, arrivals: str, table: Mapping[str, Any], given: Mapping[str, Any]) -> Fleet:
    """One fleet, refused where it makes no sense."""
    from shakedown.simulation.fleet import settle

    discipline = document.choice("simulated.discipline", table.get("discipline", "fifo"), "fifo", "ps")
    resumption = table.get("resumption", 0.0)
    if isinstance(resumption, bool) or not isinstance(resumption, int | float):
        found = f"found {describe(resumption)}; accepted: a share from 0 to 1"
        raise document.wrong("simulated.resumption", found)
    named = dict(given)
    if arrivals.startswith("file:"):
        arrivals = f"file:{document.path.parent / arrivals.removeprefix('file:')}"
        named.pop("clients", None)
    fleet = Fleet(
        arrivals=arrivals,
        timeout_s=document.duration_s("simulated.timeout", table["timeout"]) if "timeout" in table else None,
        resumption=float(resumption),
        from_idle=document.truth("simulated.from_idle", table.get("from_idle", False)),
        discipline=cast(Literal["fifo", "ps"], discipline),
        **named,
    )
    try:
        settle(fleet)
    except InputError as error:
        word = str(error).split(" ", 1)[0]
        key = next((one.name for one in KEYS if one.name.startswith(word)), "arrivals")
        raise document.wrong(f"simulated.{key}", str(error)) from error
    return fleet


def _of_endpoints(document: Document, fleets: tuple[Fleet, ...]) -> tuple[Fleet, ...]:
    """The same fleets of protocol engines, beside the replayed ones."""
    from shakedown.simulation.simulate import Stacks

    try:
        made = tuple(Stacks().fleet(fleet) for fleet in fleets)
    except InputError as error:
        raise document.wrong("simulated.endpoints", str(error)) from error
    return tuple(replace(fleet, endpoints=True) for fleet in made)


def _mixes(document: Document, table: Mapping[str, Any]) -> tuple[Mix, ...]:
    """Mixtures of clients: files, from this one's folder."""
    value = table.get("mix", [])
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        wanted = 'a file, or an array of them, as ["mix.toml"]'
        raise document.wrong("simulated.mix", f"found {describe(value)}; accepted: {wanted}")
    document.bounded("simulated.mix", names, limits.MAX_MIXES)
    if not names:
        return ()
    from shakedown.simulation.mix import read_mix

    found: dict[str, Mix] = {}
    for name in names:
        path = document.path.parent / name
        try:
            kinds = tuple(kind.plain for kind in read_mix(path))
        except InputError as error:
            raise document.wrong("simulated.mix", str(error)) from error
        if path.stem in found:
            raise document.wrong("simulated.mix", f"two are called {path.stem}; accepted: one of each name")
        found[path.stem] = Mix(name=path.stem, kinds=kinds)
    return tuple(found.values())


def _counted(asked: Fleets) -> Iterator[tuple[int, str]]:
    yield len(asked.mixes), "mixture"


TABLE = Table(KEYS, read_fleets, _counted)
