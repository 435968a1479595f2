"""What `load --json` prints: a run against a real server."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Object, Text

Arrivals = Literal["poisson", "deterministic", "closed"]
CertificateChecked = Literal["no", "ca", "generated"]


class Times(Object, frozen=True, kw_only=True):
    """Times (s): how many, mean and percentiles; null where there are none."""

    n: Count
    mean: Amount | None
    p50: Amount | None
    p90: Amount | None
    p95: Amount | None
    p99: Amount | None
    max: Amount | None


class RatesPerS(Object, frozen=True, kw_only=True):
    """Starts a second that were asked for (null in a closed loop), and completed connections a second."""

    planned: Amount | None
    achieved: Amount


class Resumptions(Object, frozen=True, kw_only=True):
    """Completed connections that were to resume a session, those that the server resumed, and those whose
    client had no session to offer.
    """

    asked: Count
    confirmed: Count
    without_session: Count


class NegotiatedCount(Object, frozen=True, kw_only=True):
    """What handshakes came to, and how many did."""

    protocol: Text
    cipher_suite: str
    group: str | None
    count: Count


class LoadOutcome(Object, frozen=True, kw_only=True):
    """What the generator counted. Times count from the planned start; those of connections are of completed
    ones. Planned starts are completed or failed.
    """

    planned: Count
    started: Count
    completed: Count
    failed: dict[str, Count]
    rate_per_s: RatesPerS
    elapsed_s: Amount
    connect_s: Times
    handshake_s: Times
    first_byte_s: Times
    resumed: Resumptions
    negotiated: tuple[NegotiatedCount, ...]
    start_lateness_s: Times
    generator_cpu_s: Amount
    saturated: bool
    saturated_by: tuple[str, ...]
    certificate_checked: CertificateChecked
    interrupted: bool

    @property
    def failed_count(self) -> int:
        """Connections that failed, of whatever cause."""
        return sum(self.failed.values())


class Requirement(Object, frozen=True, kw_only=True):
    """A threshold, what it was held against (null: nothing to hold it against), and whether it was met."""

    text: Text
    value: float | None
    met: bool


class LoadRun(LoadOutcome, frozen=True, kw_only=True):
    """A load, and what came of it."""

    kind: Literal["live"] = "live"
    target: Text
    suite: Text | None
    arrivals: Arrivals
    duration_s: Amount
    clients: Count
    seed: Count
    requirements: tuple[Requirement, ...] = ()


class LoadProgress(Object, frozen=True, kw_only=True):
    """How far a load is."""

    elapsed_s: Amount
    planned: Count
    started: Count
    completed: Count
    failed: Count
    open: Count
    handshake_s: Times
