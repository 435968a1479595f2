"""The example notebook runs, and what it shows displays as tables and charts."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient

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
        expected = "vegaEmbed" if source.endswith(".plot()") else "<table"
        assert expected in data["text/html"], source
