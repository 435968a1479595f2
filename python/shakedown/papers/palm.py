"""Daswani's report on Palm devices: sums of primitives, ratios, and the scaling by clock (figures 3 to 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from shakedown.models import primitives
from shakedown.papers import draw, judge
from shakedown.papers.draw import Drawing
from shakedown.papers.here import Here
from shakedown.papers.judge import Check, cell_row
from shakedown.papers.load import PaperData
from shakedown.papers.paper import Paper, Today
from shakedown.papers.rows import Row

SLUG = "wtls-palm"

DEVICES = {
    "palm_vii_new_20mhz_ms": "Palm VII, 20 MHz",
    "palm_v_16_6mhz_ms": "Palm V, 16.6 MHz",
    "palm_vii_old_16_6mhz_ms": "Palm VII (old), 16.6 MHz",
}
NEW, *OLDER = DEVICES
CLOCKS_MHZ = {NEW: 20.0, OLDER[0]: 16.6, OLDER[1]: 16.6}

ECC_SERVER, ECC_MUTUAL = "wtls/ecdh_ecdsa/163k/server", "wtls/ecdh_ecdsa/163k/mutual"
RSA_SERVER, RSA_MUTUAL = "wtls/rsa/rsa1024/server", "wtls/rsa/rsa1024/mutual"
RSA3_SERVER, RSA3_MUTUAL = "wtls/rsa/rsa1024e3/server", "wtls/rsa/rsa1024e3/mutual"
TLS_ECC = "tls1.0/ecdhe_ecdsa+sect163k1/sect163k1/mutual"
TLS_RSA, TLS_RSA3 = "tls1.0/rsa/rsa1024/mutual", "tls1.0/rsa/rsa1024e3/mutual"
SUITES = (
    ECC_SERVER,
    ECC_MUTUAL,
    RSA_SERVER,
    RSA_MUTUAL,
    RSA3_SERVER,
    RSA3_MUTUAL,
    TLS_ECC,
    TLS_RSA,
    TLS_RSA3,
)

FLOWS = {
    "figure 1, server authenticated": (
        ("client", "ClientHello"),
        ("server", "ServerHello, Certificate, ServerHelloDone"),
        ("client", "ClientKeyExchange, ChangeCipherSpec, Finished"),
        ("server", "Finished"),
    ),
    "figure 2, mutual": (
        ("client", "ClientHello"),
        ("server", "ServerHello, Certificate, CertificateRequest, ServerHelloDone"),
        ("client", "Certificate, ClientKeyExchange, CertificateVerify, ChangeCipherSpec, Finished"),
        ("server", "Finished"),
    ),
}
"""The flights of the report's two flows, as it draws them."""


@dataclass(frozen=True)
class Times:
    """The primitives of one device, in seconds (figure 3)."""

    keygen_s: float
    expansion_s: float
    agreement_s: float
    sign_s: float
    verify_s: float
    private_s: float
    rsa_verify_s: dict[str, float]
    rsa_encrypt_s: float

    def total_s(
        self, family: str, authentication: str, exponent: str = "", *, expanded: bool = False
    ) -> float:
        """A client's time by the additive model (figures 4 to 7; section 5 with CA keys expanded)."""
        if family == "ecc163" and authentication == "server":
            return float(
                primitives.ecc_server_authenticated_s(
                    self.expansion_s, self.verify_s, self.keygen_s, self.agreement_s, ca_key_expanded=expanded
                )
            )
        if family == "ecc163":
            return float(
                primitives.ecc_mutual_s(
                    self.expansion_s, self.verify_s, self.agreement_s, self.sign_s, ca_key_expanded=expanded
                )
            )
        verify_s = self.rsa_verify_s[exponent]
        if authentication == "server":
            return float(primitives.rsa_server_authenticated_s(verify_s, self.rsa_encrypt_s))
        return float(primitives.rsa_mutual_s(verify_s, self.rsa_encrypt_s, self.private_s))


def times(data: PaperData, device: str) -> Times:
    """One device's column of figure 3."""
    table = data.tables["figure_3_primitive_times"]

    def of(primitive: str, exponent: str = "") -> float:
        return float(table.one(primitive=primitive, rsa_public_exponent=exponent)[device]) / 1e3

    return Times(
        of("key_generation"),
        of("key_expansion"),
        of("dh_key_agreement"),
        of("ecdsa_sign"),
        of("ecdsa_verify"),
        of("private_encrypt"),
        {exponent: of("public_decrypt", exponent) for exponent in ("3", "65537")},
        of("public_encrypt"),
    )


