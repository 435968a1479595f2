"""The rate at which a server accepts connections: `rate=100/s,burst=20,refuse=reset`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shakedown.simulation.keyed import rate, read_keyed, whole, word

ACCEPTED = "accepted: rate=100/s,burst=20,refuse=reset; refuse is reset, alert or silence"
MIN_PER_S, MAX_PER_S = 1e-6, 1e9
MAX_BURST = 1_000_000_000


@dataclass(frozen=True)
class Admission:
    """A token bucket in front of each server, and how it refuses."""

    rate_per_s: float
    burst: int
    refuse: str

    def spec(self) -> dict[str, Any]:
        return {"per_s": self.rate_per_s, "burst": self.burst, "refusal": self.refuse}


def parse_admission(text: str) -> Admission:
    """Read a token bucket from an option. Raises `InputError`."""
    found = read_keyed("admission", text, _READERS, ACCEPTED, needed=["rate"])
    return Admission(found["rate"], found.get("burst", 1), found.get("refuse", "reset"))


_READERS = {
    "rate": rate(MIN_PER_S, MAX_PER_S),
    "burst": whole(1, MAX_BURST),
    "refuse": word("reset", "alert", "silence"),
}
