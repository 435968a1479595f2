"""The output of `eap peer --json`: authentications against a RADIUS server."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Object, Text


class AuthenticationTimes(Object, frozen=True, kw_only=True):
    """Seconds from the planned start of an authentication to its end; `p95` is null for fewer than 20
    authentications, `p99` for fewer than 100.
    """

    mean: Amount
    p50: Amount
    p95: Amount | None
    p99: Amount | None
    max: Amount


class ServerTally(Object, frozen=True, kw_only=True):
    """The requests to `eap serve` by outcome: authentications, and `rejected` by cause.

    `discarded` are datagrams without a valid authenticator, and replays; `turned_away` authentications
    beyond the limit of concurrent ones; `abandoned` unfinished ones.
    """

    accepted: Count
    resumed: Count
    rejected: dict[str, Count]
    duplicates: Count
    discarded: Count
    turned_away: Count
    abandoned: Count


class Authentications(Object, frozen=True, kw_only=True):
    """Authentications of one suite against one server.

    `failed` counts by cause. `round_trips` (answered Access-Requests), `fragments` (EAP-TLS packets with TLS
    data), `eap_bytes` and `radius_bytes` (these three in both directions) are medians of the completed
    authentications, null if there are none. They exclude retransmissions. `msk_sha256` is null unless exactly
    one authentication was requested.
    """

    kind: Literal["live"]
    suite: Text
    server: Text
    completed: Count
    failed: dict[str, Count]
    resumed: Count
    rate_per_s: Amount | None
    round_trips: Count | None
    fragments: Count | None
    eap_bytes: Count | None
    radius_bytes: Count | None
    authentication_s: AuthenticationTimes | None
    msk_sha256: str | None


PRINTED = {
    "authentications": (Authentications, "The object of eap peer --json."),
}
