"""Suites by patterns, cipher suite names and misspelt names; devices and bearers by patterns."""

from __future__ import annotations

import subprocess

import pytest

from shakedown import native
from shakedown.api import catalogue
from shakedown.cli import exit_status
from shakedown.errors import InputError
from shakedown.files.patterns import alternatives, matches
from shakedown.native.suite_names import expand, meant


def test_brace_sets_expand_to_all_combinations():
    assert alternatives("a{b,c{d,e}}{f,g}") == ["abf", "abg", "acdf", "acdg", "acef", "aceg"]
    with pytest.raises(InputError, match="a set in braces is not closed"):
        alternatives("a{b,c")


def test_star_matches_one_part_and_at_the_end_all_further_parts():
    assert matches("tls1.3/*/p256/server", "tls1.3/x25519/p256/server")
    assert not matches("tls1.3/*/server", "tls1.3/x25519/p256/server")
    assert matches("tls1.3/*", "tls1.3/x25519/p256/server")


def test_patterns_match_suites_that_are_not_listed():
    listed = {one.suite for one in native.suites()}
    found = expand(["tls1.3/{x25519,x25519mlkem768}/mldsa*/mutual"])
    assert len(found) == 6
    assert set(found) - listed
    assert all(native.runnable(name) == name for name in found)
    with pytest.raises(InputError, match=r"no suite here matches .*each part of a name needs its own \*"):
        expand(["tls1.3/*/server"])
    with pytest.raises(InputError, match="no suite here matches"):
        expand(["tls1.3/*/rsa512/server"])


@pytest.mark.parametrize("words", [("tls1.3", "mldsa44", "mutual"), ("x25519mlkem768", "mldsa65")])
def test_listed_suites_can_be_measured(words):
    found = [one.suite for one in catalogue.suites(*words)]
    assert found
    assert all(native.runnable(name) == name and all(word in name for word in words) for name in found)


@pytest.mark.parametrize(
    ("written", "suite"),
    [
        ("tls13/x25519/p256", "tls1.3/x25519/p256/server"),
        ("TLSv1.2/psk", "tls1.2/psk"),
        ("TLS_AES_256_GCM_SHA384", "tls1.3/x25519/p256/server/aes256-gcm"),
        ("ECDHE-ECDSA-AES128-GCM-SHA256", "tls1.2/ecdhe_ecdsa+x25519/p256/server"),
        ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", "tls1.2/rsa/rsa2048/server/3des-sha"),
        ("tls1.3/kyber768/p256", "tls1.3/mlkem768/p256/server"),
        ("tls1.3/x25519kyber768draft00/p256", "tls1.3/x25519mlkem768/p256/server"),
        ("tls1.3/X25519MLKEM768/ML-DSA-65/mtls", "tls1.3/x25519mlkem768/mldsa65/mutual"),
        ("tls1.3/x25519/dilithium3", "tls1.3/x25519/mldsa65/server"),
        ("tls1.3/x25519/rsa", "tls1.3/x25519/rsa2048/server"),
        ("tls1.3/x25519/ecdsa-p256", "tls1.3/x25519/p256/server"),
        ("tls1.3/x25519/ecdsa", "tls1.3/x25519/p256/server"),
        ("tls1.2/ecdhe_rsa+secp256r1/rsa", "tls1.2/ecdhe_rsa+p256/rsa2048/server"),
        ("tls1.3/x2551/p256/sever", "tls1.3/x25519/p256/server"),
        ("mldsa65", "tls1.3/x25519/mldsa65/server"),
        ("tls1.4/psk", ""),
        ("/", ""),
        ("FANCY-NAME", ""),
    ],
)
def test_misspelled_suites_suggest_the_intended_suite(written, suite):
    assert meant(written) == suite


