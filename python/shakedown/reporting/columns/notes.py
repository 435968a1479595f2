"""Lines below tables; each names the suites and devices that it concerns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from typing import TypeVar

from shakedown.reporting.columns import Row
from shakedown.reporting.columns.flat import figure, flat
from shakedown.reporting.figures import marked, rate, without_figure

Key = TypeVar("Key", bound=Hashable)

MAX_NAMED = 3
"""Names in a line; the number of any others is given."""

MAX_REASONS = 5

_PLACE = (("device", " on {}"), ("bearer", " over {}"), ("server_device", " to {}"))


def subjects(rows: Sequence[Row]) -> list[str]:
    """Each row's suite, with the places, arrivals and rates in which rows differ."""
    keys = (*(key for key, _ in _PLACE), "arrivals", "rate_per_s")
    differ = {key for key in keys if len({repr(row.get(key)) for row in rows}) > 1}
    return [_subject(row, differ) for row in rows]


def _subject(row: Row, differ: Set[str]) -> str:
    said: str = row["suite"] + "".join(words.format(row[key]) for key, words in _PLACE if key in differ)
    if "arrivals" in row:
        return f"{said}, {row['arrivals']}" if "arrivals" in differ else said
    per_s = row.get("rate_per_s")
    return f"{said} at {rate(per_s)}/s" if isinstance(per_s, float) and "rate_per_s" in differ else said


def no_figures(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each figure that a device's profile lacks."""
    work = ("side", "operation", "algorithm", "parameters", "reason")
    found = grouped(
        (
            (row["device" if one["side"] == "client" else "server_device"], *(one[key] for key in work)),
            row["suite"],
        )
        for row in rows
        for one in row["without_cost"]
    )
    for (device, *said), suites in found.items():
        yield f"no figure on {device}: {without_figure(*said)} ({some(suites)})"


def assumptions(rows: Sequence[Row]) -> Iterator[str]:
    """Key shares that are not counted, and a line for servers with unknown software."""
    yield from key_shares(list(map(flat, rows)))
    unknown = [row["suite"] for row in rows if row.get("server_software", "") is None]
    if unknown:
        of_some = "" if len(unknown) == len(rows) else f" of {some(list(dict.fromkeys(unknown)))}"
        yield f"server software{of_some} not recorded: openssl's is assumed; --server-software names another"


def software_notes(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each suite that the server's software does not offer; commands print it to stderr."""
    yield from dict.fromkeys(filter(None, (row.get("server_software_note") for row in rows)))


def key_shares(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each key share that is not counted."""
    found = grouped(
        ((row["device"], _key_share(row)), row["suite"]) for row in rows if row.get("unused_key_share_basis")
    )
    several = len({row["device"] for row in rows}) > 1
    for (device, cost), suites in found.items():
        yield (
            f"{some(suites)}{f' on {device}' if several else ''}: without the key of the key share that "
            f"libssl sends and the suite does not use: {cost}; its bytes are counted"
        )


def _key_share(row: Row) -> str:
    """The cost of generating the key of an unused key share."""
    if row.get("unused_key_share_missing"):
        return f"{row['device']} has no figure for it"
    return (
        f"it would take the client {marked(figure(row, 'unused_key_share_s'), row['unused_key_share_basis'])}"
    )


def not_estimated(rows: Iterable[Row]) -> Iterator[str]:
    """A line for each reason why suites are not estimated on a device, whatever the bearer; only the first
    ones of many.
    """
    found = grouped(((row["device"], row["reason"]), row["suite"]) for row in rows)
    for (device, reason), suites in list(found.items())[:MAX_REASONS]:
        yield f"not estimated on {device}: {reason} ({some(suites)})"
    if len(found) > MAX_REASONS:
        yield f"{len(found) - MAX_REASONS:,} more reasons are in the report"


ENERGIES = {"energy_j": "energy", "wake_tail_j": "energy for wake and tail"}


def no_energies(found: Iterable[tuple[str, str, str, str, str]]) -> Iterator[str]:
    """A line for each unknown part of an energy. `found`: the key of the energy, its part, then suite, device
    and bearer that lack it; a mixture has neither device nor bearer.
    """
    by_place = grouped(((key, part, device, bearer), suite) for key, part, suite, device, bearer in found)
    by_suites = grouped(
        ((key, part, suites, device), bearer) for (key, part, device, bearer), suites in by_place.items()
    )
    for (key, part, suites, device), bearers in by_suites.items():
        place = f" on {device} over {some(bearers)}" if device else ""
        yield f"{ENERGIES[key]} of {some(suites)}{place} is not estimated: no figure for {part}"


def missing_percentiles(
    rows: Iterable[Row], shown: Set[str], counted: str, key: str = "{}_s"
) -> Iterator[str]:
    """The numbers of values that missing percentiles need, for rows that have a median."""
    from shakedown.native import least_values

    known = [row for row in rows if row.get(key.format("p50")) is not None]
    lacking = [
        f"{name} needs {least}"
        for name, least in least_values().items()
        if key.format(name) in shown and any(row.get(key.format(name)) is None for row in known)
    ]
    if lacking:
        yield f"–: too few {counted}; {', '.join(lacking)}"


def grouped(pairs: Iterable[tuple[Key, str]]) -> dict[Key, tuple[str, ...]]:
    """The distinct names of each key."""
    found: dict[Key, dict[str, None]] = {}
    for key, name in pairs:
        found.setdefault(key, {})[name] = None
    return {key: tuple(names) for key, names in found.items()}


def some(names: Sequence[str]) -> str:
    """`A, B`, `A, B and 7 more`."""
    shown = names if len(names) <= MAX_NAMED else names[: MAX_NAMED - 1]
    return ", ".join(shown) + (f" and {len(names) - len(shown):,} more" if len(shown) < len(names) else "")
