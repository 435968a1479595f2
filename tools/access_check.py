"""Access to shared cells, compared with published results: the table of docs/validation/access.md.

    python -m tools.access_check [--write]

Each row has a published number, or one computed here without the simulator, the simulator's result, and the
tolerance of their difference. Published numbers that were not checked are marked. The exit status is 1 if a
row is not within its tolerance, except for rows that the page explains.
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs
from scipy import optimize, stats

from shakedown.native import virtual_time
from shakedown.prediction.spec import message_spec, work_spec
from shakedown.profiles import load_bearer
from shakedown.schema.base import builtins
from shakedown.schema.profiles import Aloha, Cell, Csma, RandomAccess, Sense
from tools import ideal, pages

PAGE = pages.VALIDATION / "access.md"

TR = "3GPP TR 37.868, not checked"
BIANCHI, ABRAMSON, ROBERTS = "Bianchi 2000, eq. 7, 9, 13", "Abramson 1970", "Roberts 1975"
DENSITY = "3GPP TR 45.820, quoted by Sauter 2016"
RCE, ERLANG, AUGUSTIN = "Wei, Bianchi and Cheng 2015", "Erlang 1917", "Augustin et al. 2016, not checked"

NUMPY_SIMULATION = "the same rules, drawn with NumPy"

COARSE, FINE = (0.25, 0.05, 3.0), (0.05, 0.02, 1.0)
"""Tolerances of random access to the recursion and to drawn results: shares of collisions, of means, points
of success.
"""

FRAMES, LISTENED, REPLICATIONS = 200_000, 50_000, 400

OUTSIDE = {
    (TR, "30,000 devices in 10 s (beta): access delay, ms"),
    (RCE, "NB-IoT, 500 devices in 60 s (beta): access delay, ms"),
}
"""Rows that are not within their tolerance; the page gives the reasons."""


@dataclass(frozen=True)
class Row:
    """One comparison; `tolerance` is absolute."""

    source: str
    what: str
    expected: float
    ours: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance."""
        return abs(self.ours - self.expected) <= self.tolerance


def simulated(
    cell: Mapping[str, Any],
    arrivals: Mapping[str, Any],
    clients: int,
    *,
    packet_bytes: int = 1,
    packets: int = 1,
    rate_bits_per_s: float | None = None,
    service_s: float = 0.0,
    replications: int = 1,
) -> dict[str, Any]:
    """The core's report on clients that send packets over one cell."""
    messages = [
        message_spec("client", "Finished", packet_bytes, flight=number, process=work_spec(service_s))
        for number in range(1, packets + 1)
    ]
    cells = {"count": 1, **cell}
    spec = {
        "classes": [ideal.clients(messages, rate_bits_per_s=rate_bits_per_s, cell=cells)],
        "clients": clients,
        "arrivals": arrivals,
        "server": {"workers": 1000},
        "seed": 1,
        "replications": replications,
    }
    return virtual_time.simulate(spec)


def times(law: str, devices: int, span_s: float) -> list[float]:
    """Arrivals of the report's two traffic models."""
    draws = np.random.default_rng(devices)
    shares = draws.uniform(size=devices) if law == "uniform" else draws.beta(3.0, 4.0, size=devices)
    return [float(one) for one in np.sort(shares) * span_s]


