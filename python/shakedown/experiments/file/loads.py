"""The loads on real servers that an experiment asks for: the table `[live]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shakedown.errors import InputError
from shakedown.experiments.file.table import Key, Table
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native.scenario import Live, Places

if TYPE_CHECKING:
    from shakedown.experiments.file import Experiment
    from shakedown.experiments.file.document import Document

KEYS = (
    Key("rate", 'connections that are started a second: `"100/s"`', "each of `rates`"),
    Key(
        "utilisation",
        "without any rate: the share of the workers' time that the handshake's work, as measured, fills",
        "0.3",
    ),
    Key(
        "arrivals",
        '`"poisson"`, `"deterministic"`, or `"closed"`, where a client\'s next begins when its last is over',
        '`"poisson"`',
    ),
    Key("duration", 'how long connections are started: `"10s"`, at most an hour', "10 s"),
    Key("count", "the most connections", "any number"),
    Key("clients", "clients, each with a session of its own", "16"),
    Key("resumption", "share of the connections that resume", "0; all in suites that resume"),
    Key("timeout", "the longest that a connection may take", "10 s"),
    Key("workers", "the server's threads, at most 256", "the experiment's `workers`"),
    Key("compare", "`true`: the same modelled and simulated, beside it", "`false`"),
    Key(
        "endpoints", "`true`: the protocol engines in virtual time, too, where `compare` is `true`", "`false`"
    ),
    Key(
        "trace_count",
        "handshakes that are sampled on both sides, in a load of their own without a queue: where the time "
        "goes",
        "none",
    ),
    Key(
        "emulate_device",
        "a device, or an array of them: the same with a client that takes their time",
        "none",
    ),
)


def read_loads(document: Document, table: Mapping[str, Any], experiment: Experiment) -> tuple[Live, ...]:
    """The loads, one a rate. Raises `InputError`."""
    if experiment.options.carrier == "eap":
        raise document.wrong("carrier", 'live loads know no EAP; accepted with [live]: "bare"')
    places = experiment.places
    given: dict[str, Any] = {"workers": places.workers}
    for name, most in (
        ("count", limits.MAX_LIVE_STARTS),
        ("clients", limits.MAX_LIVE_CLIENTS),
        ("workers", limits.MAX_LIVE_WORKERS),
        ("trace_count", limits.MAX_LIVE_TRACES),
    ):
        if name in table or name in given:
            given[name] = document.whole(f"live.{name}", table.get(name, given.get(name)), most=most)
    for name, least in (("resumption", 0.0), ("utilisation", 0.01)):
        value = table.get(name, getattr(Live(), name))
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1:
            found = f"found {describe(value)}; accepted: a share from {least:g} to 1"
            raise document.wrong(f"live.{name}", found)
        given[name] = float(value)
    for name in ("duration", "timeout"):
        if name in table:
            given[f"{name}_s"] = _time_s(document, f"live.{name}", table[name])
    given["arrivals"] = document.choice(
        "live.arrivals", table.get("arrivals", "poisson"), "poisson", "deterministic", "closed"
    )
    given["compare"] = document.truth("live.compare", table.get("compare", False))
    given["endpoints"] = document.truth("live.endpoints", table.get("endpoints", False))
    if given["endpoints"] and not given["compare"]:
        raise document.wrong("live.endpoints", "nothing is compared; accepted with it: compare = true")
    given["emulate_device"] = _emulate_device(document, table, given.get("trace_count", 0))
    return tuple(Live(rate_per_s=rate, **given) for rate in _rates_per_s(document, table, places))


def _rates_per_s(
    document: Document, table: Mapping[str, Any], places: Places
) -> tuple[float, ...] | tuple[None]:
    """The rate of each load; None where it follows from the utilisation, or in a closed loop."""
    if "rate" not in table:
        rates = tuple(rate for rate in places.rates_per_s if rate > 0.0)
        is_settled = "utilisation" in table or table.get("arrivals") == "closed"
        return (None,) if is_settled or not rates else rates
    if "utilisation" in table:
        raise document.wrong("live.utilisation", "a rate is given too; accepted: one of the two")
    rate_per_s = document.rate_per_s("live.rate", table["rate"])
    if rate_per_s <= 0.0:
        raise document.wrong("live.rate", "found 0; accepted: a rate above 0")
    if table.get("arrivals") == "closed":
        raise document.wrong(
            "live.rate", "a closed loop has no rate; accepted: poisson or deterministic arrivals"
        )
    return (rate_per_s,)


def _time_s(document: Document, key: str, value: object) -> float:
    time_s = document.duration_s(key, value)
    if not 0.0 < time_s <= limits.MAX_LIVE_S:
        accepted = f"above 0, at most {limits.MAX_LIVE_S} s"
        raise document.wrong(key, f"found {describe(value)}; accepted: {accepted}")
    return time_s


def _emulate_device(document: Document, table: Mapping[str, Any], trace_count: int) -> tuple[str, ...]:
    """Devices whose time sampled clients take."""
    from shakedown.profiles import load_device

    value = table.get("emulate_device", [])
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        wanted = 'a device, or an array of them, as ["raspberry-pi"]'
        raise document.wrong("live.emulate_device", f"found {describe(value)}; accepted: {wanted}")
    if names and not trace_count:
        raise document.wrong(
            "live.emulate_device", "no handshakes are sampled; accepted with it: trace_count"
        )
    for name in names:
        try:
            load_device(name)
        except InputError as error:
            raise document.wrong("live.emulate_device", str(error)) from error
    return tuple(dict.fromkeys(names))


def _counted(asked: tuple[Live, ...]) -> Iterator[tuple[int, str]]:
    yield len(asked), "live load"


TABLE = Table(KEYS, read_loads, _counted)
