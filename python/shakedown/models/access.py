"""Times of an SSL-based network access: NRT, RPT, THT, TST, SCRT, and shares of a handshake's steps.

G. Kambourakis, A. Rouskas and S. Gritzalis, "Experimental Analysis of an SSL-Based AKA Mechanism in
3G-and-Beyond Wireless Networks", Wireless Personal Communications, 2004; Y. Shin, M. Gupta and S. Myers, "A
Study of the Performance of SSL on PDAs", 2009.
"""

from __future__ import annotations

from shakedown.models.arrays import Floats, Numbers, floats


def total_setup_s(preparation_s: Numbers, handshake_s: Numbers) -> Floats:
    """TST = RPT + THT; the paper's WLAN averages violate it."""
    return floats(preparation_s) + floats(handshake_s)


def round_trips(messages: Numbers) -> Floats:
    """Round trips of a handshake, two messages per trip (section 5.2: 10 messages, 5 trips)."""
    return floats(messages) / 2.0


def handshake_time_s(computation_s: Numbers, network_round_trip_s: Numbers, trips: Numbers = 5) -> Floats:
    """THT = computation + trips · NRT (section 5.5: THT(GPRS) = THT(WLAN) + 5 NRT(GPRS))."""
    return floats(computation_s) + floats(trips) * floats(network_round_trip_s)


def corrected_setup_s(total_s: Numbers, extra_delay_s: Numbers, trips: Numbers = 5) -> Floats:
    """TST without a test-bed's extra delay per round trip (section 5.3: TST - 5 · 0.22 s)."""
    return floats(total_s) - floats(trips) * floats(extra_delay_s)


def server_response_s(handshake_s: Numbers, network_round_trip_s: Numbers, client_hello_s: Numbers) -> Floats:
    """SCRT: the server's time from its ServerHello to the end of the request, THT - NRT / 2 - ClientHello."""
    return floats(handshake_s) - floats(network_round_trip_s) / 2.0 - floats(client_hello_s)


def resumption_gain(full_s: Numbers, resumed_s: Numbers) -> Floats:
    """Share of a full handshake's time that resumption saves: 1 - resumed / full."""
    return 1.0 - floats(resumed_s) / floats(full_s)


def share_without_network(cryptography_s: Numbers, total_s: Numbers, network_s: Numbers) -> Floats:
    """Cryptography's share of a handshake without the waits for the network (Shin, section V-A)."""
    return floats(cryptography_s) / (floats(total_s) - floats(network_s))
