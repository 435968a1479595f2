"""TCP as Linux has it: constants, the estimator of round trips, timers.

Sources: kernel 6.18, ``net/ipv4/tcp_input.c`` (``tcp_rtt_estimator``), ``tcp_output.c``
(``tcp_schedule_loss_probe``), ``tcp_timer.c``, ``kernel/time/timer.c`` (the timer wheel).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shakedown.models.arrays import Floats

TCP_BYTES = 32  # with timestamps
SYN_OPTION_BYTES = 40  # TCP and the options of a SYN

MIN_RTO_S = 0.2
MAX_RTO_S = 120.0
FALLBACK_RTO_S = 3.0  # TCP_TIMEOUT_FALLBACK, without any sample
SYN_ACK_TIMEOUT_S = 1.0  # TCP_TIMEOUT_INIT
SYN_ACK_RETRIES = 5  # net.ipv4.tcp_synack_retries
DATA_RETRIES = 15  # net.ipv4.tcp_retries2: timeouts in a row
FIRST_PROBE_S = 1.0  # TCP_TIMEOUT_INIT, a tail loss probe without any sample
MIN_TIMEOUT_S = 0.002  # TCP_TIMEOUT_MIN_US
DELAYED_ACK_S = 0.04  # TCP_DELACK_MIN
DUPLICATE_ACKS = 3


@dataclass(frozen=True, slots=True)
class Tcp:
    """A stream over Linux' TCP.

    Attributes:
        initial_window: segments that may be sent before any acknowledgement (RFC 6928).
        write_bytes: buffer of the TLS library (4096 in libssl): full, it is handed to TCP; a record too
            long for it goes in two writes. 0: a flight is one write.
        syn_timeout_s: how long the first SYN waits for its answer.
        linear_syn_timeouts: how many further SYN timeouts are as long as the first before they double
            (net.ipv4.tcp_syn_linear_timeouts; 0 before Linux 6.5).
        syn_retries: SYNs after the first (net.ipv4.tcp_syn_retries).
        quick_acks: segments acknowledged one by one before acknowledgements are delayed.
        tick_s: the kernel's tick (CONFIG_HZ), by which its timers are late; 0: they never are.
    """

    initial_window: int = 10
    write_bytes: int = 4096
    syn_timeout_s: float = 1.0
    linear_syn_timeouts: int = 4
    syn_retries: int = 6
    quick_acks: int = 20
    tick_s: float = 0.004

    def timer_s(self, after_s: float) -> float:
        """When a timer fires on average: the wheel rounds up to 1 tick below 64 ticks, to 8 below 512, to
        64 below 4096, …
        """
        if self.tick_s <= 0.0:
            return after_s
        grain, reach = self.tick_s, 64.0 * self.tick_s
        while after_s >= reach:
            grain, reach = grain * 8.0, reach * 8.0
        return after_s + grain / 2.0

    def timers_s(self, after_s: Floats) -> Floats:
        """``timer_s`` of many."""
        if self.tick_s <= 0.0:
            return after_s
        beyond = np.maximum(after_s / (64.0 * self.tick_s), 0.125)
        levels = np.floor(np.log2(beyond) / 3.0) + 1.0
        return np.asarray(after_s + 8.0**levels * (self.tick_s / 2.0))

    def syn_times_s(self) -> list[float]:
        """When SYNs are sent as long as none is answered, the last entry being when the client gives up."""
        times, wait = [0.0], self.syn_timeout_s
        for number in range(self.syn_retries + self.linear_syn_timeouts + 1):
            if number > self.linear_syn_timeouts:
                wait *= 2.0
            times.append(times[-1] + self.timer_s(wait))
        return times


@dataclass(slots=True)
class RoundTrips:
    """The estimator of round trips, ``tcp_rtt_estimator``; times in seconds."""

    srtt_s: float = 0.0
    mdev_s: float = 0.0  # four times the mean deviation, as the kernel keeps it
    rttvar_s: float = 0.0
    mdev_max_s: float = 0.0
    min_s: float = 0.0
    samples: int = 0

    def copy(self) -> RoundTrips:
        """A copy that can be changed by itself."""
        return RoundTrips(self.srtt_s, self.mdev_s, self.rttvar_s, self.mdev_max_s, self.min_s, self.samples)

    def sample(self, measured_s: float, *, new_window: bool = True) -> None:
        """Take a measured round trip; ``new_window``: the first of the data sent since the last such."""
        self.min_s = min(self.min_s, measured_s) if self.samples else measured_s
        self.samples += 1
        if self.samples == 1:
            self.srtt_s = measured_s
            self.mdev_s = 2.0 * measured_s
            self.rttvar_s = self.mdev_max_s = max(self.mdev_s, MIN_RTO_S)
            return
        error = measured_s - self.srtt_s
        self.srtt_s += error / 8.0
        if error < 0.0:
            change = -error - self.mdev_s / 4.0
            change = change / 8.0 if change > 0.0 else change
        else:
            change = error - self.mdev_s / 4.0
        self.mdev_s += change
        if self.mdev_s > self.mdev_max_s:
            self.mdev_max_s = self.mdev_s
            self.rttvar_s = max(self.rttvar_s, self.mdev_max_s)
        if new_window:
            if self.mdev_max_s < self.rttvar_s:
                self.rttvar_s -= (self.rttvar_s - self.mdev_max_s) / 4.0
            self.mdev_max_s = MIN_RTO_S

    @property
    def rto_s(self) -> float:
        """Retransmission timeout."""
        if not self.samples:
            return FALLBACK_RTO_S
        return min(self.srtt_s + self.rttvar_s, MAX_RTO_S)

    def probe_s(self, segments_out: int) -> float:
        """Tail loss probe's timeout with so many segments out: 2 srtt + 200 ms for one, + 2 ms for more."""
        if not self.samples:
            return FIRST_PROBE_S
        slack = MIN_RTO_S if segments_out == 1 else MIN_TIMEOUT_S
        return min(2.0 * self.srtt_s + slack, self.rto_s)