def contenders(spec: RandomAccess, at_s: Sequence[float], span_s: float) -> dict[str, float]:
    """The recursion of Wei, Bianchi and Cheng: the expected number of devices that send their n-th preamble
    at each opportunity; those alone on a preamble, detected and granted, succeed.

    The number of first preambles is that of arrivals; repeated ones are a Poisson number.
    """
    period, others = spec.opportunity_s, 1.0 - 1.0 / spec.preambles
    slots = round((span_s + spec.attempts * (spec.response_s + spec.backoff_s + 2 * period)) / period) + 2
    sends = np.zeros((slots, spec.attempts + 1))
    elapsed_s = np.zeros_like(sends)  # sum over devices of the time since their first preambles
    for slot in np.ceil(np.asarray(at_s) / period).astype(int):
        sends[slot, 1] += 1.0
    pauses = np.ceil((spec.response_s + np.linspace(0.0, spec.backoff_s, 20_001)) / period).astype(int)
    later, weights = np.unique(pauses, return_counts=True)
    weights = weights / weights.sum()
    tries = np.arange(spec.attempts + 1)
    detected = 1.0 - np.exp(-tries) if spec.detection == "ramping" else np.ones(spec.attempts + 1)
    succeeded, delay_s, collisions = np.zeros(spec.attempts + 1), 0.0, 0.0
    for slot in range(slots):
        if not sends[slot].any():
            continue
        none = others ** sends[slot, 1] * math.exp(-sends[slot, 2:].sum() / spec.preambles)
        alone = sends[slot] * np.where(tries == 1, none / others, none)
        collisions += spec.preambles * (1.0 - none) - alone.sum()
        good = alone * detected
        if spec.grants is not None and good.sum() > spec.grants:
            good *= spec.grants / good.sum()
        succeeded += good
        mean_s = np.divide(elapsed_s[slot], sends[slot], where=sends[slot] > 0.0, out=np.zeros_like(good))
        delay_s += (good * mean_s).sum()
        again = sends[slot] - good
        for after, weight in zip(later, weights, strict=True):
            if slot + after < slots:
                sends[slot + after, 1:] += weight * again[:-1]
                elapsed_s[slot + after, 1:] += weight * (again * (mean_s + after * period))[:-1]
    repeats = [spec.repetition**count for count in range(spec.transmissions)]
    repeated = sum(count * share for count, share in enumerate(repeats)) / sum(repeats)
    return {
        "success": succeeded.sum() / len(at_s),
        "preambles": float((succeeded * tries).sum() / succeeded.sum()),
        "delay_s": delay_s / succeeded.sum() + spec.connect_s + 2.0 * repeated * spec.repetition_s,
        "collisions": collisions,
    }


def drawn(spec: RandomAccess, at_s: Sequence[float], runs: int) -> dict[str, float]:
    """The same figures, device by device with NumPy's generator, because a recursion over expectations is
    coarse if few devices share an opportunity or all of its grants are used.
    """
    draws, period = np.random.default_rng(runs), spec.opportunity_s
    sent, delays_s, collisions = [], [], 0
    for _ in range(runs):
        turn = np.ceil(np.asarray(at_s) / period).astype(int)
        first, tries = turn.copy(), np.zeros(len(turn), int)
        for slot in itertools.count():
            if not (turn >= slot).any():
                break
            here = np.flatnonzero(turn == slot)
            tries[here] += 1
            chosen = draws.integers(spec.preambles, size=len(here))
            taken = np.bincount(chosen, minlength=spec.preambles)
            collisions += int((taken > 1).sum())
            heard = draws.random(len(here)) > np.exp(-tries[here]) if spec.detection == "ramping" else True
            good = draws.permutation(here[(taken[chosen] == 1) & heard])[: spec.grants]
            repeats = draws.geometric(1.0 - spec.repetition, (2, len(good))) - 1
            done = good[repeats.max(axis=0, initial=0) < spec.transmissions]
            sent += list(tries[done])
            repeated_s = spec.repetition_s * repeats.sum(axis=0)[np.isin(good, done)]
            delays_s += list((slot - first[done]) * period + spec.connect_s + repeated_s)
            again = np.setdiff1d(here, done)
            pause_s = spec.response_s + draws.uniform(0.0, spec.backoff_s, len(again))
            turn[again] = np.where(tries[again] < spec.attempts, slot + np.ceil(pause_s / period), -1)
            turn[done] = -1
    success = len(sent) / runs / len(at_s)
    means = {"preambles": float(np.mean(sent)), "delay_s": float(np.mean(delays_s))}
    return {"success": success, "collisions": collisions / runs, **means}


def cell_of(bearer: str) -> tuple[Cell, RandomAccess]:
    """A shipped bearer's cell and its random access; raises `ValueError` if it has none."""
    match load_bearer(bearer).cell:
        case Cell(entry=RandomAccess() as entry) as cell:
            return cell, entry
    raise ValueError(f"bearer {bearer!r} has no cell with random access")


