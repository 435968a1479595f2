"""Sessions of returning clients: the share that resumes, for each arrival process."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.simulation.arrivals import parse_arrivals
from shakedown.simulation.fleet import settle
from shakedown.simulation.sessions import parse_sessions

SUITE = "tls1.3/x25519/p256/server"
LINE = '{host} - - [10/Oct/2026:{time} +0200] "GET / HTTP/1.1" 200 2326\n'


def test_resumed_share_follows_the_session_lifetime():
    def share(arrivals, text):
        return settle(Fleet(arrivals=arrivals, sessions=text)).fleet.resumption

    assert share("storm:1s", "lifetime=2h,interval=4h") == 0.5
    assert share("storm:1s", "lifetime=2h,interval=4h,away=1h") == 0.25
    assert share("storm:1s", "lifetime=2h,interval=1h,away=3h") == 0.0
    assert share("poisson:1/s", "lifetime=2h,interval=1h") == pytest.approx(1.0 - math.exp(-2.0))
    assert share("bursts:9@1/min", "lifetime=2h,interval=1h") == pytest.approx(1.0 - math.exp(-2.0))
    assert share("deterministic:1/s", "lifetime=59min,interval=1h") == 0.0
    with pytest.raises(InputError, match="one of them"):
        settle(Fleet(arrivals="storm:1s", sessions="lifetime=2h,interval=4h", resumption=0.1))
    with pytest.raises(InputError, match="accepted with it: a storm"):
        settle(Fleet(arrivals="diurnal:1/s", sessions="lifetime=2h,interval=4h,away=1h"))


def test_resumed_share_matches_individually_drawn_clients():
    """A storm of clients whose connections are drawn: period and phase, an outage, a lifetime."""
    random = np.random.default_rng(1)
    interval_s, away_s, lifetime_s = 3600.0, 900.0, 2700.0
    last_s = away_s + interval_s * random.random(100_000)
    sessions = parse_sessions("lifetime=45min,interval=1h,away=15min")
    assert sessions.resuming(parse_arrivals("storm:1s")).share == pytest.approx(
        np.mean(last_s <= lifetime_s), abs=0.01
    )
    gaps_s = random.exponential(interval_s, 100_000)
    steady = parse_sessions("lifetime=45min,interval=1h")
    assert steady.resuming(parse_arrivals("poisson:9/s")).share == pytest.approx(
        np.mean(gaps_s <= lifetime_s), abs=0.01
    )


def gaps_of_a_fleet(at_s: np.ndarray, clients: int) -> np.ndarray:
    """A client is drawn for each connection: the times since that client's previous connection."""
    of = np.random.default_rng(2).integers(clients, size=len(at_s))
    last_s, gaps_s = np.full(clients, -np.inf), np.empty(len(at_s))
    for place, (client, now_s) in enumerate(zip(of, at_s, strict=True)):
        gaps_s[place] = now_s - last_s[client]
        last_s[client] = now_s
    return gaps_s


def test_resumed_share_follows_the_rate_over_a_day():
    """Two days of a fleet's connections are drawn; each hour's share of the second day agrees."""
    arrivals = parse_arrivals("diurnal:3/s,swing=1")
    at_s, per_s = np.asarray(arrivals.points).T
    areas = np.concatenate([[0.0], np.cumsum(np.diff(at_s) * (per_s[1:] + per_s[:-1]) / 2.0)])
    random = np.random.default_rng(1)
    drawn = np.sort(random.random(random.poisson(2.0 * areas[-1])) * 2.0 * areas[-1])
    days, left = np.divmod(drawn, areas[-1])
    times_s = days * 86_400.0 + np.interp(left, areas, at_s)
    resumes = gaps_of_a_fleet(times_s, round(3.0 * 4.0 * 3600.0)) <= 7200.0

    found = parse_sessions("lifetime=2h,interval=4h").resuming(arrivals)
    assert found.share == pytest.approx(resumes[times_s >= 86_400.0].mean(), abs=0.005)
    assert found.share > 0.45  # more than the 39 % of clients that come as often at a steady rate
    from_s, shares = np.asarray(found.steps).T
    for hour in range(24):
        of_hour = (times_s >= 86_400.0 + hour * 3600.0) & (times_s < 86_400.0 + (hour + 1) * 3600.0)
        expected = shares[np.searchsorted(from_s, times_s[of_hour] - 86_400.0, side="right") - 1].mean()
        error = 4.0 * math.sqrt(expected * (1.0 - expected) / of_hour.sum()) + 0.005
        assert resumes[of_hour].mean() == pytest.approx(expected, abs=error), hour


