"""Lines about fleets below their tables: what they lack, their limits, their failures and their data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from msgspec import UNSET

from shakedown.reporting.columns import Row
from shakedown.reporting.columns.flat import figure, flat, interval
from shakedown.reporting.columns.notes import grouped, missing_percentiles, some
from shakedown.reporting.figures import count, marked, share, time, time_range
from shakedown.schema.base import builtins
from shakedown.schema.simulated import ClosedForm, Endpoints, Precision, Records, Simulated, SimulatedMix

UNSTABLE = (
    "unstable: more work arrives than the workers can do; times and failures grow with the number of clients"
)
WAYS = {"up": "uplink", "down": "downlink", "both": "channel"}
CAUSES = {
    "timeout": "timeout",
    "connect": "no response to any SYN",
    "transport": "retransmissions exhausted",
    "reset": "reset",
    "refused": "refused by the server",
    "lost": "lost",
}


def saturation(row: Simulated | SimulatedMix) -> str:
    """Saturated cells, or the saturated limit of handshakes, and the consequence; empty without either."""
    found = [
        f"cells of {one.medium} saturated ({share(one.offered)} of their {WAYS[one.ways]} time needed)"
        for one in (row.access.saturated if row.access is not None else ())
    ]
    if row.carried is not None:
        found.append(f"the limit of handshakes permits {share(row.carried)} of the arriving clients")
    return f"{', '.join(found)}: times grow with the number of clients" if found else ""


def imprecise(found: Precision, saturated: str = "") -> str:
    """Why a row is marked: the reached precision, and what else makes its figures uncertain.

    `saturated` is the text of `saturation`.
    """
    if found.reached is None:
        return "; ".join(filter(None, ("from one replication; precision unknown", saturated)))
    if saturated and found.reached <= found.asked:
        return saturated
    digits = fine = 0 if found.asked >= 0.01 else 1
    # A missed target and what was reached differ as printed.
    while found.reached > found.asked and fine < 4 and round(found.reached, fine + 2) <= found.asked:
        fine += 1
    why = saturated
    if not why and not found.is_settled:
        short = "the run is short compared with the correlation time of the queues"
        why = f"{short}, so intervals may be too narrow"
    elif not why and not found.is_long_enough and found.reached <= found.asked:
        why = "the run is short for this precision, so its intervals may be narrow by chance"
    wide = f"{found.widest} ± {share(found.reached, fine)}, target ± {share(found.asked, digits)}"
    return "; ".join(filter(None, (wide, why)))


def steady_notes(rows: Iterable[tuple[str, str | None, str | None]]) -> Iterator[str]:
    """A line for the fleets that are less precise than the target, and for those that are saturated:
    the names of fleets, with the texts of `imprecise` and `saturation`.
    """
    found = grouped(
        (("! ", less) if less else ("", cells), name) for name, less, cells in rows if less or cells
    )
    yield from (f"{mark}{some(names)}: {why}" for (mark, why), names in found.items())


def steady(name: str, row: Simulated | SimulatedMix) -> tuple[str, str, str]:
    found = row.precision
    saturated = saturation(row)
    less = "" if found is None or found.is_met else imprecise(found, saturated)
    return name, less, saturated


def is_continuous(rate_per_s: float | None, arrivals: str) -> bool:
    """Whether clients arrive at a steady or changing rate, and not in a storm, which has an end."""
    return rate_per_s is not None or arrivals.startswith(("diurnal:", "rates:", "log:"))


def in_cells(one: Simulated | SimulatedMix) -> str:
    """Whether clients share cells of a medium, and how many."""
    if one.cells is not None:
        return f" in {count(one.cells, 'cell')}"
    return ", each with a link of its own" if one.own_links else ""


def bases(rows: Iterable[tuple[str, Row]]) -> Iterator[str]:
    """A line for the fleets whose times are not based on the devices' own figures alone."""
    found = grouped((row.get("ready_basis"), name) for name, row in rows)
    for basis in ("scaled", "assumed"):
        if basis in found:
            yield f"costs in part {basis}{f': {some(found[basis])}' if len(found) > 1 else ''}"


