"""Runs benchmarks, prints a table and writes ``bench/latest.json``."""

import importlib
import json
import pkgutil
import sys
from pathlib import Path

import bench
from bench.harness import Benchmark, Row, UnavailableError, is_met, verdict
from shakedown.reporting.columns import Selection, label
from shakedown.reporting.terminal.listing import listing, screen_width

LATEST = Path(__file__).resolve().parent / "latest.json"


def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark of every module of this package, by name."""
    found: dict[str, Benchmark] = {}
    for module in pkgutil.iter_modules(bench.__path__):
        if module.name.startswith("__"):
            continue
        listed: list[Benchmark] = getattr(importlib.import_module(f"bench.{module.name}"), "BENCHMARKS", [])
        found.update({benchmark.name: benchmark for benchmark in listed})
    return found


def save(rows: list[Row]) -> None:
    """Replace earlier rows of the same names; the file is replaced atomically."""
    try:
        earlier: list[Row] = json.loads(LATEST.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        earlier = []
    merged = {row["name"]: row for row in [*earlier, *rows]}
    unfinished = LATEST.with_suffix(".json.part")
    unfinished.write_text(json.dumps(list(merged.values()), indent=1) + "\n", encoding="utf-8")
    unfinished.replace(LATEST)


def show(rows: list[Row]) -> None:
    """Print the rows as a table, followed by what was compared."""
    lines = [
        {
            "benchmark": row["name"],
            "ratio": f"{row['ratio']:.3f}",
            "95 % interval": "{:.3f} – {:.3f}".format(*row["spread"]),
            "target": f"{'≤' if row['better'] == 'lower' else '≥'} {row['target']:g}",
            "verdict": verdict(row),
        }
        for row in rows
    ]
    columns = [label(name, name) for name in lines[0]]
    said = (
        f"{row['name']}: {row['what']}: {row['ours']:g}, {row['peer_name']} {row['peer']:g}; n = {row['n']}"
        for row in rows
    )
    for line in listing(columns, lines, Selection(), notes=said, width=screen_width()):
        print(line)  # noqa: T201


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all. 0: all targets are met; 1: not all are; 2: wrong usage."""
    known = all_benchmarks()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark '{unknown[0]}'; there are: {' '.join(known)}", file=sys.stderr)  # noqa: T201
        return 2
    rows: list[Row] = []
    complete = True
    for name in names or known:
        print(f"{name} …", file=sys.stderr)  # noqa: T201
        try:
            rows.append(known[name].evaluate(known[name].pairs()))
        except UnavailableError as missing:
            print(f"{name}: {missing}", file=sys.stderr)  # noqa: T201
            complete = False
            continue
        save(rows)
    if rows:
        show(rows)
    return 0 if complete and all(is_met(row) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
