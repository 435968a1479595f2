"""The duration of `make demo` in a fresh clone with empty caches, part by part, and its limit."""

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.harness import ROOT, Benchmark, Pair, output

LIMIT_S = 240.0
VENDORED = {"openssl-sys": "OpenSSL", "aws-lc-sys": "aws-lc"}
TIMINGS = re.compile(r"const UNIT_DATA = (\[.*?\]);", re.DOTALL)


def step(clone: Path, environment: dict[str, str], *command: str) -> float:
    """Seconds of one step of the set-up in the clone."""
    begun = perf_counter()
    output(*command, cwd=clone, env=environment)
    return perf_counter() - begun


def compiled(report: Path) -> list[tuple[str, float]]:
    """Seconds of compilation by part, longest first, from cargo's own report; parts overlap in time."""
    found = TIMINGS.search(report.read_text(encoding="utf-8"))
    parts: dict[str, float] = {}
    for unit in json.loads(found.group(1)) if found else []:
        name = unit["name"]
        part = VENDORED.get(name, name if name.startswith("shakedown-") else "other crates")
        parts[part] = parts.get(part, 0.0) + unit["duration"]
    return sorted(parts.items(), key=lambda part: -part[1])


def demo() -> Sequence[Pair]:
    """One set-up in a fresh clone, compared with the limit; prints its parts on standard error."""
    with TemporaryDirectory(prefix="shakedown-cold-") as folder:
        clone = Path(folder) / "clone"
        output("git", "clone", "--quiet", ROOT, clone)
        environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        environment["PIP_NO_CACHE_DIR"] = "1"
        registry = Path(folder) / "cargo"
        registry.mkdir()
        for name in ("config.toml", "config"):
            known = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / name
            if known.exists():
                shutil.copy(known, registry)
        environment["CARGO_HOME"] = str(registry)
        tools_s = step(clone, environment, "make", ".venv/.tools")
        build = "source .venv/bin/activate && maturin develop --release --quiet --timings"
        build_s = step(clone, environment, "bash", "-c", f"{build} && touch .venv/.built")
        demo_s = step(clone, environment, "make", "demo")
        reports = sorted((clone / "target" / "cargo-timings").glob("cargo-timing-*.html"))
        parts = compiled(reports[-1])[:8] if reports else []
        total_s = tools_s + build_s + demo_s
        print(  # noqa: T201 - the parts are the point of this benchmark
            f"Python packages {tools_s:.0f} s, compilation {build_s:.0f} s, demo {demo_s:.0f} s",
            *(f"  {name} {seconds:.0f} s" for name, seconds in parts),
            sep="\n",
            file=sys.stderr,
        )
    return [(total_s, LIMIT_S)]


BENCHMARKS = [
    Benchmark(
        name="cold-build",
        what="make demo in a fresh clone with empty caches (s), against four minutes",
        peer_name="limit",
        better="lower",
        target=1.0,
        pairs=demo,
    )
]