def random_access() -> Iterator[Row]:
    """LTE: the report's figures and the recursion; NB-IoT: the recursion; both also with drawn results."""
    _, lte = cell_of("lte")
    published = {
        (5_000, "uniform"): (0.01, 100.0, 1.43, 25.60),
        (10_000, "uniform"): (0.03, 100.0, 1.45, 26.05),
        (30_000, "uniform"): (0.22, 100.0, 1.50, 27.35),
        (5_000, "beta"): (0.45, 100.0, None, None),
        (10_000, "beta"): (1.98, 100.0, None, None),
        (30_000, "beta"): (47.76, 29.5, 3.49, 76.81),
    }
    for (devices, law), (collisions, success, preambles, delay_ms) in published.items():
        span_s = 60.0 if law == "uniform" else 10.0
        at_s = times(law, devices, span_s)
        access = simulated({"entry": builtins(lte)}, {"kind": "times", "at_s": at_s}, devices)["access"]
        place = f"{devices:,} devices in {span_s:g} s ({law})"
        opportunities = lte.preambles * span_s / lte.opportunity_s
        found = 100.0 * access["collisions"] / opportunities
        yield Row(TR, f"{place}: collisions, %", collisions, found, max(0.25 * collisions, 0.01))
        yield Row(TR, f"{place}: success, %", success, 100.0 * access["admitted"] / devices, 3.0)
        if preambles is not None and delay_ms is not None:
            yield Row(TR, f"{place}: preambles", preambles, access["attempts"]["mean"], 0.05 * preambles)
            delay = 1e3 * access["delay_s"]["mean"]
            yield Row(TR, f"{place}: access delay, ms", delay_ms, delay, 0.05 * delay_ms)
        yield from _rows(RCE, place, contenders(lte, at_s, span_s), access, opportunities, COARSE)
        if (devices, law) == (30_000, "beta"):
            yield from _rows(NUMPY_SIMULATION, place, drawn(lte, at_s, 10), access, opportunities, FINE)
    _, narrow = cell_of("nb-iot")
    for devices in (500, 1_000, 3_000):
        at_s = times("beta", devices, 60.0)
        spec, arrivals = {"entry": builtins(narrow)}, {"kind": "times", "at_s": at_s}
        access = simulated(spec, arrivals, devices, replications=REPLICATIONS)["access"]
        place = f"NB-IoT, {devices:,} devices in 60 s (beta)"
        opportunities = narrow.preambles * 60.0 / narrow.opportunity_s
        access["collisions"] /= REPLICATIONS
        yield from _rows(RCE, place, contenders(narrow, at_s, 60.0), access, opportunities, COARSE)
        found = drawn(narrow, at_s, REPLICATIONS)
        yield from _rows(NUMPY_SIMULATION, place, found, access, opportunities, FINE)


def density() -> Iterator[Row]:
    """NB-IoT: 50,000 devices on one carrier, each sending 105 bytes five times per hour."""
    cell, entry = cell_of("nb-iot")
    more = structs.replace(entry, opportunity_s=0.16, preambles=48)
    carrier = {"entry": builtins(more), "up_bits_per_s": cell.up_bits_per_s}
    arrivals = {"kind": "poisson", "per_s": 50_000 * 5 / 3600.0}
    report = simulated(carrier, arrivals, FRAMES, packet_bytes=105)
    access = report["access"]
    place = "NB-IoT, 50,000 devices, 5 packets an hour"
    carried = 8e-3 * access["bytes"][0] / report["virtual_s"]
    yield Row(DENSITY, f"{place}: carried, kbit/s", 58.333, carried, 0.02 * 58.333)
    success = 100.0 * access["admitted"] / access["requests"]
    yield Row(DENSITY, f"{place}: success, %", 100.0, success, 1.0)


def _rows(
    source: str,
    place: str,
    expected: Mapping[str, float],
    access: Mapping[str, Any],
    opportunities: float,
    near: tuple[float, float, float],
) -> Iterator[Row]:
    """Random access as computed here; `near`: tolerances as shares of collisions, of means, and in points."""
    of_collisions, of_means, points = near
    collided = 100.0 * expected["collisions"] / opportunities
    found = 100.0 * access["collisions"] / opportunities
    yield Row(source, f"{place}: collisions, %", collided, found, max(of_collisions * collided, 0.01))
    success = 100.0 * access["admitted"] / access["requests"]
    yield Row(source, f"{place}: success, %", 100.0 * expected["success"], success, points)
    sent, delay_ms = expected["preambles"], 1e3 * expected["delay_s"]
    yield Row(source, f"{place}: preambles", sent, access["attempts"]["mean"], of_means * sent)
    found_ms = 1e3 * access["delay_s"]["mean"]
    yield Row(source, f"{place}: access delay, ms", delay_ms, found_ms, of_means * delay_ms)


