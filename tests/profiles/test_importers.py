"""Importing benchmark output of common libraries as profiles."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shakedown.errors import InputError
from shakedown.profiles import load_device
from shakedown.profiles.importers import import_benchmark, save_import
from shakedown.profiles.importers.measured import fit_symmetric

OPENSSL = """\
+H:16:64:256:1024:8192:16384
+F:6:sha256:160000000.0:500000000.0:1100000000.0:1700000000.0:2000000000.0:2048000000.0
+F:9:hmac(sha256):70000000.0:200000000.0:490000000.0:730000000.0:850000000.0:1024000000.0
+R1:5000:2048:1.00
+F2:2:2048:4000.000000:80000.000000
+F3:1:1024:15000.000000:19000.000000
+F4:3:256:50000.000000:20000.000000
+F4:6:163:8000.000000:4000.000000
+F4:11:163:8100.000000:4100.000000
+F5:3:256:32000.000000:0.000031
+F5:22:253:40000.000000:0.000025
+F6:0:253:Ed25519:43000.000000:16000.000000
+F8:0:2048:5000.000000:0.000200
"""
WOLFCRYPT = """\
 wolfSSL version 5.6.6
SHA-256                     18 MiB took 1.000 seconds,   16.000 MiB/s
RSA     2048   public       508 ops took 1.000 sec, avg 1.969 ms, 508.000 ops/sec
RSA     2048  private        14 ops took 1.020 sec, avg 72.857 ms, 13.725 ops/sec
DH      2048    agree        30 ops took 1.012 sec, avg 33.733 ms, 29.644 ops/sec
ECC   [      SECP256R1]   256  key gen       982 ops took 1.000 sec, avg 1.018 ms, 982.000 ops/sec
ECDHE [      SECP384R1]   384    agree       456 ops took 1.000 sec, avg 2.193 ms, 456.000 ops/sec
ECDSA    256 verify         36 ops took 1.004 sec, avg 27.889 ms, 35.857 ops/sec
CURVE  25519    agree      1144 ops took 1.000 sec, avg 0.874 ms, 1144.000 ops/sec
ED     25519     sign      1716 ops took 1.000 sec, avg 0.583 ms, 1716.000 ops/sec
ML-KEM 512    128  key gen        150 ops took 1.006 sec, avg 6.707 ms, 149.105 ops/sec
"""
MBEDTLS = """\
  SHA-256                  :    6400.00 KiB/s,   14.13 cycles/byte
  AES-CBC-128              :    2000.00 KiB/s,   38.35 cycles/byte
  RSA-2048                 :      28 ms/ public
  RSA-2048                 :     953 ms/private
  ECDSA-secp256r1          :       8.00 sign/s
  ECDHE-secp256r1          :       4.00 handshake/s
  ECDH-secp256r1           :       5.00 handshake/s