def few_clients(rows: Iterable[Row], columns: Set[str]) -> Iterator[str]:
    """The reason for missing percentiles of the times until clients were ready."""
    yield from missing_percentiles(rows, columns, "clients", "ready_{}_s")


def least_work_note(missing: Sequence[object]) -> str:
    """The note on counts if some work has no figure: they are those for the least work."""
    return " (with the least work: a part of it has no figure)" if missing else ""


def server_notes(one: Simulated | SimulatedMix) -> Iterator[str]:
    """Connections that servers refused, and servers that started and stopped."""
    if (found := one.admission) is not None:
        asked = count(found.admitted + found.refused, "connection")
        yield f"servers refused {found.refused:,} of {asked} by {found.refuse}{least_work_note(one.missing)}"
    if (scaled := one.autoscaling) is not None:
        yield (
            f"up to {count(scaled.peak, 'server')} in service; "
            f"{scaled.started} started, {scaled.stopped} stopped; "
            f"in total {time(scaled.server_s)} in service and {time(scaled.starting_s)} starting"
            f"{least_work_note(one.missing)}"
        )


def _offered_at_most(one: Simulated | SimulatedMix) -> float | None:
    """The load at the upper end of the work per record; None if that is unknown."""
    if (found := one.records) is UNSET or one.offered is None:
        return None
    offered, work, share = one.offered.estimate, found.work_s, found.utilisation.estimate
    if offered is None or share is None or work.upper is None or not work.estimate:
        return None
    return offered + share * (work.upper / work.estimate - 1.0)


def record_note(one: Simulated | SimulatedMix) -> Iterator[str]:
    """The data that clients send after their handshakes, and its share of the server's time."""
    if (found := one.records) is UNSET:
        return
    saturates = ""
    if (offered := _offered_at_most(one)) is not None and offered >= 1.0 and not one.unstable:
        saturates = f" (at {_two_digits(found.work_s.upper)} each, the server would saturate)"
    utilisation = one.utilisation.estimate or one.utilisation.lower or 0.0
    yield sent(found, utilisation, saturates) + least_work_note(one.missing)


def _two_digits(seconds: float | None) -> str:
    return time(seconds, 2)


def sent(found: Records, utilisation: float, remark: str = "") -> str:
    """The data that clients send after their handshakes, and its share of a server's utilisation."""
    plain = flat({"work_s": builtins(found.work_s)})
    work = interval(plain, "work_s", _two_digits, lambda low, high: time_range(low, high, 2))
    if found.work_s.estimate is not None:
        work = f"{marked(figure(plain, 'work_s'), found.work_s.basis)} ({work})"
    of_it = found.utilisation.estimate
    part = "an unknown part" if of_it is None else share(of_it / utilisation if utilisation else 0.0)
    later = ""
    if found.not_simulated:
        later = (
            f"; the run ends with the last handshake: {found.not_simulated:,} of these sends are due later "
            "and not simulated"
        )
    return (
        f"after its handshake each client sends {found.size_bytes:,} bytes every {time(found.interval_s)}, "
        f"{count(found.count, 'time')}; the server works {work} on each, "
        f"{part} of its utilisation"
        f"{remark}; at most {found.peak_open:,} connections were open{later}"
    )


_JITTER = {0.0: "none", 0.5: "half", 1.0: "full"}


def tried_again(row: Simulated | SimulatedMix, again: int) -> str:
    """How often clients tried again, and the options that determine when."""
    return f"clients tried again {again:,} times ({_retry_options(row)}){least_work_note(row.missing)}"