def dcf() -> Iterator[Row]:
    """Stations that always have a frame: Bianchi's parameters (1 Mbit/s, frames of 8,184 bits)."""
    payload_s, header_s, acknowledged_s, idle_s = 8184e-6, 400e-6, 269e-6, 129e-6
    for stations, window, stages in (
        *((number, 32, 3) for number in (5, 10, 20, 50)),
        (10, 32, 5),
        (50, 32, 5),
        (20, 128, 3),
    ):
        spec = Csma(50e-6, window, window << stages, 1_000_000, header_s, acknowledged_s, idle_s)
        cell, arrivals = {"contention": builtins(spec)}, {"kind": "storm", "within_s": 0.0}
        report = simulated(cell, arrivals, stations, packet_bytes=1023, packets=250, rate_bits_per_s=1e6)
        found = report["access"]["airtime_s"][0] / report["virtual_s"]
        collision_s = header_s + payload_s + idle_s
        success_s = collision_s + acknowledged_s
        expected = saturation(stations, window, stages, (50e-6, success_s, collision_s, payload_s))
        what = f"{stations} stations, W = {window}, m = {stages}: saturation throughput"
        yield Row(BIANCHI, what, expected, found, 0.03)


def saturation(stations: int, window: int, stages: int, times_s: tuple[float, float, float, float]) -> float:
    """The share of time in which payload is carried if stations always have a frame."""
    slot_s, success_s, collision_s, payload_s = times_s

    def sends(p: float) -> float:
        return 2.0 / (1.0 + window + p * window * sum((2.0 * p) ** stage for stage in range(stages)))

    tau = sends(optimize.brentq(lambda p: 1.0 - (1.0 - sends(p)) ** (stations - 1) - p, 0.0, 1.0))
    none = (1.0 - tau) ** stations
    one = stations * tau * (1.0 - tau) ** (stations - 1)
    return one * payload_s / (none * slot_s + one * success_s + (1.0 - none - one) * collision_s)


def aloha() -> Iterator[Row]:
    """Frames of one second, as a Poisson process."""
    for source, kind, slot_s, loads in (
        (ABRAMSON, "pure", 0.0, (0.1, 0.25, 0.5, 1.0)),
        (ROBERTS, "slotted", 1.0, (0.5, 1.0, 2.0)),
    ):
        for load in loads:
            expected, found = load * math.exp((slot_s - 2.0) * load), load * received(load, slot_s)
            yield Row(source, f"{kind} ALOHA, load {load:g}: throughput", expected, found, 0.01)
    yield Row(AUGUSTIN, "LoRaWAN, link load 0.48: throughput", 0.18, 0.48 * received(0.48, 0.0), 0.01)
    yield Row(AUGUSTIN, "LoRaWAN, link load 0.48: lost, %", 60.0, 100.0 * (1.0 - received(0.48, 0.0)), 3.0)


def carrier_sense() -> Iterator[Row]:
    """Frames of 127 bytes over IEEE 802.15.4, as a Poisson process."""
    bearer = load_bearer("802154")
    match bearer.cell:
        case Cell(contention=Aloha(sense=Sense() as sense) as spec):
            cell = {"contention": builtins(spec)}
        case _:
            raise ValueError(f"bearer {bearer.name} has no cell with carrier sense")
    rate = bearer.up.rate_bits_per_s
    frame_s = 8.0 * 127 / rate
    for load in (0.3, 0.7, 1.3):
        expected = listened(sense, spec.attempts, frame_s, load)
        arrivals = {"kind": "poisson", "per_s": load / frame_s}
        access = simulated(cell, arrivals, LISTENED, packet_bytes=127, rate_bits_per_s=rate)["access"]
        shares = (access["bytes"][0] / 127 / LISTENED, access["collided"] / access["transmissions"])
        for what, wanted, found in zip(("received", "collided"), expected, shares, strict=True):
            name = f"802.15.4, load {load:g}: {what}, %"
            yield Row(NUMPY_SIMULATION, name, 100.0 * wanted, 100.0 * found, 1.0)