def test_resumed_share_of_a_file_follows_the_session_lifetime(tmp_path):
    """Two hours of 1/s, then four of 0.1/s: once the busy hours are past the lifetime, few resume."""
    busy, quiet = np.arange(0.0, 7200.0, 1.0), np.arange(7200.0, 21_600.0, 10.0)
    times_s = np.concatenate([busy, quiet])
    (tmp_path / "times.txt").write_text("\n".join(map(str, times_s)))
    found = parse_sessions("lifetime=1h,interval=2h").resuming(parse_arrivals("file:times.txt", tmp_path))
    fleet = len(times_s) / 21_590.0 * 7200.0
    shares = dict(found.steps)
    late = [share for from_s, share in shares.items() if from_s > 11_000.0]
    assert all(share == pytest.approx(1.0 - math.exp(-360.0 / fleet), rel=0.03) for share in late)
    in_busy = [share for from_s, share in shares.items() if 3700.0 < from_s < 7000.0]
    assert all(share == pytest.approx(1.0 - math.exp(-3600.0 / fleet), rel=0.03) for share in in_busy)
    (tmp_path / "once.txt").write_text("5\n5\n")
    with pytest.raises(InputError, match="a storm"):
        parse_sessions("lifetime=1h,interval=2h").resuming(parse_arrivals("file:once.txt", tmp_path))


@pytest.fixture
def log(tmp_path):
    """Three hosts: a page of three requests, one connection a quarter of an hour later, one the next hour."""
    lines = [
        LINE.format(host="192.0.2.1", time="13:00:00"),
        LINE.format(host="192.0.2.1", time="13:00:01"),
        LINE.format(host="2001:db8::2", time="13:00:30"),
        LINE.format(host="192.0.2.1", time="13:00:40"),
        LINE.format(host="192.0.2.1", time="13:15:00"),
        LINE.format(host="192.0.2.3", time="13:20:00"),
        LINE.format(host="2001:db8::2", time="14:30:00"),
    ]
    (tmp_path / "access.log").write_text("".join(lines))
    return tmp_path


def test_hosts_of_a_log_resume_their_own_sessions(log):
    found = parse_arrivals("log:access.log", log)
    assert list(found.since_s) == [math.inf, 1.0, math.inf, 39.0, 860.0, math.inf, 5370.0]
    # Requests no more than a minute apart share a connection; a session's age counts from its handshake.
    kept = parse_arrivals("log:access.log,keep-alive=1min", log)
    assert list(kept.at_s) == [0.5, 30.5, 900.5, 1200.5, 5400.5]
    assert list(kept.since_s) == [math.inf, math.inf, 900.0, math.inf, 5370.0]
    assert parse_sessions("lifetime=20min").resuming(kept).share == pytest.approx(1 / 5)
    assert parse_sessions("lifetime=2h").resuming(kept).share == pytest.approx(2 / 5)
    with pytest.raises(InputError, match="only lifetime"):
        parse_sessions("lifetime=2h,interval=1h").resuming(kept)
    with pytest.raises(InputError, match="is not a duration"):
        parse_arrivals("log:access.log,keep-alive=soon", log)


def test_simulated_clients_resume_as_the_hosts_of_the_log(shakedown, log):
    command = ("simulate", SUITE, "--json", "--arrivals", "log:access.log,keep-alive=1min")
    limits = ("--sessions", "lifetime=20min")
    (row,) = json.loads(shakedown(*command, *limits, cwd=log).stdout)
    (full,) = json.loads(shakedown(*command, cwd=log).stdout)
    assert (row["clients"], row["resumption"]) == (5, pytest.approx(0.2))
    # One of five sends no certificate, and it is the one that came a quarter of an hour later.
    (whole,) = json.loads(shakedown(*command, "--resumption", "1", cwd=log).stdout)
    down = [one["traffic"]["down_bytes"] for one in (row, full, whole)]
    assert (down[1] - down[0]) / (down[1] - down[2]) == pytest.approx(0.2, abs=0.01)


def test_more_clients_resume_at_the_peak_of_a_day(shakedown):
    command = ("simulate", SUITE, "--arrivals", "diurnal:1/s,swing=1", "--json")
    (row,) = json.loads(shakedown(*command, "--sessions", "lifetime=2h,interval=4h").stdout)
    (full,) = json.loads(shakedown(*command).stdout)
    (whole,) = json.loads(shakedown(*command, "--resumption", "1").stdout)
    assert row["resumption"] == pytest.approx(0.505, abs=0.002)

    def bytes_each(one):
        return one["traffic"]["down_bytes"] / one["clients"]

    share = (bytes_each(full) - bytes_each(row)) / (bytes_each(full) - bytes_each(whole))
    assert share == pytest.approx(row["resumption"], abs=0.01)
