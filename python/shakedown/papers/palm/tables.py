"""A row for each cell of figures 3 to 8, from the primitives; ratios compared with this machine's."""

from __future__ import annotations

from collections.abc import Mapping

from shakedown.models import primitives
from shakedown.papers.load import PaperData
from shakedown.papers.palm.inputs import CLOCKS_MHZ, DEVICES, NEW, TLS_ECC, TLS_RSA, TLS_RSA3, times
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import beside, cell_row, input_row
from shakedown.schema.base import Side
from shakedown.schema.replication import Row


def cells(data: PaperData) -> list[Row]:
    """Figure 3 by clock scaling, figures 4 to 7 from figure 3, figure 8 as inputs."""
    rows = [
        _figure_3(row, device) for row in data.tables["figure_3_primitive_times"].rows for device in DEVICES
    ]
    primitives_ms = data.tables["figure_3_primitive_times"]
    for row in data.tables["figures_4_to_7_handshake_steps"].rows:
        item = f"figure {row['figure']}, step {row['step']}"
        rows.append(
            cell_row(
                item,
                f"{row['operation']}: {row['primitive']}".replace("_", " "),
                "ms",
                row["time_ms"],
                _step_ms(primitives_ms.rows, row),
                "exact",
                "the same primitive in figure 3",
            )
        )
    new = times(data, NEW)
    for row in data.tables["figures_4_to_7_handshake_totals"].rows:
        total_s = new.total_s(row["suite"], row["authentication"], row["rsa_public_exponent"])
        suite = f"{row['suite']} {row['authentication']} {row['rsa_public_exponent']}".strip()
        rows.append(
            cell_row(
                f"figure {row['figure']}, total",
                f"client time, {suite}",
                "ms",
                row["total_ms"],
                1e3 * total_s,
                "exact",
                "sum of figure 3's primitives",
            )
        )
    for row in data.tables["figure_8_pda_processors"].rows:
        for column in ("clock_min_mhz", "clock_max_mhz"):
            rows.append(
                input_row(
                    f"figure 8, {row['device']}",
                    f"{'lowest' if 'min' in column else 'highest'} clock",
                    "MHz",
                    row[column],
                    "an input: a clock from a data sheet",
                )
            )
    return rows


_PRIMITIVE_OF_STEP = {
    "ca_key_expansion": "key_expansion",
    "server_key_expansion": "key_expansion",
    "ephemeral_key_generation": "key_generation",
}


def _step_ms(rows: tuple[dict[str, str], ...], step: Mapping[str, str]) -> float:
    primitive = _PRIMITIVE_OF_STEP.get(step["primitive"], step["primitive"])
    exponent = step["rsa_public_exponent"] if primitive == "public_decrypt" else ""
    (found,) = (
        row for row in rows if (row["primitive"], row["rsa_public_exponent"]) == (primitive, exponent)
    )
    return float(found[NEW])


def _figure_3(row: Mapping[str, str], device: str) -> Row:
    name = row["primitive"].replace("_", " ") + (
        f", e = {row['rsa_public_exponent']}" if row["rsa_public_exponent"] else ""
    )
    replication, reason = None, "an input: measured by the report's sources"
    if device != NEW:
        scaled = primitives.clock_scaled_s(float(row[NEW]), CLOCKS_MHZ[NEW] * 1e6, CLOCKS_MHZ[device] * 1e6)
        replication, reason = (
            float(scaled),
            "the 20 MHz Palm VII's figure, scaled by the clocks as in the report",
        )
    return cell_row(
        f"figure 3, {row['family']} {row['key_bits']}, {DEVICES[device]}",
        name,
        "ms",
        row[device],
        replication,
        "5 %",
        reason,
    )


_SIGN, _PRIVATE = ("ecdsa_sign", ""), ("private_encrypt", "")
_PUBLIC, _PUBLIC3 = ("public_decrypt", "65537"), ("public_decrypt", "3")
_RATIOS = {
    "verify_sign": ("ECDSA verify over sign", ("ecdsa_verify", ""), _SIGN),
    "exponent": ("RSA public, e = 65537 over e = 3", _PUBLIC, _PUBLIC3),
    "private": ("RSA private over public, e = 65537", _PRIVATE, _PUBLIC),
    "private3": ("RSA private over public, e = 3", _PRIVATE, _PUBLIC3),
}
"""Ratios of figure 3 that can be measured: title, then numerator and denominator."""


def _sign_verify_us(replication: Replication, suite: str) -> tuple[float, float]:
    """Times of signing CertificateVerify at the client and of verifying it at the server, in µs."""
    cost = replication.costs[suite]
    both: tuple[tuple[Side, str], ...] = (("client", "sign"), ("server", "verify"))
    sign_us, verify_us = (cost.operation_us(side, name, ["CertificateVerify"]) for side, name in both)
    return sign_us, verify_us


def ratios_here(replication: Replication) -> dict[str, float]:
    """The same ratios on this machine, for those whose suites were measured."""
    found = {}
    if TLS_ECC in replication.costs:
        sign_us, verify_us = _sign_verify_us(replication, TLS_ECC)
        found["verify_sign"] = verify_us / sign_us
    if replication.all((TLS_RSA, TLS_RSA3)):
        (sign_us, verify_us), (sign3_us, verify3_us) = (
            _sign_verify_us(replication, suite) for suite in (TLS_RSA, TLS_RSA3)
        )
        found["exponent"] = verify_us / verify3_us
        found["private"] = sign_us / verify_us
        found["private3"] = sign3_us / verify3_us
    return found


def measured_cells(data: PaperData, replication: Replication) -> list[Row]:
    """Figure 3's ratios on the three devices, compared with those on this machine."""
    found = ratios_here(replication)
    rows = []
    table = data.tables["figure_3_primitive_times"]
    missing = replication.why_not([TLS_ECC, TLS_RSA, TLS_RSA3])
    for key, (title, above, below) in _RATIOS.items():
        for device, name in DEVICES.items():
            upper, lower = (
                float(table.one(primitive=one[0], rsa_public_exponent=one[1])[device])
                for one in (above, below)
            )
            rows.append(
                beside(
                    cell_row(
                        f"figure 3 as ratios, {name}",
                        title,
                        "x",
                        f"{upper / lower:.3f}",
                        found.get(key),
                        "10 %",
                        missing or "ratio of the two operations inside a TLS 1.0 handshake",
                    )
                )
            )
    return rows