def checks(data: PaperData, here: Here) -> Mapping[str, Check]:
    """A check for each claim."""
    new = times(data, NEW)
    every = {name: times(data, device) for device, name in DEVICES.items()}
    ecc, mutual = new.total_s("ecc163", "server"), new.total_s("ecc163", "mutual")
    rsa3, rsa65537 = (new.total_s("rsa1024", "server", exponent) for exponent in ("3", "65537"))
    mutual3, mutual65537 = (new.total_s("rsa1024", "mutual", exponent) for exponent in ("3", "65537"))
    stored, stored_mutual = (new.total_s("ecc163", how, expanded=True) for how in ("server", "mutual"))
    server_ratios = {
        n: t.total_s("ecc163", "server") / t.total_s("rsa1024", "server", "3") for n, t in every.items()
    }
    mutual_ratios = {
        n: t.total_s("rsa1024", "mutual", "3") / t.total_s("ecc163", "mutual") for n, t in every.items()
    }
    signing = {name: t.verify_s / t.sign_s for name, t in every.items()}
    return {
        "wp-001": judge.number(
            ecc / rsa3,
            f"2471.6 ms over 1220 ms; the other two devices give {_each(server_ratios, skip=1)}",
        ),
        "wp-002": judge.holds(
            min(mutual_ratios.values()) >= 8,
            round(min(mutual_ratios.values()), 3),
            f"RSA over ECC, both mutual, e = 3: {_each(mutual_ratios)}; the old Palm VII misses eight",
        ),
        "wp-003": judge.number(
            max(len(flow) for flow in FLOWS.values()) / 2, "four flights in either flow, two to a round trip"
        ),
        "wp-004": _hashing(here),
        "wp-005": judge.holds(
            all(t.rsa_verify_s["65537"] > t.rsa_verify_s["3"] for t in every.values()),
            "; ".join(f"{t.rsa_verify_s['65537'] / t.rsa_verify_s['3']:.2f}" for t in every.values()),
            "e = 65537 over e = 3 on the three devices of figure 3",
        ),
        "wp-006": judge.number(
            _expansions(data), "rows of key expansion in figure 4 and in figure 6, two each"
        ),
        "wp-007": judge.number(ecc, "254.8 + 1254 + 372.4 + 254.8 + 335.6 ms"),
        "wp-008": judge.number(rsa3, "598 + 622 ms"),
        "wp-009": judge.number(rsa65537, "1482 + 622 ms"),
        "wp-010": judge.number(mutual, "254.8 + 1254 + 254.8 + 335.6 + 514.8 ms"),
        "wp-011": judge.number(mutual3, "598 + 622 + 21734 ms; printed truncated, not rounded"),
        "wp-012": judge.number(mutual65537, "1482 + 622 + 21734 ms"),
        "wp-013": judge.number(
            mutual3 / mutual,
            f"22954 over 2614 ms; with e = 65537 {mutual65537 / mutual:.2f}; no sum of its primitives gives "
            "8.64",
        ),
        "wp-014": judge.number(stored, "2471.6 ms less one expansion of 254.8 ms"),
        "wp-015": judge.holds(
            abs(stored / rsa65537 - 1) <= 0.10,
            f"{stored:.3f} vs {rsa65537:.3f}",
            f"{stored / rsa65537:.3f} times",
        ),
        "wp-016": judge.number(
            mutual65537 / stored_mutual,
            f"23838 over {1e3 * stored_mutual:.1f} ms; 10.75 comes out if the divisor is the "
            "server-authenticated"
            f" handshake's {1e3 * stored:.1f} ms: {mutual65537 / stored:.2f}",
        ),
        "wp-017": _sizes(here),
        "wp-018": judge.number(sum(signing.values()) / 3, f"mean of three devices: {_each(signing)}"),
        "wp-019": _clock(data),
        "wp-020": judge.spans([_clock_range(data)], "least and greatest clock of figure 8"),
        "wp-021": judge.holds(
            _slowest_and_fastest(data) == ("RIM Interactive Pager", "HP Jornada 820"),
            " < … < ".join(_slowest_and_fastest(data)),
            "by clock, the only figure that is given: 10 and 190 MHz",
        ),
        "wp-022": judge.holds(
            max(server_ratios.values()) <= 2.0 * 1.03 and min(mutual_ratios.values()) >= 8,
            f"{max(server_ratios.values()):.2f} and {min(mutual_ratios.values()):.2f}",
            f"up to: {_each(server_ratios)}; at least: {_each(mutual_ratios)}; both hold on the 20 MHz Palm "
            "VII only",
        ),
    }


