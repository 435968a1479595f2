"""The example notebook runs, and its results display as tables and charts."""

from __future__ import annotations

import re

import altair
import nbformat
from nbclient import NotebookClient

import shakedown
from docs_examples import ROOT

NOTEBOOK = ROOT / "examples" / "handshakes.ipynb"


def test_the_notebook_runs_and_displays_tables_and_charts(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs for cell in cells), "figures of one machine are not kept in the file"
    done = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {
        cell.source: output.data
        for cell in done.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    }
    # All but the first, which imports.
    assert len(shown) == len(cells) - 1
    for source, data in shown.items():
        if source.endswith(".plot()"):
            assert data["image/svg+xml"].startswith("<svg"), source
            assert any(kind.startswith("application/vnd.vegalite.v") for kind in data), source
            assert "text/html" not in data, "Altair's page loads its scripts from a server"
        else:
            assert "<table" in data["text/html"], source
        for kind in ("text/html", "image/svg+xml"):
            # Nothing is fetched: the only URLs are XML namespaces.
            addresses = set(re.findall(r"https?://[^\s\"'<>]+", data.get(kind, "")))
            assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, source


def test_a_chosen_renderer_is_respected_and_copies_stay_offline():
    rows = shakedown.predict(["tls1.2/psk", "tls1.3/x25519/p256/server"], device="cortex-m4", bearer="lte")
    chart = rows.plot()
    assert isinstance(chart, altair.TopLevelMixin)
    assert "image/svg+xml" in chart.properties(title="other")._repr_mimebundle_()
    with altair.renderers.enable("mimetype"):
        assert "image/svg+xml" not in chart._repr_mimebundle_()
