"""A row for each cell of tables 1 to 4."""

from __future__ import annotations

from collections.abc import Mapping

from shakedown.models import access
from shakedown.papers.aka import runs
from shakedown.papers.aka.inputs import (
    GPRS,
    INPUT,
    LAPTOP,
    SETUPS,
    TIMES,
    WLAN,
    Study,
    client_hello_ms,
    five_trips_ms,
    setup_ms,
)
from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import cell_row, input_row
from shakedown.schema.replication import Row


def cells(data: PaperData) -> list[Row]:
    """Tables 1, 3 and 4 by the paper's own relations; table 2 as inputs."""
    study = Study(data)
    rows = []
    for setup, (number, table) in SETUPS.items():
        for statistic, words in (("average", "mean"), ("sd", "standard deviation")):
            printed = data.tables[table].one(statistic=statistic)
            for time in TIMES:
                replication, tolerance, reason = (
                    _relation(study, setup, time) if statistic == "average" else (None, "", INPUT)
                )
                rows.append(
                    cell_row(
                        f"table {number}, {setup}",
                        f"{time.upper()}, {words}",
                        "ms",
                        printed[f"{time}_ms"],
                        replication,
                        tolerance,
                        reason,
                    )
                )
    for row in data.tables["table_2_memory"].rows:
        rows.append(input_row("table 2", row["item"].replace("_", " "), "KB", row["memory_kb"], INPUT))
    return rows


def _relation(study: Study, setup: str, time: str) -> tuple[float | None, str, str]:
    """A mean by a relation of the paper, the tolerance of the corresponding claim, and the relation."""
    if time == "tst":
        return setup_ms(study, setup), "1 %", "RPT + THT (ak-024)"
    if time == "tht" and setup == GPRS:
        value = five_trips_ms(study, GPRS, study.ms(WLAN, "tht"))
        return value, "2 %", "THT on WLAN + 5 NRT (ak-022)"
    if time == "tht" and setup == LAPTOP:
        value = five_trips_ms(study, LAPTOP, 0.0)
        return value, "2 %", "5 NRT without computation (ak-006): more than was measured"
    if time == "scrt" and setup != GPRS:
        value = 1e3 * float(
            access.server_response_s(
                study.ms(setup, "tht") / 1e3, study.ms(setup, "nrt") / 1e3, client_hello_ms(study) / 1e3
            )
        )
        return (
            value,
            "5 %",
            f"THT - NRT / 2 - {client_hello_ms(study):.0f} ms, the client's start in table 1 (ak-002)",
        )
    if time == "rpt" and setup == LAPTOP:
        return (
            study.ms(LAPTOP, "nrt"),
            "2",
            "NRT, because preparation takes no time on a fast laptop (ak-019); tolerance in ms",
        )
    if time == "rpt":
        return study.ms(setup, "nrt") + 100.0, "20", "NRT + 0.1 s (ak-001); tolerance in ms"
    return None, "", INPUT


def words(data: PaperData, replication: Replication) -> dict[str, str]:
    """Tables of the page: the simulated accesses with the printed means, and sizes in storage and memory."""
    study = Study(data)
    lines = [
        "| | " + " | ".join(time.upper() for time in TIMES) + " |",
        "| --- |" + " --- |" * len(TIMES),
    ]
    for setup in SETUPS:
        cells = (
            f"{runs.mean_ms(setup, time):,.0f} ± {runs.sd_ms(setup, time):,.0f} "
            f"({study.ms(setup, time):,.0f} ± {study.ms(setup, time, 'sd'):,.0f})"
            for time in TIMES
        )
        lines.append(f"| {setup} | " + " | ".join(cells) + " |")
    sizes: Mapping[str, int] = runs.runs()["sizes"]
    presented = sizes["leaf_pem_bytes"] + sizes["authority_pem_bytes"] + sizes["key_pem_bytes"]
    return {
        "simulated_table": "\n".join(lines),
        "simulated_runs": f"{runs.runs()['runs']:,}",
        "simulated_computing": f"{runs.runs()['computing_s']['mean']:.2f}",
        "simulated_resumed": f"{runs.resumed_ms():,.0f}",
        "load_effect": f"{runs.load_effect_percent():.1f}",
        "card_bytes": f"{presented / 1024:.2f}",
        "root_bytes": f"{sizes['root_pem_bytes'] / 1024:.2f}",
        "program_mebibytes": f"{sizes['program_bytes'] / 2**20:.0f}",
        **{
            f"{side}_{what}_bytes": f"{sizes[f'{side}_{what}_bytes'] / 1024:.0f}"
            for side in ("client", "server")
            for what in ("peak", "held")
        },
        "server_context_bytes": f"{sizes['server_context_bytes'] / 1024:.0f}",
    }
