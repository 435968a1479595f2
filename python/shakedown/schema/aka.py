"""What `aka run --json` and `aka mobile --json` print: attaches by SSL-based AKA."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Object, Text
from shakedown.schema.predictions import BytesEachWay, PartWithoutCost
from shakedown.schema.simulated import Share


class TimeSpread(Object, frozen=True, kw_only=True, omit_defaults=True):
    """A time over attaches, in seconds. `sd` is the sample standard deviation, null of fewer than two; `p95`
    is null of fewer than 20 attaches, `p99` of fewer than 100.
    """

    n: Count
    mean: Amount
    sd: Amount | None
    min: Amount
    p50: Amount
    p95: Amount | None
    p99: Amount | None
    max: Amount
    samples: tuple[Amount, ...] | None = None


class AttachGroup(Object, frozen=True, kw_only=True):
    """Attaches that succeeded by a full handshake, or by a resumed one.

    `nrt_s` connection asked for to connection there; `rpt_s` the same and what the mobile prepares before the
    handshake; `tht_s` ClientHello begun to handshake over; `tst_s` RPT and THT; `scrt_s`, at the SGSN,
    ServerHello sent to attach accept sent, null of a mobile on sockets; `attach_s` connection asked for to
    attach accepted. Means: `handshake_bytes` are TLS's; `wire_bytes` all that went over the bearer, headers
    and acknowledgements included, null on sockets, as are `queries` (means of questions of the SGSN to other
    nodes), `sending_s` and `receiving_s` (of the mobile's radio).
    """

    attaches: Count
    nrt_s: TimeSpread
    rpt_s: TimeSpread
    tht_s: TimeSpread
    tst_s: TimeSpread
    scrt_s: TimeSpread | None
    attach_s: TimeSpread
    handshake_bytes: BytesEachWay
    wire_bytes: BytesEachWay | None
    queries: Amount | None
    sending_s: Amount | None
    receiving_s: Amount | None


class ResumptionPolicy(Object, frozen=True, kw_only=True):
    """The two thresholds: how often a session is resumed, and how long after the last time."""

    max_resumptions: Count
    max_age_s: Amount


class AttachesPriced(Object, frozen=True, kw_only=True):
    """A side's computing in the handshake: its mean, what the costs stand on, and what has none.

    With work `without_cost` the times are lower bounds, of the least that the other work takes, and so are
    those of the attaches.
    """

    full_s: Amount
    resumed_s: Amount
    basis: Text
    without_cost: tuple[PartWithoutCost, ...]


class AttachRun(Object, frozen=True, kw_only=True):
    """Attaches of mobiles to two SGSNs of a network, in virtual time.

    `roaming`: the mobiles are of another network. `moves` is the share of attaches that go to the other SGSN.
    `background_per_s` are full handshakes of others on the SGSNs' processors, with exponential gaps.
    `core_round_trip_s` (another node's answer) and `preparation_s` are given, not found. `not_resumed` counts
    sessions that were offered and not resumed, by decision: unknown, too_often, too_old, clock_set_back,
    other_basis, declined.
    """

    kind: Literal["simulated"]
    suite: Text
    resumed_suite: Text
    bearer: Text
    device: Text
    server_device: Text
    mobile: AttachesPriced
    sgsn: AttachesPriced
    mobiles: Count
    gap_s: Amount
    roaming: bool
    moves: Share
    workers: Count
    background_per_s: Amount
    background_served: Count
    policy: ResumptionPolicy
    core_round_trip_s: Amount
    preparation_s: Amount
    seed: Count
    attaches: Count
    completed: Count
    failed: dict[str, Count]
    full: AttachGroup | None
    resumed: AttachGroup | None
    not_resumed: dict[str, Count]
    handed_over: Count
    length_s: Amount


class LiveAttaches(Object, frozen=True, kw_only=True):
    """Attaches of one mobile to SGSNs on sockets, in turn.

    `echoed` counts those whose user data came back under the derived keys, null where none was sent.
    """

    kind: Literal["live"]
    suite: Text
    sgsns: tuple[Text, ...]
    attaches: Count
    completed: Count
    failed: dict[str, Count]
    full: AttachGroup | None
    resumed: AttachGroup | None
    echoed: Count | None


class Refusals(Object, frozen=True, kw_only=True):
    """Connections that a node did not serve.

    `turned_away`: there was no room; `displaced`: closed to make room, before they had proved anything;
    `silent`: no message came in time.
    """

    turned_away: Count
    displaced: Count
    silent: Count


class HssSummary(Object, frozen=True, kw_only=True):
    """What an HSS did: queries of SGSNs that it granted, and those that it refused, by cause."""

    granted: Count
    refused: dict[str, Count]
    connections: Refusals


class SgsnSummary(Object, frozen=True, kw_only=True):
    """What an SGSN did.

    `rejected` counts attaches by cause, `reasons` says why in a line, for the first of each cause;
    `not_resumed` counts sessions that were offered and not resumed, by decision; `handed_over` and
    `taken_over` subscribers that went to another SGSN and came from one. `connections` are mobiles' that were
    not served, `core_connections` other SGSNs', null where there are none. SCRT is that of each attach, in
    seconds.
    """

    full: Count
    resumed: Count
    rejected: dict[str, Count]
    reasons: dict[str, str]
    not_resumed: dict[str, Count]
    handed_over: Count
    taken_over: Count
    connections: Refusals
    core_connections: Refusals | None
    scrt_full_s: tuple[Amount, ...]
    scrt_resumed_s: tuple[Amount, ...]


class ProvisionedFiles(Object, frozen=True, kw_only=True):
    """What `aka provision` wrote."""

    suite: Text
    files: tuple[str, ...]


PRINTED = {
    "attaches": (AttachRun, "The object of aka run --json."),
    "live-attaches": (LiveAttaches, "The object of aka mobile --json."),
    "sgsn": (SgsnSummary, "The object of aka sgsn --json."),
    "provisioned": (ProvisionedFiles, "The object of aka provision --json."),
}