"""


def test_openssl_speed_output_is_imported():
    _, imported = import_benchmark(OPENSSL, "x")
    found = imported.primitives
    assert found["sign", "rsa", "rsa2048"] == {"time_us": 250.0}
    assert found["verify", "dsa", "dsa1024"]["time_us"] == pytest.approx(1e6 / 19000)
    assert found["sign", "ecdsa", "sect163k1"]["time_us"] == 125.0
    assert found["sign", "ecdsa", "sect163r2"]["time_us"] == pytest.approx(1e6 / 8100)
    assert found["derive", "ecdh", "x25519"]["time_us"] == 25.0
    assert found["verify", "eddsa", "ed25519"]["time_us"] == 62.5
    assert found["derive", "dh", "ffdhe2048"]["time_us"] == 200.0
    digest = found["digest", "sha256", ""]
    assert digest["per_kib_us"] == pytest.approx(0.5)
    assert digest["per_call_us"] == pytest.approx(0.1 - 0.5 / 64)
    assert found["mac", "hmac-sha256", ""]["per_kib_us"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("number", "bits", "curve"),
    [
        (0, 160, "secp160r1"),
        (6, 163, "sect163k1"),
        (15, 571, "sect571r1"),
        (16, 256, "brainpoolp256r1"),
        (20, 512, "brainpoolp512r1"),
        (6, 256, "brainpoolp256r1"),  # of a build without binary curves
        (10, 512, "brainpoolp512r1"),
        (6, 384, None),
        (40, 256, None),
    ],
)
def test_openssl_speed_curves_are_found_by_number_and_size(number, bits, curve):
    text = f"+F4:{number}:{bits}:8000.0:4000.0\n+F5:{number}:{bits}:5000.0:0.0002\n+F2:2:2048:10.0:20.0\n"
    found = import_benchmark(text, "x")[1].primitives
    figures = {triple for triple in found if triple[1] in ("ecdsa", "ecdh")}
    wanted = {("sign", "ecdsa", curve), ("verify", "ecdsa", curve), ("derive", "ecdh", curve)}
    assert figures == (wanted if curve else set())


def test_wolfcrypt_output_is_imported():
    library, imported = import_benchmark(WOLFCRYPT, "x")
    found = imported.primitives
    assert library == "wolfSSL 5.6.6"
    assert found["encrypt", "rsa", "rsa2048"] == found["verify", "rsa", "rsa2048"] == {"time_us": 1969.0}
    assert found["decrypt", "rsa", "rsa2048"]["time_us"] == pytest.approx(72857.0)
    assert found["derive", "dh", "ffdhe2048"]["time_us"] == 33733.0
    assert found["keygen", "ecdh", "p256"]["time_us"] == 1018.0
    assert found["derive", "ecdh", "p384"]["time_us"] == 2193.0
    assert found["verify", "ecdsa", "p256"]["time_us"] == 27889.0
    assert found["sign", "eddsa", "ed25519"]["time_us"] == 583.0
    assert found["keygen", "mlkem", "mlkem512"]["time_us"] == 6707.0
    assert found["digest", "sha256", ""]["per_kib_us"] == pytest.approx(1e6 / 16384)


def test_mbedtls_output_is_imported():
    _, imported = import_benchmark(MBEDTLS, "x")
    found = imported.primitives
    assert found["verify", "rsa", "rsa2048"]["time_us"] == 28000.0
    assert found["sign", "ecdsa", "p256"]["time_us"] == 125000.0
    assert found["derive", "ecdh", "p256"]["time_us"] == 200000.0
    assert found["keygen", "ecdh", "p256"]["time_us"] == pytest.approx(50000.0)
    assert found["cipher", "aes-128-cbc", ""]["per_kib_us"] == 500.0


PQM4_CSV = """Speed Evaluation,,,,,,,,,,
Key Encapsulation Schemes,,,,,,,,,,
Scheme,Implementation,Key Generation [cycles] (mean),Key Generation [cycles] (min),Key Generation [cycles] (max),Encapsulation [cycles] (mean),Encapsulation [cycles] (min),Encapsulation [cycles] (max),Decapsulation [cycles] (mean),Decapsulation [cycles] (min),Decapsulation [cycles] (max)
hqc-128 (10 executions),clean,52705201,52705180,52705224,105650897,105650877,105650927,159569179,159569176,159569183
ml-kem-768 (10 executions),clean,988722,985880,998135,1138225,1135419,1147634,1387984,1385144,1397397
ml-kem-768 (10 executions),m4fspeed,642096,639116,651103,658754,655785,667769,707827,704858,716842
Signature Schemes,,,,,,,,,,
Scheme,Implementation,Key Generation [cycles] (mean),Key Generation [cycles] (min),Key Generation [cycles] (max),Sign [cycles] (mean),Sign [cycles] (min),Sign [cycles] (max),Verify [cycles] (mean),Verify [cycles] (min),Verify [cycles] (max)
ml-dsa-65 (1000 executions),m4f,2516006,2514337,2517453,6193171,2918295,26008621,2415944,2415109,2416730
Memory Evaluation,,,,,,,,,,
Key Encapsulation Schemes,,,,,,,,,,
Scheme,Implementation,Key Generation [bytes],Encapsulation [bytes],Decapsulation [bytes],,,,,,
ml-kem-768,m4fspeed,5396,6468,6452,,,,,,
"""  # noqa: E501
PQM4_MD = """# Speed Evaluation
## Key Encapsulation Schemes
| scheme | implementation | key generation [cycles] | encapsulation [cycles] | decapsulation [cycles] |
| ------ | -------------- | ----------------------- | ---------------------- | ---------------------- |
| ml-kem-768 (10 executions) | m4fspeed | AVG: 642,096 <br /> MIN: 639,116 <br /> MAX: 651,103 | AVG: 658,754 <br /> MIN: 655,785 <br /> MAX: 667,769 | AVG: 707,827 <br /> MIN: 704,858 <br /> MAX: 716,842 |
| kyber768 (100 executions) | m4 | AVG: 976,757 <br /> MIN: 976,205 <br /> MAX: 977,165 | AVG: 1,146,556 <br /> MIN: 1,146,021 <br /> MAX: 1,146,937 | AVG: 1,094,849 <br /> MIN: 1,094,314 <br /> MAX: 1,095,229 |
"""  # noqa: E501


def test_pqm4_output_matches_the_cortex_m4_profile():
    """Our Cortex-M4's figures were copied from pqm4's results by hand."""
    library, imported = import_benchmark(PQM4_CSV, "x")
    assert library == "pqm4"
    here = load_device("cortex-m4")
    for triple in (("decapsulate", "mlkem", "mlkem768"), ("sign", "mldsa", "mldsa65")):
        cycles, cost = imported.primitives[triple], here.costs[triple]
        assert cycles["mean_cycles"] / here.clock_hz == pytest.approx(cost.mean_s)
    assert imported.primitives["sign", "mldsa", "mldsa65"]["max_cycles"] == 26008621
    assert len(imported.primitives) == 6
    assert imported.omitted == [
        "hqc-128 clean: no suite uses it",
        "ml-kem-768 clean: m4fspeed is faster",
        "Memory Evaluation: no times (1 line)",
    ]


def test_pqm4_csv_and_markdown_give_the_same_figures():
    assert import_benchmark("\ufeff" + PQM4_CSV.replace("\n", "\r\n"), "x") == import_benchmark(PQM4_CSV, "x")
    whole, table = import_benchmark(PQM4_CSV, "x")[1], import_benchmark(PQM4_MD, "x")[1]
    kem = {triple: cost for triple, cost in whole.primitives.items() if triple[1] == "mlkem"}
    assert table.primitives == kem
    assert table.omitted == ["kyber768 m4: no suite uses it"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("642096,639116", "642096,0", "ml-kem-768 m4fspeed, line 6: a form that is not known"),
        ("642096,639116", "642096,700000", "line 6: a form that is not known"),
        ("707827", "many", "line 6: a form that is not known"),
        ("707827,704858,716842", "707827", "line 6: a form that is not known"),
    ],
)
def test_a_damaged_line_of_pqm4_is_named(old, new, words):
    _, imported = import_benchmark(PQM4_CSV.replace(old, new), "x")
    assert any(words in line for line in imported.omitted)
    assert ("decapsulate", "mlkem", "mlkem768") in imported.primitives  # of the slower one


def test_two_figures_of_one_implementation_are_refused():
    line = next(line for line in PQM4_CSV.splitlines() if "m4fspeed" in line)
    with pytest.raises(InputError, match="lines 6 and 7 give different figures for ml-kem-768 m4fspeed"):
        import_benchmark(PQM4_CSV.replace(line, f"{line}\n{line.replace('642096', '642097')}"), "x")


def test_shakedown_measurements_are_imported():
    def operation(name, algorithm, parameters, count, size, mean_us):
        return {
            "side": "client",
            "message": 0,
            "operation": name,
            "algorithm": algorithm,
            "parameters": parameters,
            "count": count,
            "bytes": size,
            "mean_us": mean_us,
        }

    entries = [
        {
            "suite": "tls1.3/x25519/p256/server",
            "operations": [
                operation("sign", "ecdsa", "p256", 1, None, 20.0),
                operation("sign", "ecdsa", "p256", 1, None, 24.0),
                operation("digest", "sha256", "", 2, 1024, 3.0),
                operation("digest", "sha256", "", 1, 2048, 3.0),
            ],
        }
    ]
    _, imported = import_benchmark(json.dumps(entries), "x")
    found = imported.primitives
    assert found["sign", "ecdsa", "p256"]["time_us"] == 22.0
    assert found["digest", "sha256", ""] == {
        "per_call_us": pytest.approx(1.0),
        "per_kib_us": pytest.approx(1.0),
    }


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(2, 64, 0.2), (4, 128, 0.4)], {"per_call_us": pytest.approx(0.1)}),  # sizes of a call are equal
        ([(1, 64, 0.3), (1, 2048, 0.2)], {"per_call_us": pytest.approx(0.23, rel=0.1)}),  # longer is faster
        ([(1, 1024, 1.0), (1, 2048, 4.0)], {"per_kib_us": pytest.approx(1.2, rel=0.1)}),
        (
            [(1, 1024, 2.0), (1, 2048, 3.0)],
            {"per_call_us": pytest.approx(1.0), "per_kib_us": pytest.approx(1.0)},
        ),
    ],
)
def test_symmetric_costs_that_measurements_do_not_determine_are_omitted(rows, found):
    assert fit_symmetric(rows) == found


def test_symmetric_cost_of_a_kib_is_that_measured_alone_if_messages_are_alike():
    # Two calls of 512 bytes each, of which 0.1 us is the data's.
    found = fit_symmetric([(2, 1024, 1.2), (2, 1024, 1.2)], 0.2)
    assert found == {"per_call_us": pytest.approx(0.5), "per_kib_us": 0.2}
    # The data alone explain the time.
    assert fit_symmetric([(2, 1024, 0.1), (2, 1024, 0.1)], 0.2) == {"per_kib_us": 0.2}


def test_text_without_figures_is_refused():
    with pytest.raises(InputError, match="no benchmark figures; accepted: output of openssl speed -mr"):
        import_benchmark("Hello\n", "notes.txt")


def arguments(**changes):
    given = {
        "name": "mine",
        "chip": 'Say "chip"\\',
        "clock_hz": 80e6,
        "title": "Mine",
        "library": None,
        "build": "-O2",
        "date": "2026-01-01",
        "source": "bench.txt",
        "out": None,
    }
    return {**given, **changes}


def test_an_imported_profile_can_be_loaded(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "bench.txt").write_text(WOLFCRYPT, encoding="utf-8")
    saved = save_import(tmp_path / "bench.txt", **arguments())
    device = load_device("mine")
    assert saved.path == tmp_path / "shakedown" / "devices" / "mine.toml"
    assert len(device.costs) == saved.primitives == 12
    assert not saved.overhead
    assert device.chip == 'Say "chip"\\'
    assert device.library == "wolfSSL 5.6.6"


@pytest.mark.parametrize(
    ("name", "words"), [("phone", "shipped profile"), ("My Board", "lower-case letters")]
)
def test_import_refuses_names_in_use(monkeypatch, tmp_path, name, words):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "bench.txt").write_text(MBEDTLS, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        save_import(tmp_path / "bench.txt", **arguments(name=name))


def test_existing_profile_is_replaced_only_with_force(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "bench.txt").write_text(WOLFCRYPT, encoding="utf-8")
    save_import(tmp_path / "bench.txt", **arguments())
    with pytest.raises(InputError, match=r"exists already.*--force"):
        save_import(tmp_path / "bench.txt", **arguments())
    save_import(tmp_path / "bench.txt", **arguments(replace=True))


NEWER_MBEDTLS = """\
  CTR_DRBG (NOPR)          :    1200.00 KiB/s,   78.00 cycles/byte
  ECDHE-secp256r1          :      20.00 full handshake/s
  ECDHE-x25519             :      10.00 full handshake/s
  DHE-2048                 :       0.50 handshake/s
  DH-2048                  :       1.25 handshake/s
