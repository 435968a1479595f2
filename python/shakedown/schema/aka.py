"""The output of `aka run --json` and `aka mobile --json`: attaches by SSL-based AKA."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Object, Text
from shakedown.schema.predictions import BytesEachWay, PartWithoutCost
from shakedown.schema.simulated import Share


class TimeSpread(Object, frozen=True, kw_only=True, omit_defaults=True):
    """Statistics of a time over attaches, in seconds. `sd` is the sample standard deviation, null for fewer
    than 2 attaches; `p95` is null for fewer than 20 attaches, `p99` for fewer than 100.
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
    """Successful attaches by a full handshake, or by a resumed one.

    `nrt_s`: from the connection request until the connection is open. `rpt_s`: `nrt_s` and the mobile's
    preparation of the handshake. `tht_s`: from the start of ClientHello to the end of the handshake. `tst_s`:
    the sum of `rpt_s` and `tht_s`. `scrt_s`: at the SGSN, from sending ServerHello to sending attach accept;
    null for a mobile on sockets. `attach_s`: from the connection request until the attach is accepted.
    The other figures are means. `handshake_bytes` are those of TLS. On sockets, these are null: `wire_bytes`
    (all bytes over the bearer, with headers and acknowledgements), `queries` (of the SGSN to other nodes),
    `sending_s` and `receiving_s` (of the mobile's radio).
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
    """The limits of resumption: number of resumptions of a session, and time since its last use."""

    max_resumptions: Count
    max_age_s: Amount


class AttachesCost(Object, frozen=True, kw_only=True):
    """A side's mean computing time in a handshake, the basis of the costs, and work without a cost figure.

    With work `without_cost`, these times and those of the attaches are lower bounds, computed with the lower
    ends of the other costs.
    """

    full_s: Amount
    resumed_s: Amount
    basis: Text
    without_cost: tuple[PartWithoutCost, ...]


class AttachRun(Object, frozen=True, kw_only=True):
    """Attaches of mobiles to two SGSNs of a network, in virtual time.

    `roaming`: the mobiles belong to another network. `moves` is the fraction of attaches to the other SGSN.
    `background_per_s` is the rate of other full handshakes on the SGSNs' processors, with exponential gaps.
    `core_round_trip_s` (to another node) and `preparation_s` are inputs. `from_idle`: the radio is idle
    before each attach and is set up first. `not_resumed` counts sessions that were offered and not resumed,
    by decision: unknown, too_often, too_old, clock_set_back, other_basis, declined.
    """

    kind: Literal["simulated"]
    suite: Text
    resumed_suite: Text
    bearer: Text
    device: Text
    server_device: Text
    mobile: AttachesCost
    sgsn: AttachesCost
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
    from_idle: bool
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

    `echoed` counts attaches whose user data was returned under the derived keys; null if none was sent.
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

    `turned_away`: the table of connections was full; `displaced`: closed before authentication, to make room;
    `silent`: no message arrived in time.
    """

    turned_away: Count
    displaced: Count
    silent: Count


class HssSummary(Object, frozen=True, kw_only=True):
    """The queries of SGSNs that an HSS granted, and those that it refused, by cause."""

    granted: Count
    refused: dict[str, Count]
    connections: Refusals


class SgsnSummary(Object, frozen=True, kw_only=True):
    """Attaches and connections at an SGSN.

    `rejected` counts attaches by cause; `reasons` explains the first of each cause in one line. `not_resumed`
    counts sessions that were offered and not resumed, by decision. `handed_over` and `taken_over` count
    subscribers that moved to and from another SGSN. `connections` are those of mobiles that were not served,
    `core_connections` those of other SGSNs, null without other SGSNs. `scrt_…_s` is the SCRT of each attach.
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
    """The files that `aka provision` wrote."""

    suite: Text
    files: tuple[str, ...]


PRINTED = {
    "attaches": (AttachRun, "The object of aka run --json."),
    "live-attaches": (LiveAttaches, "The object of aka mobile --json."),
    "sgsn": (SgsnSummary, "The object of aka sgsn --json."),
    "provisioned": (ProvisionedFiles, "The object of aka provision --json."),
}
