"""What losses do to a handshake is found once for all devices on which its flights are alike."""

from __future__ import annotations

from shakedown.models import network
from shakedown.models.network import Step, exchange
from shakedown.profiles import load_bearer


def _steps(work_s):
    return [
        Step("client", 300.0, work_s),
        Step("server", 1200.0, 0.001),
        Step("client", 100.0, 2.0 * work_s),
        Step("server", 60.0, 0.001),
    ]


def _figures(found):
    times = (found.ready, found.done)
    return [(one.mean, one.p50, one.p95, one.p99) for one in times], found.failed


def test_figures_do_not_depend_on_what_was_asked_before():
    path = load_bearer("nb-iot").path()
    slow, fast = 0.5, 0.25
    network._KEPT.clear()
    first = [_figures(exchange(_steps(work_s), path)) for work_s in (slow, fast)]
    kept = len(network._KEPT)
    network._KEPT.clear()
    second = [_figures(exchange(_steps(work_s), path)) for work_s in (fast, slow)]
    assert second == first[::-1]
    # Both devices work for longer than the network has packets of before: their flights are alike.
    assert kept == len(network._KEPT)
    network._KEPT.clear()
    exchange(_steps(slow), path)
    assert len(network._KEPT) == kept


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(network, "_MAX_KEPT", 2)
    network._KEPT.clear()
    for size in range(300, 305):
        exchange([Step("client", float(size)), *_steps(0.5)[1:]], load_bearer("nb-iot").path())
        assert len(network._KEPT) <= 2