def _each(ratios: Mapping[str, float], skip: int = 0) -> str:
    return ", ".join(f"{ratio:.2f} ({name})" for name, ratio in list(ratios.items())[skip:])


def _expansions(data: PaperData) -> float:
    rows = data.tables["figures_4_to_7_handshake_steps"].rows
    counts = {
        figure: sum(
            1 for row in rows if row["figure"] == figure and row["primitive"].endswith("key_expansion")
        )
        for figure in ("4", "6")
    }
    (count,) = set(counts.values())
    return float(count)


def _clock_ratios(data: PaperData) -> list[float]:
    rows = data.tables["figure_3_primitive_times"].rows
    return [float(row[device]) / float(row[NEW]) for row in rows for device in OLDER]


def _clock(data: PaperData) -> Check:
    ratios = _clock_ratios(data)
    expected = CLOCKS_MHZ[NEW] / CLOCKS_MHZ[OLDER[0]]
    furthest = max(ratios, key=lambda ratio: abs(ratio - expected))
    return judge.holds(
        all(abs(ratio / expected - 1) <= 0.05 for ratio in ratios),
        round(furthest, 3),
        f"time ratios of the same primitives range from {min(ratios):.2f} to {max(ratios):.2f} for a clock "
        "ratio "
        f"of {expected:.3f}; RSA and ECC scale differently",
    )


def _clock_range(data: PaperData) -> tuple[float, float]:
    table = data.tables["figure_8_pda_processors"]
    return min(table.column("clock_min_mhz")), max(table.column("clock_max_mhz"))


def _slowest_and_fastest(data: PaperData) -> tuple[str, str]:
    rows = data.tables["figure_8_pda_processors"].rows
    slowest = min(rows, key=lambda row: float(row["clock_min_mhz"]))
    return slowest["device"], max(rows, key=lambda row: float(row["clock_max_mhz"]))["device"]


def _hashing(here: Here) -> Check:
    """No time of a hash is printed: only a measurement decides."""
    reason = here.why_not([ECC_SERVER, RSA_SERVER])
    if reason:
        return judge.untestable(f"no time of hashing is printed; {reason}", "measured")
    shares = {
        name: here.costs[suite].master_secret_us("client") / here.costs[suite].client_us
        for name, suite in (("ECC", ECC_SERVER), ("RSA", RSA_SERVER))
    }
    words = ", ".join(f"{100 * share:.2f} % ({name})" for name, share in shares.items())
    return judge.holds(
        max(shares.values()) < 0.01,
        words,
        "no time of hashing is printed; measured here: the master secret's share of the client's time. "
        "Public-key "
        "work has become so fast that hashing shows",
        "measured",
    )


def _sizes(here: Here) -> Check:
    """No byte count is printed: only a measurement decides."""
    reason = here.why_not([ECC_SERVER, RSA_SERVER, ECC_MUTUAL, RSA_MUTUAL])
    if reason:
        return judge.untestable(f"no sizes are printed; {reason}", "measured")
    pairs = [
        (here.costs[rsa].size_bytes, here.costs[ecc].size_bytes)
        for rsa, ecc in ((RSA_SERVER, ECC_SERVER), (RSA_MUTUAL, ECC_MUTUAL))
    ]
    words = "; ".join(f"{rsa:.0f} > {ecc:.0f}" for rsa, ecc in pairs)
    return judge.holds(
        all(rsa > ecc for rsa, ecc in pairs),
        words,
        "no sizes are printed; bytes of our WTLS handshakes, server-authenticated and mutual",
        "measured",
    )