"""


def test_every_figure_is_imported_or_listed_as_omitted():
    """ECDHE-x25519 and DHE are imported; CTR_DRBG, which is in no suite, is reported."""
    _, imported = import_benchmark(NEWER_MBEDTLS, "x")
    found = imported.primitives
    assert found["keygen", "ecdh", "x25519"]["time_us"] == pytest.approx(25_000.0)
    assert found["derive", "ecdh", "p256"]["time_us"] == pytest.approx(12_500.0)
    assert found["derive", "dh", "dh2048"]["time_us"] == pytest.approx(800_000.0)
    assert found["keygen", "dh", "dh2048"]["time_us"] == pytest.approx(1_200_000.0)
    (line,) = imported.omitted
    assert "CTR_DRBG" in line


def test_shakedown_measurements_give_the_stack_overhead():
    """The overhead of a message is its time without its primitives."""
    entry = {
        "suite": "tls1.2/psk",
        "handshake": {side: {"median": 30.0, "sd": 2.0} for side in ("client_us", "server_us")},
        "messages": [
            {"index": 0, "from": "client", "name": "ClientHello", "flight": 1, "bytes": 120,
             "generate_us": 12.0, "process_us": 9.0},
        ],
        "operations": [
            {"side": "client", "message": 0, "operation": "digest", "algorithm": "sha256", "parameters": "",
             "count": 1, "bytes": 120, "us": 2.0, "mean_us": 2.0},
        ],
        "unattributed_us": {"client": 3.0, "server": 1.0},
    }  # fmt: skip
    _, imported = import_benchmark(json.dumps([entry, entry]), "x")
    rows = {(row["name"], row["work"]): row["mean_us"] for row in imported.overhead["message"]}
    assert rows == {("ClientHello", "generate"): 10.0, ("ClientHello", "process"): 9.0}
    assert {row["side"]: row["mean_us"] for row in imported.overhead["handshake"]} == {
        "client": 3.0,
        "server": 1.0,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            OPENSSL + "+F2:2:2048:4100.000000:80000.000000\n",
            r"bench.txt: lines 5 and 14 give different figures for sign rsa rsa2048 "
            r"\(250 us; 243.902 us\); accepted: one figure of each",
        ),
        (
            OPENSSL + OPENSSL.splitlines()[1].replace("2048000000.0", "1024000000.0") + "\n",
            r"lines 2 and 14 give different figures for digest sha256 \(.* us a call, 0.5 us a KiB;",
        ),
        (
            WOLFCRYPT + "RSA     2048  private        14 ops took 1.020 sec, avg 71.000 ms, 13.725 ops/sec\n",
            r"lines 4 and 12 give different figures for decrypt rsa rsa2048|.*sign rsa rsa2048",
        ),
        (MBEDTLS + "  ECDHE-secp256r1          :       4.10 handshake/s\n", "lines 6 and 8 .* ecdh p256"),
        (MBEDTLS + "  SHA-256                  :    6500.00 KiB/s\n", "lines 1 and 8 .* digest sha256"),
        (
            json.dumps(
                [
                    {"operation": "sign", "algorithm": "ecdsa", "parameters": "p256", "us": {"median": us}}
                    for us in (20.0, 21.0)
                ]
            ),
            "entries 1 and 2 give different figures for sign ecdsa p256",
        ),
    ],
    ids=["openssl", "openssl digest", "wolfcrypt", "mbedtls", "mbedtls digest", "ours"],
)
def test_contradicting_lines_are_refused_by_name(text, said):
    """Otherwise the last line would win silently."""
    with pytest.raises(InputError, match=said):
        import_benchmark(text, "bench.txt")


@pytest.mark.parametrize("text", [OPENSSL, WOLFCRYPT, MBEDTLS])
def test_repeated_equal_lines_are_accepted(text):
    assert import_benchmark(text + text, "x")[1].primitives == import_benchmark(text, "x")[1].primitives


HOSTILE = [
    "[" * 100_000,
    "[" + "9" * 5000 + "]",
    "[{}]",
    '[{"operations": 3}]',
    '[{"operations": [3]}]',
    '[{"operations": [{"operation": [], "algorithm": 1, "parameters": {}, "count": 1, "us": []}]}]',
    '[{"operations": [{"operation": "mac", "algorithm": "x", "parameters": 1, "count": "x"}]}]',
    '[{"operation": "sign", "algorithm": "rsa", "parameters": "rsa2048", "us": 3}]',
    '[{"operation": "sign", "algorithm": "rsa", "parameters": "rsa2048", "us": {"median": NaN}}]',
    '[{"operation": "sign", "algorithm": "rsa", "parameters": "rsa2048", "us": {"median": 1e999}}]',
    '[{"operation": "sign", "algorithm": "rsa", "parameters": "rsa2048", "us": {"median": -1}}]',
    "+H:x\n",
    "+H:16:64\n+F:6:sha256:inf:nan\n",
    "+F:6\n",
    "+F2:2:2048:nan:inf\n",
    "+F2:2:2048:1e400:-1\n",
    "+F4:99999999999999999999:1:1:1\n",
    "+F5:x:y:z\n",
    "+F9::::::\n",
    "RSA     2048   public       508 ops took 1.000 sec, avg 1.9.6.9 ms, 508.000 ops/sec\n",
    "RSA-2048 : 1.2.3 ms/ public\n",
    "RSA-2048 : 0 ms/ public\n",
    "RSA-" + "9" * 5000 + " : 1 ms/ public\n",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:40])
def test_damaged_output_is_reported_in_one_line(tmp_path, text):
    (tmp_path / "bench.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as told:
        save_import(tmp_path / "bench.txt", **arguments(out=tmp_path / "b.toml"))
    assert len(str(told.value)) < 1000
    assert "\n" not in str(told.value)
    assert not (tmp_path / "b.toml").exists()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_altered_output_gives_a_profile_or_a_one_line_error(tmp_path, data):
    """Up to three lines of each kind of output are changed or cut in any place."""
    lines = data.draw(st.sampled_from([OPENSSL, WOLFCRYPT, MBEDTLS])).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        at = data.draw(st.integers(0, len(lines[number])))
        put = data.draw(
            st.sampled_from(["", ":", "9", ".", "-", "nan", "1e999", "\x00", "é", " ", "[", "\x1b"])
        )
        end = at + data.draw(st.integers(0, 4))
        lines[number] = lines[number][:at] + put + lines[number][end:]
    (tmp_path / "bench.txt").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "b.toml"
    out.unlink(missing_ok=True)
    try:
        save_import(tmp_path / "bench.txt", **arguments(out=out))
    except InputError as error:
        told = str(error)
    else:
        told = ""
        assert load_device(str(out)).costs
    assert "\n" not in told
    assert out.exists() == (told == "")


@pytest.mark.parametrize("figure", ["0", "-5", "nan", "inf"])
def test_figure_that_is_not_a_time_is_named(figure):
    _, found = import_benchmark(f"+F2:2:2048:{figure}:0.000015\n", "x")
    assert ("sign", "rsa", "rsa2048") not in found.primitives
    assert f"line 1: sign rsa rsa2048: {figure}, which is not a time or rate" in found.omitted
