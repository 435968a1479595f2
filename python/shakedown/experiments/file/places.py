"""The places in which an experiment's handshakes are estimated: devices, bearers, rates, time limit."""

from __future__ import annotations

from shakedown.experiments.file.document import Document
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native.scenario import DEFAULT_PERCENTILE, Places
from shakedown.schema.predictions import MAX_WITHIN_S
from shakedown.schema.units import parse_charge_j

KEYS = ("devices", "server_device", "bearers", "rates", "workers", "within", "percentile", "battery")


def read_places(document: Document) -> Places:
    """The places that a file names. Raises `InputError`."""
    server = document.string("server_device", "")
    devices = document.profiles("devices", document.strings("devices", limits.MAX_PLACES))
    bearers = document.profiles("bearers", document.strings("bearers", limits.MAX_PLACES))
    if len(devices) * len(bearers) > limits.MAX_PLACES:
        raise document.wrong(
            "bearers",
            f"found {len(devices):,} devices with {len(bearers):,} bearers each; accepted: "
            f"{limits.MAX_PLACES:,} pairs at most",
        )
    return Places(
        devices=devices,
        server_device=next(iter(document.profiles("server_device", (server,) if server else ())), None),
        bearers=bearers,
        rates_per_s=_rates_per_s(document),
        workers=document.whole("workers", document.data.get("workers", 1), most=limits.MAX_WORKERS),
        within_s=_within_s(document),
        percentile=_percentile(document),
        battery_j=_battery_j(document),
    )


def _battery_j(document: Document) -> float | None:
    value = document.data.get("battery")
    if value is None:
        return None
    if not isinstance(value, str):
        raise document.wrong("battery", f'found {describe(value)}; accepted: a charge such as "2.5Wh"')
    with document.at("battery"):
        return parse_charge_j(value)


def _rates_per_s(document: Document) -> tuple[float, ...]:
    shape = 'an array of rates such as ["10/s", "300/s"]'
    value = document.array("rates", document.data.get("rates", []), limits.MAX_RATES, object, shape)
    rates_per_s = tuple(document.rate_per_s("rates", item) for item in value)
    document.different("rates", value, rates_per_s)
    return rates_per_s


def _within_s(document: Document) -> float | None:
    """Limit of the time until the client is ready, for which the workers are computed."""
    value = document.data.get("within")
    if value is None:
        return None
    within_s = document.duration_s("within", value)
    if not 0.0 < within_s <= MAX_WITHIN_S:
        accepted = f"a time above 0 s, {MAX_WITHIN_S:,.0f} s at most"
        raise document.wrong("within", f"found {describe(value)}; accepted: {accepted}")
    return within_s


def _percentile(document: Document) -> float:
    """The share of handshakes that must meet the time limit, in per cent."""
    value = document.data.get("percentile", DEFAULT_PERCENTILE)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 100.0:
        raise document.wrong("percentile", f"found {describe(value)}; accepted: above 0 and below 100")
    if "percentile" in document.data and "within" not in document.data:
        raise document.wrong("percentile", 'there is no time limit; accepted: with "within"')
    return float(value)
