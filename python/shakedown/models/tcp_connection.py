"""Setting up a TCP connection when packets are lost.

SYN and SYN-ACK have timers of one second, the client's linear at first, the server's doubling. A SYN that
comes again is answered at once, and sets the server's timer anew (``tcp_check_req``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from shakedown.models.path import Direction
from shakedown.models.tcp import SYN_ACK_RETRIES, SYN_ACK_TIMEOUT_S, Tcp

_LEAST = 1e-7  # ways less probable than this are left out


@dataclass(frozen=True, slots=True)
class Connected:
    """One way to set up a connection.

    Attributes:
        weight: its probability.
        extra_s: time beyond a set-up without loss.
        sampled_s: what the client's first round trip counts beyond a round trip: answers echo the
            timestamp of the first SYN that arrived, so it counts from that one.
        client_slow, server_slow: probabilities that a side starts with a window of one segment, as it does
            after more than one repetition of its SYN (the client's only if the first SYN was lost).
    """

    weight: float
    extra_s: float
    sampled_s: float
    client_slow: float
    server_slow: float


class _Answering(NamedTuple):
    """A server that has heard a SYN, and answers; times are counted from then.

    Attributes:
        weight: probability.
        due_s: when its timer repeats the SYN-ACK.
        timeouts: how often it has.
        repeats: how often the SYN-ACK was repeated, by the timer or because a SYN came again.
        next_syn: the client's next SYN.
        taken_s: when that SYN-ACK was sent which the client takes; None as long as all were lost.
    """

    weight: float
    due_s: float
    timeouts: int
    repeats: int
    next_syn: int
    taken_s: float | None


def connections(up: Direction, down: Direction, round_trip_s: float, tcp: Tcp) -> list[Connected]:
    """Every way to set up a connection; their probabilities sum to 1 less that of giving up.

    Args:
        up, down: the directions.
        round_trip_s: of a SYN and its answer.
        tcp: the hosts'.
    """
    syns = tcp.syn_times_s()[:-1]
    if up.loss <= 0.0 and down.loss <= 0.0:
        return [Connected(1.0, 0.0, 0.0, 0.0, 0.0)]
    merged: dict[tuple[float, float, float, float], float] = {}
    for heard, syn_s in enumerate(syns):
        weight = up.loss**heard * (1.0 - up.loss)
        first = _Answering(weight, tcp.timer_s(SYN_ACK_TIMEOUT_S), 0, 0, heard + 1, None)
        states = _sent_at(0.0, first, down)
        while states:
            state = states.pop()
            if state.weight < _LEAST:
                continue
            prompt_s = syns[state.next_syn] - syn_s if state.next_syn < len(syns) else math.inf
            event_s = min(prompt_s, state.due_s)
            if state.taken_s is None or event_s <= state.taken_s + round_trip_s:
                states += _answers(state, prompt_s, up, down, tcp)
                continue
            taken_s = state.taken_s
            sent = sum(syn <= syn_s + taken_s + round_trip_s for syn in syns[1:])
            client_slow = float(heard > 0 and sent >= 2)
            # Where the first SYN-ACK is taken, the others turn out to have been needless.
            server_slow = float(taken_s > 0.0 and state.timeouts > 0 and state.repeats > 1)
            key = (syn_s + taken_s, taken_s, client_slow, server_slow)
            merged[key] = merged.get(key, 0.0) + state.weight
    return [Connected(weight, *key) for key, weight in merged.items() if weight >= _LEAST]


def _answers(
    state: _Answering, prompt_s: float, up: Direction, down: Direction, tcp: Tcp
) -> list[_Answering]:
    """What the timer, or a SYN that comes again, makes the server do next.

    A SYN that comes first sets the timer again. Where both are due at once, either may come first: the
    timers of both hosts are late by as much on average.
    """
    both = abs(prompt_s - state.due_s) <= tcp.tick_s / 2.0
    first = 0.5 if both else float(prompt_s < state.due_s)
    found = []
    if first > 0.0:
        lost = state._replace(weight=state.weight * first * up.loss, next_syn=state.next_syn + 1)
        timer_s = tcp.timer_s(SYN_ACK_TIMEOUT_S * 2.0**state.timeouts)
        asked = lost._replace(
            weight=state.weight * first * (1.0 - up.loss),
            due_s=prompt_s + timer_s,
            repeats=state.repeats + 1,
        )
        found += [lost, *_sent_at(prompt_s, asked, down)]
    if first < 1.0 and state.timeouts < SYN_ACK_RETRIES:
        timeouts = state.timeouts + 1
        timer_s = tcp.timer_s(SYN_ACK_TIMEOUT_S * 2.0**timeouts)
        fired = state._replace(
            weight=state.weight * (1.0 - first),
            due_s=state.due_s + timer_s,
            timeouts=timeouts,
            repeats=state.repeats + 1,
        )
        found += _sent_at(state.due_s, fired, down)
    return found


def _sent_at(now_s: float, state: _Answering, down: Direction) -> list[_Answering]:
    """A SYN-ACK is sent: it arrives, or not."""
    if state.taken_s is not None:
        return [state]
    arrives = state._replace(weight=state.weight * (1.0 - down.loss), taken_s=now_s)
    return [arrives, state._replace(weight=state.weight * down.loss)]
