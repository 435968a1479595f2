"""The fleets that an experiment simulates in each of its places: the table `[simulated]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from shakedown.errors import InputError
from shakedown.experiments.file.document import Document
from shakedown.experiments.file.experiment import Experiment
from shakedown.experiments.file.table import Key, Table, keys_of
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native.scenario import ClientKind, Fleet, Fleets, Mix
from shakedown.simulation.arrivals import FROM_FILE

SWEPT = ("clients", "cells", "clients_per_cell", "retry", "admission", "autoscale", "sessions", "records")
"""Keys that may be arrays, with one fleet for each combination."""

KEYS = (
    Key(
        "arrivals",
        'array of arrival processes: `"poisson:50/s"`, `"deterministic:50/s"`, `"bursts:100@2/min"`, '
        '`"storm:10s"`, `"storm:10s+backoff"`, `"diurnal:50/s"`, `"rates:PATH"`, `"file:PATH"`, `"log:PATH"`',
        "a Poisson process at each of `rates`",
    ),
    *(
        one._replace(value=f"{one.value} An array: a fleet for each.") if one.name in SWEPT else one
        for one in keys_of(Fleet)
    ),
    Key("seed", "random seed", "the file's `seed`, or 1"),
    Key(
        "endpoints",
        "`true`: also simulates each fleet with protocol stacks, by default with a thousand clients",
        "`false`",
    ),
    Key(
        "mix",
        "a file, or an array of them, from this file's folder: [clients of several kinds]"
        "(../guides/simulate.md#clients-of-several-kinds), a fleet for each arrival process",
        "none",
    ),
)

RATED = ("poisson", "deterministic", "bursts")
"""Arrival processes at a rate: only these have a precision and a limit of events."""


def read_fleets(document: Document, table: Mapping[str, Any], experiment: Experiment) -> Fleets:
    """The fleets that a file requests. Raises `InputError`."""
    from shakedown.simulation.deployment import check_server

    if experiment.options.carrier == "eap":
        raise document.wrong("carrier", '[simulated] does not support EAP; accepted: "bare"')
    swept = [document.options(Fleet, "simulated", one) for one in _swept(document, table)]
    seed = document.whole("simulated.seed", table["seed"]) if "seed" in table else experiment.options.seed
    arrivals = _arrivals(document, table, experiment.places.rates_per_s)
    rated = any(text.partition(":")[0] in RATED for text in arrivals)
    # Arrival processes that determine the number of clients have one fleet for all values of `clients`.
    fleets = tuple(
        dict.fromkeys(_fleet(document, text, given, rated) for text in arrivals for given in swept)
    )
    if document.truth("simulated.endpoints", table.get("endpoints", False)):
        fleets += _of_endpoints(document, fleets)
    with document.at("simulated.seed"):
        check_server(experiment.places.workers, seed)
    return Fleets(fleets=fleets, mixes=_mixes(document, table), seed=seed)


def _swept(document: Document, table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the table with one element of each of its arrays, for all combinations."""
    arrays = {key: table[key] for key in SWEPT if isinstance(table.get(key), list)}
    for key, value in arrays.items():
        if not value:
            raise document.wrong(f"simulated.{key}", "is empty; accepted: a value, or an array of values")
        document.bounded(f"simulated.{key}", value, limits.MAX_RATES)
        document.different(f"simulated.{key}", value, [str(one) for one in value])
    chosen = list(islice(product(*arrays.values()), limits.MAX_RATES + 1))
    document.bounded(f"simulated.{next(iter(arrays), 'clients')}", chosen, limits.MAX_RATES)
    for one in chosen:
        yield {**table, **dict(zip(arrays, one, strict=True))}


def _arrivals(document: Document, table: Mapping[str, Any], rates_per_s: tuple[float, ...]) -> list[str]:
    """Arrival processes; default: Poisson processes at the experiment's rates."""
    shape = 'an array of arrival processes such as ["storm:10s", "poisson:50/s"]'
    given = table.get("arrivals", [f"poisson:{rate:g}/s" for rate in rates_per_s if rate > 0.0])
    value = document.array("simulated.arrivals", given, limits.MAX_RATES, str, shape)
    if not value:
        what = "is empty" if "arrivals" in table else "is missing, and there are no rates"
        raise document.wrong("simulated.arrivals", f"{what}; accepted: {shape}")
    document.different("simulated.arrivals", value, value)
    return value


def _fleet(document: Document, arrivals: str, given: Mapping[str, Any], rated: bool) -> Fleet:
    """One fleet. Raises `InputError` for an invalid one. `rated`: some arrivals of the table have a rate."""
    from shakedown.simulation.fleet import settle

    kind, _, rest = arrivals.partition(":")
    unwanted: set[str] = set()
    if rated and kind not in RATED:
        # These keys apply to the arrivals at a rate in the same table.
        unwanted |= {"precision", "max_events"}
    if kind in FROM_FILE:
        arrivals = f"{kind}:{document.path.parent / rest}"
    if kind in FROM_FILE or kind == "diurnal":
        unwanted.add("clients")
    fleet = Fleet(arrivals=arrivals, **{name: value for name, value in given.items() if name not in unwanted})
    try:
        settle(fleet)
    except InputError as error:
        said = str(error)
        named = (one.name for one in KEYS if said.startswith(one.name.replace("_", " ")))
        key = max(named, key=len, default="arrivals")
        raise document.wrong(f"simulated.{key}", str(error)) from error
    return fleet


def _of_endpoints(document: Document, fleets: tuple[Fleet, ...]) -> tuple[Fleet, ...]:
    """The same fleets with protocol engines, in addition to the replayed ones."""
    from shakedown.simulation.simulate import fleet_of_engines

    with document.at("simulated.endpoints"):
        return tuple(replace(fleet_of_engines(fleet), endpoints=True) for fleet in fleets)


def _mixes(document: Document, table: Mapping[str, Any]) -> tuple[Mix, ...]:
    """Mixtures of clients: files, relative to the experiment's folder."""
    value = table.get("mix", [])
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        wanted = 'a file, or an array of them such as ["mix.toml"]'
        raise document.wrong("simulated.mix", f"found {describe(value)}; accepted: {wanted}")
    document.bounded("simulated.mix", names, limits.MAX_MIXES)
    if not names:
        return ()
    from shakedown.simulation.mix import read_mix

    found: dict[str, Mix] = {}
    for name in names:
        path = document.path.parent / name
        with document.at("simulated.mix"):
            # The conversion removes the kinds' places in the file, which are not part of a scenario.
            kinds = convert(read_mix(path), tuple[ClientKind, ...], from_attributes=True)
        if path.stem in found:
            raise document.wrong("simulated.mix", f"two are called {path.stem}; accepted: one of each name")
        found[path.stem] = Mix(name=path.stem, kinds=kinds)
    return tuple(found.values())


def _counted(content: Fleets) -> Iterator[tuple[int, str]]:
    yield len(content.mixes), "mixture"


TABLE = Table(KEYS, read_fleets, _counted)
