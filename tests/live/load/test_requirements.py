"""Thresholds compared with hand-written figures."""

from __future__ import annotations

import msgspec
import pytest

from shakedown.errors import InputError
from shakedown.live.load_test.requirements import parse
from shakedown.schema.live import LoadFigures, RatesPerS, Resumptions, Times

NONE = Times(n=0, mean=None, p50=None, p90=None, p95=None, p99=None, max=None)
TIMES = Times(n=100, mean=0.2, p50=0.1, p90=0.3, p95=0.4, p99=0.5, max=0.6)


def outcome(**changes: object) -> LoadFigures:
    usual = LoadFigures(
        generators=1,
        planned=100,
        started=100,
        completed=100,
        failed={},
        rate_per_s=RatesPerS(planned=10.0, achieved=9.5),
        elapsed_s=10.0,
        connect_s=TIMES,
        handshake_s=TIMES,
        first_byte_s=NONE,
        resumed=Resumptions(asked=10, confirmed=9, without_session=0),
        negotiated=(),
        start_lateness_s=TIMES,
        generator_cpu_s=0.1,
        saturated=False,
        saturated_by=(),
        certificate_checked="no",
        interrupted=False,
    )
    return msgspec.structs.replace(usual, **changes)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("handshake.p99<=500ms", True),
        ("handshake.p99<500ms", False),
        ("handshake.p50 < 0.2s", True),
        ("connect.mean>100ms", True),
        ("first_byte.p99<100s", False),
        ("failed.share<1%", True),
        ("failed.count<=0", True),
        ("resumed.share>=90%", True),
        ("resumed.share>0.9", False),
        ("rate>=9/s", True),
        ("rate>600/min", False),
    ],
)
def test_a_threshold_is_met_or_not(text, met):
    assert parse(text).is_met(outcome()) is met


def test_failed_connections_count_as_infinitely_long():
    failed = outcome(planned=104, failed={"timeout: handshake": 4})
    # The 99th of the 100 that ended is the 95th per cent of all 104.
    assert parse("handshake.p90<1s").value(failed) == 0.4
    assert parse("handshake.p95<1s").value(failed) == 0.5
    assert parse("handshake.p99<1s").value(failed) is None
    assert not parse("handshake.max<100s").is_met(failed)
    assert not parse("handshake.mean<100s").is_met(failed)
    assert parse("start_lateness.p99<1s").value(failed) == 0.5
    assert parse("start_lateness.mean<1s").is_met(failed)
    unstarted = outcome(planned=104, failed={"not started": 4})
    assert not parse("start_lateness.p99<100s").is_met(unstarted)
    assert not parse("start_lateness.mean<100s").is_met(unstarted)
    assert parse("failed.share<5%").is_met(failed)


def test_maximum_is_compared_if_times_are_too_few_for_a_percentile():
    few = outcome(handshake_s=msgspec.structs.replace(TIMES, n=50, p99=None))
    assert parse("handshake.p99<1s").value(few) == 0.6
    assert parse("handshake.p95<1s").value(few) == 0.4
    assert not parse("handshake.p99<550ms").is_met(few)


def test_resumed_share_is_not_met_without_resumption_attempts():
    none = outcome(resumed=Resumptions(asked=0, confirmed=0, without_session=0))
    assert not parse("resumed.share>=0").is_met(none)


@pytest.mark.parametrize(
    "text", ["", "p99<1s", "handshake.p98<1s", "handshake.p99=1s", "failed.share<200%", "rate<x"]
)
def test_invalid_threshold_lists_the_accepted_ones(text):
    with pytest.raises(InputError, match="accepted"):
        parse(text)