def retries(repeated: Iterable[tuple[str, Simulated, int]]) -> Iterator[str]:
    """How often the clients of each suite tried again; suites with the same options share a line."""
    alike: dict[str, list[tuple[str, Simulated, int]]] = {}
    for one in repeated:
        alike.setdefault(_retry_options(one[1]), []).append(one)
    for options, same in alike.items():
        if len(same) == 1:
            [(name, row, again)] = same
            yield f"{name}: {tried_again(row, again)}"
        else:
            times = ", ".join(
                f"{name} {count(again, 'time')}{least_work_note(row.missing)}" for name, row, again in same
            )
            yield f"clients tried again ({options}): {times}"


def _retry_options(row: Simulated | SimulatedMix) -> str:
    """The options that determine when clients try again, defaults included."""
    options = [] if row.timeout_s is None else [f"--timeout {row.timeout_s:g}s"]
    options.append(f"--retries {row.retries}")
    if (pauses := row.pauses) is not None:
        longest = f",max={pauses.max_s:g}s" if pauses.factor > 1.0 else ""
        jitter = _JITTER.get(pauses.jitter, f"{pauses.jitter:g}")
        options.append(f"--retry base={pauses.base_s:g}s,factor={pauses.factor:g}{longest},jitter={jitter}")
    return " ".join(options)


def others(row: Simulated | SimulatedMix) -> str:
    """The outcome of clients of a storm that did not fail."""
    last = row.last_ready_s
    if is_continuous(row.rate_per_s, row.arrivals) or last.missing:
        return ""
    if last.estimate is None:
        return "; no client was ready"
    done = f"{row.completed:,} ({share(row.completed / row.clients, 1)})"
    return f"; the other {done} were ready after {time(last.estimate)}"


def failures(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{CAUSES.get(cause, cause)}: {many:,}" for cause, many in causes.items())


def energy_notes(rows: Iterable[tuple[str, Simulated | SimulatedMix]], *, tail: bool) -> Iterator[str]:
    """What is not part of energies, and what is assumed about the radio's set-up and tail."""
    known = list(rows)
    for name, row in known:
        if not row.energy_j.missing and (sent := _preambles(row)):
            yield f"{name}: energies exclude failed preambles and listening for their responses: {sent}"
    if tail:
        yield from dict.fromkeys(f"wake and tail {one}" for _, row in known for one in row.energy_terms)


def _preambles(row: Simulated | SimulatedMix) -> str:
    """The preambles per successful access, those of refused accesses included; empty if none failed."""
    if (access := row.access) is None or not access.requests:
        return ""
    if isinstance(row, SimulatedMix) and len({one.bearer for one in row.kinds}) > 1:
        # On other bearers `transmissions` may be frames.
        least = access.attempts.mean or 0.0
        return f"at least {least:.1f} preambles per successful access" if least > 1.0 else ""
    if access.transmissions <= access.admitted:
        return ""
    if not access.admitted:
        return f"{access.transmissions:,} preambles without a successful access"
    return f"{access.transmissions / access.admitted:.1f} preambles per successful access"


def agreement(engines: Endpoints, *, in_cells: bool) -> str:
    both = engines.client_stack
    if engines.server_stack != both:
        both += f" and {engines.server_stack}"
    said, found = f"{both} in virtual time", engines.replayed
    if found.mean_ratio is None or found.distance is None:
        return f"{said}; no handshake was completed by both the stack and the replay"
    said += f"; mean of the replay {100.0 * (found.mean_ratio - 1.0):+.2f} %; distributions"
    if found.critical is None:
        why = "share cells" if in_cells else "wait for the server"
        return f"{said} not tested, because clients {why}: distance {found.distance:.3f}"
    agrees = "agree" if found.distance <= found.critical else "differ"
    return f"{said} {agrees}: distance {found.distance:.3f}, critical value {found.critical:.3f} at 1 %"


def formula(found: ClosedForm) -> str:
    if found.ready_s is None:
        return "no steady state"
    turns = found.flights_queue_wait_s
    apart = "" if turns is None else f" ({time(turns, 2)} if each flight queues separately)"
    return f"{time(found.ready_s)}, queue wait {time(found.queue_wait_s, 2)}{apart}"