def listened(sense: Sense, attempts: int, frame_s: float, load: float) -> tuple[float, float]:
    """Unslotted CSMA/CA with one frame per station, drawn with NumPy: the share of frames that are received,
    and the share of transmissions that collide.
    """
    draws = np.random.default_rng(round(100 * load))
    # Time, frame, number of busy results, number of transmissions; or the end of a transmission.
    steps: list[tuple[float, int, int, int, bool]] = []
    air: dict[int, tuple[float, bool]] = {}  # by frame: start time, and whether it has collided

    def wait(at: float, frame: int, busy: int, sent: int) -> None:
        units = int(draws.integers(2 ** min(sense.min_exponent + busy, sense.max_exponent)))
        heapq.heappush(steps, (at + sense.unit_s * units, frame, busy, sent, False))

    for frame, at in enumerate(np.cumsum(draws.exponential(frame_s / load, LISTENED))):
        wait(float(at), frame, 0, 0)
    received = transmissions = collided = 0
    while steps:
        at, frame, busy, sent, ends = heapq.heappop(steps)
        if not ends and any(begins <= at for begins, _ in air.values()):
            if busy < sense.busy:
                wait(at, frame, busy + 1, sent)
        elif not ends:
            air.update({other: (begins, True) for other, (begins, _) in air.items()})
            air[frame] = (at + sense.turnaround_s, bool(air))
            heapq.heappush(steps, (at + sense.turnaround_s + frame_s, frame, busy, sent + 1, True))
        else:
            _, lost = air.pop(frame)
            transmissions += 1
            collided += lost
            received += not lost
            if lost and sent < attempts:
                wait(at, frame, 0, sent)
    return received / LISTENED, collided / transmissions


def received(load: float, slot_s: float) -> float:
    """The share of frames that do not collide."""
    cell = {"contention": {"kind": "aloha", "slot_s": slot_s}}
    arrivals = {"kind": "poisson", "per_s": load}
    access = simulated(cell, arrivals, FRAMES, packet_bytes=1250, rate_bits_per_s=10_000.0)["access"]
    return 1.0 - float(access["collided"]) / float(access["transmissions"])


def circuits() -> Iterator[Row]:
    """Calls of one second."""
    for channels, erlangs in ((1, 0.5), (7, 3.0), (14, 8.0), (14, 14.0), (30, 25.0)):
        blocked = stats.poisson.pmf(channels, erlangs) / stats.poisson.cdf(channels, erlangs)
        cell = {"entry": {"kind": "circuits", "channels": channels}}
        access = simulated(cell, {"kind": "poisson", "per_s": erlangs}, FRAMES, service_s=1.0)["access"]
        found = 100.0 * access["refused"] / access["requests"]
        what = f"{channels} channels, {erlangs:g} erlangs: blocked, %"
        yield Row(ERLANG, what, 100.0 * blocked, found, 0.5)


def rows() -> list[Row]:
    return [*random_access(), *density(), *dcf(), *carrier_sense(), *aloha(), *circuits()]


def markdown(found: Sequence[Row]) -> str:
    """The page's table."""
    cells = []
    for row in found:
        expected, *numbers = (f"{value:.4g}" for value in (row.expected, row.ours, row.tolerance))
        about = "≈ " if row.source.endswith("not checked") else ""
        outside = "" if row.agrees else "**outside**"
        cells.append((row.source, row.what, about + expected, *numbers, outside))
    return pages.table("source | what | >expected | >here | >tolerance |", cells)


def main() -> int:
    """Print the table, or write it into the page."""
    parser = pages.options("access_check", __doc__)
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    write = parser.parse_args().write
    found = rows()
    if write:
        pages.write(PAGE, "rows", markdown(found))
    else:
        print(markdown(found))
    return int({(row.source, row.what) for row in found if not row.agrees} != OUTSIDE)


if __name__ == "__main__":
    sys.exit(main())
