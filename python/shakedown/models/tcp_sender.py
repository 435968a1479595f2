"""A sender's TCP as Linux has it, when packets get lost: its scoreboard, and what changes it.

Sources: kernel 6.18, ``net/ipv4/tcp_input.c`` (``tcp_ack``, ``tcp_fastretrans_alert``, ``tcp_process_loss``,
``tcp_cwnd_reduction``), ``tcp_recovery.c`` (RACK, RFC 8985), ``tcp_output.c`` (the tail loss probe),
``tcp_timer.c``.
Segments are counted, not bytes, for none is ever cut. A path that keeps its packets in order is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from shakedown.models.steps import Side
from shakedown.models.tcp import DATA_RETRIES, DUPLICATE_ACKS, MAX_RTO_S, MIN_TIMEOUT_S, RoundTrips

_SOON_S = 1e-6
_ROUNDING_S = 1e-9  # what is nearer is at once


class GivenUpError(Exception):
    """A sender has waited for an answer too often."""


class Mode(IntEnum):
    """What a sender does about losses, in the kernel's order."""

    OPEN = 0
    DISORDER = 1
    REDUCED = 2
    RECOVERY = 3
    LOSS = 4


class Acknowledgement(NamedTuple):
    """What a packet says of what has arrived.

    Attributes:
        upto: segments that arrived in order.
        beyond: indexes of those that arrived beyond a hole.
        again: index of the segment that arrived once more and made the receiver say so, or None.
        echo_s: the echoed clock: when that was sent.
        carries: whether the packet carries data itself.
    """

    upto: int
    beyond: Sequence[int]
    again: int | None
    echo_s: float
    carries: bool


@dataclass(slots=True)
class Segment:
    """A segment that was sent.

    Attributes:
        sent_s: when last.
        sacked: known to have arrived, beyond a hole.
        lost: counts as lost.
        resent: was sent again since, and that copy is under way.
        ever: was sent more than once.
    """

    sent_s: float
    sacked: bool = False
    lost: bool = False
    resent: bool = False
    ever: bool = False


class Wire(Protocol):
    """What a sender asks of its host."""

    def send_segment(self, side: Side, index: int, now_s: float) -> None:
        """Sends a segment."""

    def set_timer(self, side: Side, kind: str, now_s: float, wait_s: float) -> float:
        """Sets the one timer: when it fires."""

    def waiting(self, side: Side) -> int:
        """Segments that the application has handed over, sent or not."""


@dataclass(slots=True)
class _News:
    """What an acknowledgement has brought.

    Attributes:
        carries: it came with data.
        advanced: it acknowledges more than any before.
        data: the same, of what was under way.
        resent: some of that was sent more than once.
        sacked: more has arrived beyond a hole.
        original: something sent only once, and before the repair began.
        duplicate, probe_duplicate: something has arrived once more; the probe has.
        set_timer: the timer begins anew.
        lost_again: a copy was lost.
        delivered, lost: segments that it tells of.
        sacked_s: when the first and the last of those beyond a hole had been sent.
    """

    carries: bool
    advanced: bool = False
    data: bool = False
    resent: bool = False
    sacked: bool = False
    original: bool = False
    duplicate: bool = False
    probe_duplicate: bool = False
    set_timer: bool = False
    lost_again: bool = False
    delivered: int = 0
    lost: int = 0
    sacked_s: tuple[float, float] | None = None


