"""Joins both sides' halves of sampled handshakes, and computes the time spent on each message.

Halves of one handshake have the same client address and end at about the same time. All times are differences
of one side's clock, so the halves may come from two machines.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from shakedown.errors import InputError, os_reason
from shakedown.schema.base import Side, decode
from shakedown.schema.live import SampledHandshakes, Share, Step, TimeSpent
from shakedown.schema.serving import HalfTrace

Pair = tuple[HalfTrace, HalfTrace | None]
"""A client's half, and its server's half if that is known."""

SAME_END_S = 60.0
"""Maximum difference between the ends of a handshake's halves: an address is reused only after this time, and
the clocks of two machines in one network differ by less.
"""
MAX_FILE_BYTES = 1 << 30

Key = tuple[Side, str, int]
"""A message of a handshake: its sender, its name, and the number of earlier messages of this name."""


def read_halves(path: Path) -> list[HalfTrace]:
    """The lines of a file that `serve --traces-out` or `load --traces-out` wrote. Raises `InputError`."""
    halves = []
    try:
        if not path.is_file():
            raise InputError(
                f'"{path}" is not a file; accepted: sampled handshakes, as "serve --traces-out" writes them'
            )
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(
                f'"{path}" has more than {MAX_FILE_BYTES >> 20} MiB; accepted: sampled handshakes'
            )
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                halves.append(decode(line, HalfTrace, f"{path}, line {number}"))
    except OSError as error:
        raise InputError(f'"{path}" cannot be read: {os_reason(error)}') from error
    return halves


def keys_of(half: HalfTrace) -> tuple[Key, ...]:
    """Unique keys of a handshake's messages."""
    seen: Counter[tuple[str, str]] = Counter()
    keys = []
    for message in half.messages:
        name = (message.sender, message.name)
        keys.append((*name, seen[name]))
        seen[name] += 1
    return tuple(keys)


def partner(client: HalfTrace, servers: Iterable[HalfTrace]) -> HalfTrace | None:
    """The server's half of a client's handshake, among those with the same client address."""
    found = min(servers, key=lambda one: abs(one.ended_unix_s - client.ended_unix_s), default=None)
    return found if found is not None and abs(found.ended_unix_s - client.ended_unix_s) < SAME_END_S else None


def time_spent(
    sampled: SampledHandshakes,
    servers: Sequence[HalfTrace] = (),
    *,
    emulate_device: str | None = None,
    slowdown: float | None = None,
) -> TimeSpent | None:
    """Means over the sampled handshakes with the most frequent sequence of messages; None without handshakes.

    If any handshake has a server's half, only such handshakes are used; otherwise only the clients' halves.
    """
    by_address: defaultdict[str | None, list[HalfTrace]] = defaultdict(list)
    for half in servers:
        by_address[half.client_address].append(half)
    pairs: list[Pair] = [
        (client, partner(client, by_address.get(client.client_address, ()) if client.client_address else ()))
        for client in sampled.kept
    ]
    joined: list[Pair] = [pair for pair in pairs if pair[1] is not None]
    counted = joined or pairs
    if not counted:
        return None
    shapes = Counter((keys_of(one), None if other is None else keys_of(other)) for one, other in counted)
    (client_keys, server_keys), _ = shapes.most_common(1)[0]
    alike = [
        (one, other)
        for one, other in counted
        if (keys_of(one), None if other is None else keys_of(other)) == (client_keys, server_keys)
    ]
    client_shares = shares([one for one, _ in alike])
    halves = [other for _, other in alike if other is not None]
    server_shares = shares(halves) if halves else None
    steps = [
        Step(
            index=index,
            sender="client" if key[0] == "client" else "server",
            name=key[1],
            client=client_shares.get(key, _nothing()),
            server=None if server_shares is None else server_shares.get(key, _nothing()),
        )
        for index, key in enumerate(_order(client_keys, server_keys or ()))
    ]
    return TimeSpent(
        sampled=len(sampled.kept),
        handshakes=len(alike),
        joined=len(halves),
        preempted=sampled.preempted,
        emulate_device=emulate_device,
        slowdown=slowdown,
        connect_us=fmean(one.connect_us or 0.0 for one, _ in alike),
        client_unattributed_us=fmean(one.unattributed_us for one, _ in alike),
        server_unattributed_us=fmean(one.unattributed_us for one in halves) if halves else None,
        steps=tuple(steps),
    )


def shares(halves: Sequence[HalfTrace]) -> dict[Key, Share]:
    """A side's mean times by message, over handshakes with the same messages."""
    found = {}
    for place, key in enumerate(keys_of(halves[0])):
        own_us = fmean(half.messages[place].us for half in halves)
        cryptography_us = fmean(
            sum(operation.us for operation in half.operations if operation.message == place)
            for half in halves
        )
        found[key] = Share(
            cryptography_us=cryptography_us,
            other_us=max(0.0, own_us - cryptography_us),
            waited_us=fmean(half.messages[place].waited_us for half in halves),
        )
    return found


def _nothing() -> Share:
    """The times of a message that a side did not record: it spent no measurable time on it."""
    from shakedown.schema.live import Share

    return Share(cryptography_us=0.0, other_us=0.0, waited_us=0.0)


def _order(client: Sequence[Key], server: Sequence[Key]) -> list[Key]:
    """All messages in the client's order. A message that only the server recorded follows the server's
    previous message.
    """
    order = list(client)
    behind = 0
    for key in server:
        if key in order:
            behind = order.index(key) + 1
        else:
            order.insert(behind, key)
            behind += 1
    return order
