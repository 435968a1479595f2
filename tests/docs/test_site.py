"""The documentation site builds without warnings and links to every page."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from browser import Browser
from docs_examples import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        ROOT / "docs",
        folder,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_site(site):
    for page in (ROOT / "docs").rglob("*.md"):
        if page != ROOT / "docs" / "README.md":
            assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists(), page


def test_every_internal_link_has_a_target(site):
    for page in site.rglob("*.html"):
        for target in re.findall(r'<a [^>]*href="([^"#?]+)', page.read_text()):
            if re.match(r"\w+:", target):
                continue
            assert (page.parent / target).exists(), f"{page.relative_to(site)} links to {target}"


def test_commands_functions_and_profiles_are_in_the_reference(site):
    import shakedown
    from shakedown.cli import app

    for name in app.list_commands(None):
        page = (site / "reference" / "commands" / f"{name}.html").read_text()
        assert f'id="shakedown-{name}"' in page
        # Options keep both dashes, in prose and in the example.
        assert re.search(r"[–—]\w", page) is None, name
        assert '<code class="docutils literal notranslate"><span class="pre">shakedown</span>' in page
    functions = (site / "reference" / "api.html").read_text()
    assert [
        name for name in shakedown.__all__ if name[0] != "_" and f'id="shakedown.{name}"' not in functions
    ] == []
    profiles = (site / "reference" / "profiles.html").read_text()
    for one in [*shakedown.devices(), *shakedown.bearers()]:
        assert f">{one.name}<" in profiles


@pytest.mark.browser
def test_search_works_in_a_site_opened_as_a_file(site, peer):
    peer("chromium")
    with Browser() as browser:
        browser.show(site / "search.html", 1280)
        browser.ask("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q=capacity")
        deadline = time.monotonic() + 120
        pages = "[...document.querySelectorAll('#search-results li a')].map(one => one.href)"
        while not any("/guides/capacity.html" in one for one in browser.evaluate(pages) or ()):
            assert time.monotonic() < deadline, browser.complaints
            time.sleep(0.05)
        assert browser.complaints == []


def test_the_citation_names_the_version():
    import shakedown

    assert f"\nversion: {shakedown.__version__}\n" in (ROOT / "CITATION.cff").read_text()