def test_openssl_and_iana_names_give_the_same_suite(peer):
    """OpenSSL lists pairs of both names: if one of a pair names a suite, the other names the same suite."""
    listed = subprocess.run(
        [peer("openssl"), "ciphers", "-stdname", "ALL:COMPLEMENTOFALL@SECLEVEL=0"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    known = 0
    for line in listed.splitlines():
        iana, _, name = line.split()[:3]
        assert meant(iana) == meant(name), line
        known += bool(meant(iana))
    assert known > 60


def test_errors_begin_with_the_suggestion(capsys):
    for words, first in (
        (["measure", "tls13/psk"], 'error: suite "tls13/psk": did you mean "tls1.3/psk"?\n'),
        (["measure", "dtls1.2"], "error: dtls1.2: no stack here runs dtls1.2; accepted: "),
        (
            ["suites", "dtls"],
            "error: no stack here runs dtls1.2; protocols that run here: ssl3, tls1.0, tls1.1, ",
        ),
        (["suites", "DTLS1.2/psk"], "error: no stack here runs dtls1.2; protocols that run here: "),
        (["suites", "quic"], 'error: no suite matches "quic"; accepted: parts of names, '),
        (
            ["predict", "tls1.2/psk", "--bearer", "nb-iot,lte-m"],
            "error: unknown bearer 'nb-iot,lte-m'; did you mean \"{nb-iot,lte-m}\"? accepted: ",
        ),
        (
            ["devices", "raspberry_pi"],
            "error: unknown device 'raspberry_pi'; did you mean \"raspberry-pi\"? accepted: ",
        ),
        (
            ["predict", "tls1.2/psk", "--device", "cortex-m0"],
            'error: unknown device \'cortex-m0\'; did you mean "km35z", "lpc1114", "r7fs124", ',
        ),
        (
            ["devices", "raspberry-pi-4"],
            "error: unknown device 'raspberry-pi-4'; did you mean \"raspberry-pi\"? accepted: ",
        ),
        (
            ["predict", "tls1.2/psk", "--bearer", "NB-IoT"],
            "error: unknown bearer 'NB-IoT'; did you mean \"nb-iot\"? accepted: ",
        ),
        (
            ["predict", "tls1.2/psk", "--bearer", "lora"],
            'error: unknown bearer \'lora\'; did you mean "lorawan-sf10", "lorawan-sf11" or ',
        ),
        (
            ["predict", "tls9/*"],
            'error: no suite here matches "tls9/*"; protocols that run here: ssl3, tls1.0, tls1.1, ',
        ),
        (["measure", "tls13/*"], 'error: no suite here matches "tls13/*"; did you mean "tls1.3/*"? '),
        (
            ["suites", "tls1.2/ecdhe_rsa/*/server"],
            'error: no suite here matches "tls1.2/ecdhe_rsa/*/server"; did you mean "ecdhe_rsa+*"? ',
        ),
        (
            ["predict", "tls1.3/x25519/p256/servr*"],
            'error: no suite here matches "tls1.3/x25519/p256/servr*"; did you mean "server"? ',
        ),
        (
            ["devices", "cortexm*"],
            'error: no device matches "cortexm*"; did you mean "cortex-m4"? accepted: names that ',
        ),
        (
            ["predict", "tls1.2/psk", "--bearer", "lt9*"],
            'error: no bearer matches "lt9*"; did you mean "lte"? accepted: names that ',
        ),
        (
            ["predict", "tls1.2/psk", "--device", "xyz"],
            "error: unknown device 'xyz'; accepted: names that \"shakedown devices\" lists\n",
        ),
    ):
        assert exit_status(words) == 2
        assert capsys.readouterr().err.startswith(first)


def test_missing_arguments_are_reported_with_an_example(capsys):
    for words, first in (
        (["predict"], "error: missing argument 'SUITE…'; for example: shakedown predict tls1.3/"),
        (["capacity", "tls1.2/psk"], "error: missing option '--within'; for example: shakedown capacity "),
        (["compare", "--pair", "a"], "error: option '--pair' requires 2 arguments; for example: shakedown "),
        (["predict", "--foo"], "error: no such option '--foo'; for example: shakedown predict "),
    ):
        assert exit_status(words) == 2
        assert capsys.readouterr().err.startswith(first)


def test_words_filter_profiles(capsys):
    assert exit_status(["devices", "cortex-m0", "--columns", "name"]) == 0
    assert {"lpc1114", "stm32f0", "samd21"} <= set(capsys.readouterr().out.split())
    assert exit_status(["devices", "STM32", "--columns", "name"]) == 0
    assert {"cortex-m4", "stm32f4"} <= set(capsys.readouterr().out.split())
    assert exit_status(["bearers", "satellite", "--columns", "name"]) == 0
    assert {"geo", "leo"} <= set(capsys.readouterr().out.split())
    assert exit_status(["bearers", "{lte*,nb-iot}", "--columns", "name"]) == 0
    assert {"lte", "lte-m", "nb-iot"} <= set(capsys.readouterr().out.split())
