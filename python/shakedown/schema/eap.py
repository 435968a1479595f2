"""What `eap peer --json` prints: authentications against a RADIUS server."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Object, Text


class AuthenticationTimes(Object, frozen=True, kw_only=True):
    """Seconds from when an authentication was due to its end; `p95` is null of fewer than 20
    authentications, `p99` of fewer than 100.
    """

    mean: Amount
    p50: Amount
    p95: Amount | None
    p99: Amount | None
    max: Amount


class ServerTally(Object, frozen=True, kw_only=True):
    """What became of the requests to `eap serve`: authentications, and `rejected` by cause.

    `discarded` are datagrams without a valid authenticator, and replays; `turned_away` authentications
    beyond the most at a time; `abandoned` those left unfinished.
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

    `failed` counts by cause. `round_trips` (Access-Requests that were answered), `fragments` (EAP-TLS packets
    that hold TLS), `eap_bytes` and `radius_bytes`, the last three in both directions, are of one
    authentication: the median of those completed, null where none was. Repeated transmissions are not in
    them. `msk_sha256` is there where one authentication was asked for.
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
