"""The loads on real servers that an experiment requests: the table `[live]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shakedown.experiments.file.document import Document
from shakedown.experiments.file.experiment import Experiment
from shakedown.experiments.file.table import Table, keys_of
from shakedown.native.scenario import Live, Places


def read_loads(document: Document, table: Mapping[str, Any], experiment: Experiment) -> tuple[Live, ...]:
    """The loads, one per rate. Raises `InputError`."""
    if experiment.options.carrier == "eap":
        raise document.wrong("carrier", 'live loads do not support EAP; accepted: "bare"')
    places = experiment.places
    devices = table.get("emulate_device", [])
    table = {
        "workers": places.workers,
        **table,
        "emulate_device": [devices] if isinstance(devices, str) else devices,
    }
    given = document.options(Live, "live", table)
    if given.get("endpoints") and not given.get("compare"):
        raise document.wrong("live.endpoints", "nothing is compared; accepted: with compare = true")
    given["emulate_device"] = _emulate_device(document, given["emulate_device"], given.get("trace_count", 0))
    return tuple(Live(**given | {"rate_per_s": rate}) for rate in _rates_per_s(document, table, places))


def _rates_per_s(
    document: Document, table: Mapping[str, Any], places: Places
) -> tuple[float, ...] | tuple[None]:
    """The rate of each load; None if it follows from the utilisation, or in a closed loop."""
    if "rate" not in table:
        rates = tuple(rate for rate in places.rates_per_s if rate > 0.0)
        is_settled = "utilisation" in table or table.get("arrivals") == "closed"
        return (None,) if is_settled or not rates else rates
    if "utilisation" in table:
        raise document.wrong("live.utilisation", "a rate is given too; accepted: one of them")
    rate_per_s = document.rate_per_s("live.rate", table["rate"])
    if rate_per_s <= 0.0:
        raise document.wrong("live.rate", "found 0; accepted: a rate above 0")
    if table.get("arrivals") == "closed":
        raise document.wrong(
            "live.rate", "a closed loop has no rate; accepted: poisson or deterministic arrivals"
        )
    return (rate_per_s,)


def _emulate_device(document: Document, names: tuple[str, ...], trace_count: int) -> tuple[str, ...]:
    """The devices that sampled clients emulate."""
    from shakedown.profiles import load_device

    if names and not trace_count:
        raise document.wrong("live.emulate_device", "no handshakes are sampled; accepted: with trace_count")
    for name in names:
        with document.at("live.emulate_device"):
            load_device(name)
    return tuple(dict.fromkeys(names))


def _counted(content: tuple[Live, ...]) -> Iterator[tuple[int, str]]:
    yield len(content), "live load"


TABLE = Table(keys_of(Live), read_loads, _counted)