def cells(data: PaperData) -> list[Row]:
    """Figure 3 by clock scaling, figures 4 to 7 from figure 3, figure 8 as input."""
    rows = [
        _figure_3(row, device) for row in data.tables["figure_3_primitive_times"].rows for device in DEVICES
    ]
    primitives_ms = data.tables["figure_3_primitive_times"]
    for row in data.tables["figures_4_to_7_handshake_steps"].rows:
        item = f"figure {row['figure']}, step {row['step']}"
        rows.append(
            cell_row(
                SLUG,
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
                SLUG,
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
                cell_row(
                    SLUG,
                    f"figure 8, {row['device']}",
                    f"{'least' if 'min' in column else 'greatest'} clock",
                    "MHz",
                    row[column],
                    None,
                    "",
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
    here, reason = None, "an input: measured by the report's sources"
    if device != NEW:
        scaled = primitives.clock_scaled_s(float(row[NEW]), CLOCKS_MHZ[NEW] * 1e6, CLOCKS_MHZ[device] * 1e6)
        here, reason = float(scaled), "the 20 MHz Palm VII's figure scaled by the clocks, as the report would"
    return cell_row(
        SLUG,
        f"figure 3, {row['family']} {row['key_bits']}, {DEVICES[device]}",
        name,
        "ms",
        row[device],
        here,
        "5 %",
        reason,
    )


@cache
def _ratios() -> dict[str, tuple[str, tuple[str, str], tuple[str, str]]]:
    """Ratios of figure 3 that can be formed here: title, then numerator and denominator."""
    return {
        "verify_sign": ("ECDSA verify over sign", ("ecdsa_verify", ""), ("ecdsa_sign", "")),
        "exponent": (
            "RSA public, e = 65537 over e = 3",
            ("public_decrypt", "65537"),
            ("public_decrypt", "3"),
        ),
        "private": (
            "RSA private over public, e = 65537",
            ("private_encrypt", ""),
            ("public_decrypt", "65537"),
        ),
        "private3": ("RSA private over public, e = 3", ("private_encrypt", ""), ("public_decrypt", "3")),
    }


def _operation(here: Here, suite: str, operation: Literal["sign", "verify"]) -> float:
    """One call on one side, in µs: signing by the client, its CertificateVerify checked by the server."""
    if operation == "sign":
        return here.costs[suite].operation_us("client", "sign", ["CertificateVerify"])
    return here.costs[suite].operation_us("server", "verify", ["CertificateVerify"])


def ratios_here(here: Here) -> dict[str, float]:
    """The same ratios on this machine, for those whose suites were measured."""
    found = {}
    if here.cost(TLS_ECC):
        found["verify_sign"] = _operation(here, TLS_ECC, "verify") / _operation(here, TLS_ECC, "sign")
    if here.cost(TLS_RSA) and here.cost(TLS_RSA3):
        verify, verify3 = (_operation(here, suite, "verify") for suite in (TLS_RSA, TLS_RSA3))
        found["exponent"] = verify / verify3
        found["private"] = _operation(here, TLS_RSA, "sign") / verify
        found["private3"] = _operation(here, TLS_RSA3, "sign") / verify3
    return found


def measured_cells(data: PaperData, here: Here) -> list[Row]:
    """Figure 3's ratios on the three devices, against those on this machine."""
    found = ratios_here(here)
    rows = []
    table = data.tables["figure_3_primitive_times"]
    missing = here.why_not([TLS_ECC, TLS_RSA, TLS_RSA3])
    for key, (title, above, below) in _ratios().items():
        for device, name in DEVICES.items():
            upper, lower = (
                float(table.one(primitive=one[0], rsa_public_exponent=one[1])[device])
                for one in (above, below)
            )
            rows.append(
                cell_row(
                    SLUG,
                    f"figure 3 as ratios, {name}",
                    title,
                    "x",
                    f"{upper / lower:.3f}",
                    found.get(key),
                    "10 %",
                    missing or "one operation over the other inside a TLS 1.0 handshake here",
                    "measured",
                )
            )
    return rows


def today(data: PaperData, here: Here) -> list[Today]:
    """What today's hardware says to the report's observations."""

    def ratio(above: str, below: str) -> float:
        return here.costs[above].client_us / here.costs[below].client_us

    def verify_over_sign() -> Check:
        return judge.number(
            ratios_here(here)["verify_sign"],
            "sect163k1 in a TLS 1.0 handshake: CertificateVerify signed by the client, checked by the server",
            "measured",
        )

    return [
        Today(
            "wp-001",
            "client time, server authenticated: ECC 163k over RSA-1024 with e = 3",
            (ECC_SERVER, RSA3_SERVER),
            lambda: judge.number(
                ratio(ECC_SERVER, RSA3_SERVER), "our WTLS engine, whole client time", "measured"
            ),
        ),
        Today(
            "wp-002",
            "client time, mutual: RSA-1024 with e = 3 over ECC 163k",
            (RSA3_MUTUAL, ECC_MUTUAL),
            lambda: judge.holds(
                ratio(RSA3_MUTUAL, ECC_MUTUAL) >= 8,
                ratio(RSA3_MUTUAL, ECC_MUTUAL),
                "our WTLS engine, where the mutual ECC client signs nothing (its certified key agrees)",
                "measured",
            ),
        ),
        Today(
            "wp-003",
            "flights over two, server authenticated and mutual",
            (ECC_SERVER, ECC_MUTUAL, RSA_SERVER, RSA_MUTUAL),
            lambda: judge.number(
                max(here.costs[one].flights for one in (ECC_SERVER, ECC_MUTUAL, RSA_SERVER, RSA_MUTUAL)) / 2,
                "counted on the wire",
                "measured",
            ),
        ),
        Today(
            "wp-005",
            "RSA-1024 verification: e = 65537 over e = 3",
            (TLS_RSA, TLS_RSA3),
            lambda: judge.holds(
                ratios_here(here)["exponent"] > 1,
                f"{ratios_here(here)['exponent']:.2f}",
                "CertificateVerify checked by a TLS 1.0 server; the report had 2.48, 2.45 and 2.49",
                "measured",
            ),
        ),
        Today("wp-018", "ECDSA on sect163k1: verify over sign", (TLS_ECC,), verify_over_sign),
    ]


def figures(data: PaperData, here: Here) -> list[Drawing]:
    """Figure 3 as bars, and figures 4 to 7 as one stack for each handshake."""
    bars = [
        {
            "primitive": _short(row),
            "device": name,
            "time in ms": float(row[device]),
        }
        for row in data.tables["figure_3_primitive_times"].rows
        for device, name in DEVICES.items()
    ]
    parts = {
        "server_certificate_verification": "verify server certificate",
        "session_key_establishment": "establish key",
        "client_authentication": "authenticate client",
    }
    stacks: dict[tuple[str, str], float] = {}
    for row in data.tables["figures_4_to_7_handshake_steps"].rows:
        exponent = f" e={row['rsa_public_exponent']}" if row["rsa_public_exponent"] else ""
        name = f"{row['figure']}: {row['suite']}{exponent}"
        key = (name, parts[row["operation"]])
        stacks[key] = stacks.get(key, 0.0) + float(row["time_ms"]) / 1e3
    panels = {"4": "server authenticated", "5": "server authenticated", "6": "mutual", "7": "mutual"}
    values = [
        {
            "handshake": name,
            "part": part,
            "client time in s": round(value, 4),
            "authentication": panels[name[0]],
        }
        for (name, part), value in stacks.items()
    ]
    note = "From the report's own primitives."
    return [
        Drawing(
            SLUG,
            "3",
            "Execution time of primitives (logarithmic)",
            "The report's figures.",
            "published",
            draw.grouped_bars(bars, "primitive", "device", "time in ms", log=True),
            bars,
        ),
        Drawing(
            SLUG,
            "4 to 7",
            "Client's cryptographic time, sums of primitives",
            note,
            "modelled",
            draw.stacked_bars(
                values, "handshake", "part", "client time in s", facet="authentication", free=True
            ),
            values,
        ),
    ]


def _short(row: Mapping[str, str]) -> str:
    names = {
        "key_generation": "ECC keygen",
        "key_expansion": "ECC expand",
        "dh_key_agreement": "ECDH",
        "ecdsa_sign": "ECDSA sign",
        "ecdsa_verify": "ECDSA verify",
        "private_encrypt": "RSA private",
        "public_decrypt": f"RSA verify e={row['rsa_public_exponent']}",
        "public_encrypt": "RSA encrypt",
    }
    return names[row["primitive"]]


PAPER = Paper(SLUG, SUITES, checks, cells, today, measured_cells, figures)