class Sender:
    """One side's sending half."""

    def __init__(self, side: Side, window: int, wire: Wire) -> None:
        self.side: Side = side
        self.wire = wire
        self.initial_window = window
        self.window, self.threshold = window, math.inf
        self.grown = 0  # acknowledged since the window last grew beyond its threshold
        self.round_trips = RoundTrips()
        self.timeout_s = self.round_trips.rto_s
        self.segments: list[Segment] = []  # those sent
        self.una = self.sample_from = 0
        self.mode = Mode.OPEN
        self.sacked = self.lost = self.resent = self.total_resent = self.duplicates = 0
        self.timer: tuple[str, float] | None = None
        self.timeouts = 0
        self.high = self.probe_high = 0
        self.probe_resent = self.forward_rto = False
        self.undo: int | None = None
        self.undo_resent = 0
        self.first_copy_s: float | None = None
        self.prior_window, self.prior_threshold = 0, 0.0
        self.prr_delivered = self.prr_sent = 0
        self.rack = (-1.0, -1)
        self.rack_s = 0.0
        self.rack_advanced = False

    @property
    def next(self) -> int:
        """The first segment that was not sent."""
        return len(self.segments)

    @property
    def in_flight(self) -> int:
        """Segments under way as far as it knows."""
        return len(self.segments) - self.una + self.resent - self.sacked - self.lost

    @property
    def is_reducing(self) -> bool:
        """Whether the window follows what is delivered."""
        return self.mode in (Mode.REDUCED, Mode.RECOVERY)

    # Sending.

    def push(self, now_s: float) -> None:
        """Sends what the window allows."""
        waiting, sent = self.wire.waiting(self.side), 0
        while self.next < waiting and self.in_flight < self.window:
            self.send_new(now_s)
            sent += 1
        if sent:
            if self.is_reducing:
                self.prr_sent += sent
            self.schedule_probe(now_s)

    def send_new(self, now_s: float) -> None:
        """Sends the next segment for the first time."""
        first = self.next == self.una
        self.segments.append(Segment(now_s))
        self.wire.send_segment(self.side, self.next - 1, now_s)
        if first or (self.timer is not None and self.timer[0] == "probe"):
            self.rearm(now_s)

    def send_again(self, index: int, now_s: float) -> None:
        """Sends a segment once more."""
        segment = self.segments[index]
        segment.sent_s, segment.ever = now_s, True
        self.total_resent += 1
        self.wire.send_segment(self.side, index, now_s)

    def repair(self, index: int, now_s: float) -> None:
        """Sends a segment once more because it counts as lost."""
        self.send_again(index, now_s)
        self.segments[index].resent = True
        self.resent += 1
        if self.first_copy_s is None:
            self.first_copy_s = now_s
        self.undo_resent = max(self.undo_resent, 0) + 1

    def repair_lost(self, now_s: float) -> None:
        """Sends again what counts as lost, as the window allows."""
        head = False
        for index in range(self.una, self.next):
            if self.in_flight >= self.window:
                break
            segment = self.segments[index]
            if segment.sacked or segment.resent or not segment.lost:
                continue
            self.repair(index, now_s)
            self.prr_sent += self.is_reducing
            head = head or (index == self.una and not self.waits_for("reorder"))
        if head:
            self.set("timeout", now_s, self.timeout_s)

    # Timers.

    def waits_for(self, kind: str) -> bool:
        """Whether the timer is of a kind."""
        return self.timer is not None and self.timer[0] == kind

    def set(self, kind: str, now_s: float, wait_s: float) -> None:
        """Sets the timer."""
        self.timer = kind, self.wire.set_timer(self.side, kind, now_s, min(wait_s, MAX_RTO_S))

    def rearm(self, now_s: float) -> None:
        """The timeout, from now."""
        if self.una == self.next:
            self.timer = None
            return
        wait_s = self.timeout_s
        if self.waits_for("probe") or self.waits_for("reorder"):
            wait_s = max(self.timeout_s - (now_s - self.segments[self.una].sent_s), _SOON_S)
        self.set("timeout", now_s, wait_s)

    def schedule_probe(self, now_s: float, *, acknowledged: bool = False) -> bool:
        """The probe's timer, where there may be one."""
        out = self.next - self.una
        if not out or self.mode not in (Mode.OPEN, Mode.REDUCED):
            return False
        trips = self.round_trips
        wait_s = trips.probe_s(out)
        left_s = self.timeout_s
        if not acknowledged:
            left_s -= now_s - self.segments[self.una].sent_s
        self.set("probe", now_s, min(wait_s, left_s) if left_s > 0.0 else wait_s)
        return True

    def fires(self, now_s: float) -> None:
        """The timer fires."""
        if self.una == self.next:
            self.timer = None
        elif self.waits_for("probe"):
            self.probe(now_s)
        elif self.waits_for("reorder"):
            self.stragglers(now_s)
        else:
            self.timed_out(now_s)

    def probe(self, now_s: float) -> None:
        """The tail loss probe: a new segment, or the last once more; one at a time."""
        if not self.probe_high:
            self.probe_resent = self.next == self.wire.waiting(self.side)
            if self.probe_resent:
                self.send_again(self.next - 1, now_s)
            else:
                self.send_new(now_s)
            self.probe_high = self.next
            self.timer = None
        self.rearm(now_s)

    def timed_out(self, now_s: float) -> None:
        """Nothing came back in time: all but what was sent just now counts as lost.

        Raises:
            GivenUpError: where that was so too often in a row.
        """
        if self.timeouts >= DATA_RETRIES:
            raise GivenUpError
        fresh = self.mode < Mode.RECOVERY
        for index in range(self.una, self.next):
            segment = self.segments[index]
            recent = now_s - segment.sent_s < self.rack_s
            if not segment.sacked and (index == self.una or not recent):
                self.mark_lost(segment)
        if (
            self.mode <= Mode.DISORDER
            or self.high <= self.una
            or (self.mode is Mode.LOSS and not self.timeouts)
        ):
            self.prior_threshold = self.usual_threshold()
            self.prior_window = self.window
            self.threshold = self.reduced()
            self.begin_undo()
        self.window, self.grown = self.in_flight + 1, 0
        self.mode, self.high, self.probe_high = Mode.LOSS, self.next, 0
        self.forward_rto = fresh or self.timeouts > 0
        self.timeouts += 1
        self.repair(self.una, now_s)
        self.timeout_s = min(2.0 * self.timeout_s, MAX_RTO_S)
        self.set("timeout", now_s, self.timeout_s)

    def stragglers(self, now_s: float) -> None:
        """The time for what may only be late is over."""
        before = self.in_flight
        self.mark(now_s, _News(carries=False))
        if before != self.in_flight:
            if self.mode is not Mode.RECOVERY:
                self.enter_recovery()
                self.reduce(1, 0, advanced=False)
            self.repair_lost(now_s)
        if not self.waits_for("timeout"):
            self.rearm(now_s)

    # Windows.

    def reduced(self) -> float:
        """The threshold after a loss."""
        return max(2, 7 * self.window // 10)

    def usual_threshold(self) -> float:
        """The threshold that an undone reduction goes back to."""
        return self.threshold if self.is_reducing else max(self.threshold, 3 * self.window // 4)

    def grow(self, delivered: int, out: int) -> None:
        """The window grows where it is what limits."""
        if self.window < self.threshold:
            if self.window < 2 * out:
                self.window = int(min(self.window + delivered, self.threshold))
            return
        self.grown += delivered
        if out >= self.window and self.grown >= self.window:
            self.grown -= self.window
            self.window += 1

    def reduce(self, delivered: int, lost: int, *, advanced: bool) -> None:
        """Proportional rate reduction (RFC 6937)."""
        if not delivered:
            return
        self.prr_delivered += delivered
        room = int(self.threshold) - self.in_flight
        if room < 0:
            count = -(-int(self.threshold) * self.prr_delivered // max(1, self.prior_window)) - self.prr_sent
        else:
            count = min(max(self.prr_delivered - self.prr_sent, delivered) + (advanced and not lost), room)
        self.window = self.in_flight + max(count, 0 if self.prr_sent else 1)

    def begin_reduction(self) -> None:
        """The window follows what is delivered from here on."""
        self.high, self.probe_high, self.grown = self.next, 0, 0
        self.prior_window = self.window
        self.prr_delivered = self.prr_sent = 0
        self.threshold = self.reduced()

    def end_reduction(self) -> None:
        """The window becomes the threshold, unless the reduction was taken back."""
        if math.isfinite(self.threshold) and (self.mode is Mode.REDUCED or self.undo is not None):
            self.window = int(self.threshold)

    # What is lost.

    def mark_lost(self, segment: Segment) -> None:
        """A segment counts as lost, or its copy does."""
        self.resent -= segment.resent
        self.lost += not segment.lost
        segment.resent, segment.lost = False, True

    def mark(self, now_s: float, news: _News) -> float:
        """Marks what was sent long enough before something that was delivered; how long to wait for more."""
        calm = self.mode < Mode.RECOVERY and self.sacked < DUPLICATE_ACKS
        trips = self.round_trips
        window_s = min(trips.min_s / 4.0, trips.srtt_s) if calm else 0.0
        wait_s = 0.0
        for index in range(self.una, self.next):
            segment = self.segments[index]
            if segment.sacked or (segment.lost and not segment.resent):
                continue
            if (segment.sent_s, index) >= self.rack:
                continue
            left_s = segment.sent_s + self.rack_s + window_s - now_s
            if left_s > _ROUNDING_S:
                wait_s = max(wait_s, left_s)
                continue
            news.lost_again |= segment.resent
            news.lost += 1
            self.mark_lost(segment)
        return wait_s

    def find_lost(self, now_s: float, news: _News) -> None:
        """Marks what is lost, and waits for what may only be late."""
        if self.una == self.next or not self.rack_advanced:
            return
        self.rack_advanced = False
        wait_s = self.mark(now_s, news)
        if wait_s > 0.0:
            self.set("reorder", now_s, min(wait_s + MIN_TIMEOUT_S, self.timeout_s))
            news.set_timer = False

    def advance_rack(self, index: int, now_s: float) -> None:
        """Something was delivered; a copy that took less than any round trip was none."""
        segment = self.segments[index]
        took_s = now_s - segment.sent_s
        if segment.ever and took_s < self.round_trips.min_s - _ROUNDING_S:
            return
        self.rack_advanced, self.rack_s = True, took_s
        self.rack = max(self.rack, (segment.sent_s, index))

    # Acknowledgements.

    def acknowledged(self, one: Acknowledgement, now_s: float) -> None:
        """An acknowledgement has arrived."""
        before, had_sent = self.una, self.next > self.una
        news = _News(carries=one.carries)
        news.advanced = one.upto > before
        if news.advanced:
            self.timeouts = 0
        out = self.next - self.una
        self.una = max(before, one.upto)
        self.take_blocks(one, before, now_s, news)
        if not had_sent:
            if news.duplicate:
                self.alert(one, now_s, news)
            if self.probe_high:
                self.probe_acknowledged(one, news)
            return
        self.remove(one, before, now_s, news)
        if self.probe_high:
            self.probe_acknowledged(one, news)
        ordinary = news.carries or news.data
        resend = ""
        if not ordinary or news.sacked or news.duplicate or self.mode is not Mode.OPEN:
            resend = self.alert(one, now_s, news)
        if news.set_timer and not self.schedule_probe(now_s, acknowledged=True):
            self.rearm(now_s)
        if self.is_reducing:
            self.reduce(news.delivered, news.lost, advanced=news.advanced)
        elif news.data:
            self.grow(news.delivered, out)
        if resend == "new":
            self.push(now_s)
            if self.next <= self.high:
                self.forward_rto = False
                self.repair_lost(now_s)
        elif resend:
            self.repair_lost(now_s)

    def take_blocks(self, one: Acknowledgement, before: int, now_s: float, news: _News) -> None:
        """What arrived once more, and what arrived beyond a hole."""
        again = one.again
        if again is not None:
            news.probe_duplicate = self.probe_high == again + 1
            self.duplicates += 1
            counts = self.duplicates <= self.total_resent
            news.duplicate = counts
            news.delivered += counts
            if self.undo is not None and again >= self.undo and self.undo_resent > 0 and again < before:
                self.undo_resent -= counts
        for index in one.beyond:
            segment = self.segments[index]
            if index < self.una or segment.sacked:
                continue
            self.sacked += 1
            self.lost -= segment.lost
            self.resent -= segment.resent
            segment.sacked, segment.lost, segment.resent = True, False, False
            news.sacked = True
            news.delivered += 1
            if not segment.ever:
                news.original |= index < self.high
                earliest_s = news.sacked_s[0] if news.sacked_s else segment.sent_s
                news.sacked_s = earliest_s, segment.sent_s
            self.advance_rack(index, now_s)

    def remove(self, one: Acknowledgement, before: int, now_s: float, news: _News) -> None:
        """Takes what is acknowledged off the scoreboard, and the round trip from it."""
        first_s = last_s = None
        for index in range(before, self.una):
            segment = self.segments[index]
            if segment.ever:
                self.resent -= segment.resent
                news.resent = True
            elif not segment.sacked:
                first_s = segment.sent_s if first_s is None else first_s
                last_s = segment.sent_s
                news.original |= index < self.high
            if segment.sacked:
                self.sacked -= 1
            else:
                news.delivered += 1
                if not (segment.ever and one.echo_s < segment.sent_s):
                    self.advance_rack(index, now_s)
            self.lost -= segment.lost
            news.data = True
        if news.resent:
            first_s = last_s = None
        if news.sacked_s:
            first_s = news.sacked_s[0] if first_s is None else first_s
            last_s = news.sacked_s[1]
        if first_s is None and news.data:
            first_s = last_s = one.echo_s
        if first_s is not None and last_s is not None:
            self.sample(now_s - first_s, now_s - last_s)
        if news.data:
            news.set_timer = True
        elif news.sacked_s and self.una < self.next:
            news.set_timer = news.sacked_s[0] < self.segments[self.una].sent_s

    def sample(self, measured_s: float, latest_s: float) -> None:
        """Takes a round trip; the latest one decides on the least."""
        least_s = self.round_trips.min_s
        had = self.round_trips.samples > 0
        self.round_trips.sample(measured_s, new_window=self.una > self.sample_from)
        self.round_trips.min_s = min(least_s, latest_s) if had else latest_s
        if self.una > self.sample_from:
            self.sample_from = self.next
        self.timeout_s = self.round_trips.rto_s

    def probe_acknowledged(self, one: Acknowledgement, news: _News) -> None:
        """What the answer to a probe says of it."""
        if one.upto < self.probe_high:
            return
        if not self.probe_resent or news.probe_duplicate:
            self.probe_high = 0
        elif one.upto > self.probe_high:
            # More than the copy is acknowledged, and no word of a duplicate: something was lost.
            self.begin_reduction()
            self.mode = Mode.REDUCED
            self.end_reduction()
            self.keep_open()
        elif not (news.advanced or news.data or news.carries or news.sacked):
            self.probe_high = 0

    # Repairs.

    def alert(self, one: Acknowledgement, now_s: float, news: _News) -> str:
        """Anything while not all is well: what to send after it."""
        if self.una == self.next:
            self.sacked = 0
        if self.mode is Mode.OPEN:
            self.first_copy_s = None
        elif self.una >= self.high:
            if self.mode is Mode.REDUCED and self.una != self.high:
                self.end_reduction()
                self.mode = Mode.OPEN
            elif self.mode is Mode.RECOVERY:
                self.finish(one)
                # Whether the reduction was taken back or not, the window is the threshold now.
                self.end_reduction()
        if self.mode is Mode.RECOVERY:
            if news.advanced and self.undo_partly(one):
                return ""
            if self.undo_by_duplicates():
                self.try_open()
            self.find_lost(now_s, news)
            if self.mode is not Mode.RECOVERY:
                if not self.lost:
                    return ""
                self.enter_recovery()
            return "lost"
        timed_out = self.mode is Mode.LOSS
        if timed_out:
            resend = self.after_timeout(one, news)
            self.find_lost(now_s, news)
            if self.mode is not Mode.OPEN and not news.lost_again:
                return resend
        if self.mode <= Mode.DISORDER:
            self.undo_by_duplicates()
        self.find_lost(now_s, news)
        if not self.lost:
            self.try_open()
            return ""
        self.enter_recovery()
        return "lost"

    def after_timeout(self, one: Acknowledgement, news: _News) -> str:
        """Repair after a timeout, with F-RTO (RFC 5682)."""
        recovered = self.una >= self.high
        if news.advanced and self.undo_timeout(one, proven=False):
            return ""
        if self.forward_rto:
            if news.original and self.undo_timeout(one, proven=True):
                return ""
            if self.next > self.high:
                if news.sacked:
                    self.forward_rto = False
            elif news.advanced and not recovered:
                self.high = self.next
                if self.next < self.wire.waiting(self.side):
                    return "new"
                self.forward_rto = False
        if recovered:
            self.finish(one)
            return ""
        return "lost"

    def was_delayed(self, one: Acknowledgement) -> bool:
        """Whether the echo is older than the first copy: its original has arrived."""
        return self.first_copy_s is None or one.echo_s < self.first_copy_s - _ROUNDING_S

    def may_undo(self, one: Acknowledgement) -> bool:
        """Whether all that was sent again turned out to be needless."""
        return self.undo is not None and (not self.undo_resent or self.was_delayed(one))

    def begin_undo(self) -> None:
        """Notes where a reduction began."""
        self.undo = self.una
        # 0 would mean that all that was sent again turned out to be needless.
        self.undo_resent = self.resent + (self.probe_high > 0 and self.probe_resent) or -1

    def undo_reduction(self, *, unmark: bool) -> None:
        """Takes a reduction back."""
        if unmark:
            for segment in self.segments[self.una :]:
                segment.lost = False
            self.lost = 0
        if self.prior_threshold > 0.0:
            self.window = max(self.window, self.prior_window)
            self.threshold = max(self.threshold, self.prior_threshold)
        self.undo = None
        self.rack_advanced = True

    def undo_timeout(self, one: Acknowledgement, *, proven: bool) -> bool:
        """Takes a timeout back where it was needless: whether it was."""
        if not proven and not self.may_undo(one):
            return False
        self.undo_reduction(unmark=True)
        self.timeouts, self.mode = 0, Mode.OPEN
        return True

    def undo_partly(self, one: Acknowledgement) -> bool:
        """An original has arrived during a repair: whether to wait for the others."""
        if self.undo is None or not self.was_delayed(one):
            return False
        if self.resent > 0:
            return True
        self.undo_reduction(unmark=True)
        self.keep_open()
        return False

    def undo_by_duplicates(self) -> bool:
        """Takes a reduction back where every copy was reported as a duplicate."""
        if self.undo is None or self.undo_resent:
            return False
        self.undo_reduction(unmark=False)
        return True

    def finish(self, one: Acknowledgement) -> None:
        """All of the episode is acknowledged."""
        if self.may_undo(one):
            self.undo_reduction(unmark=False)
        self.mode = Mode.OPEN

    def any_resent(self) -> bool:
        """Whether a copy of something is under way."""
        return self.resent > 0 or (self.una < self.next and self.segments[self.una].ever)

    def keep_open(self) -> None:
        """Out of a repair: all is well, or nearly."""
        calm = not (self.sacked or self.lost or self.any_resent())
        mode = Mode.OPEN if calm else Mode.DISORDER
        if self.mode is not mode:
            self.mode, self.high = mode, self.next

    def try_open(self) -> None:
        """The same, unless the window is still being reduced."""
        if not self.any_resent():
            self.first_copy_s = None
        if self.mode is not Mode.REDUCED:
            self.keep_open()

    def enter_recovery(self) -> None:
        """Fast recovery begins."""
        if not self.any_resent():
            self.first_copy_s = None
        self.prior_threshold = 0.0
        self.begin_undo()
        if not self.is_reducing:
            self.prior_threshold = self.usual_threshold()
            self.begin_reduction()
        self.mode = Mode.RECOVERY
