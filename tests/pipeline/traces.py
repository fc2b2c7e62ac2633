"""Synthetic traces on disk, with the figures that a storm would have written beside them."""

from __future__ import annotations

import json
from pathlib import Path

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.trace.writer import open_writer
from tests.figures.synthetic_rows import TracedRow


def write_trace(
    rows: list[TracedRow], folder: Path, trace_format: str = "jsonl", with_figures: bool = False
) -> Figures:
    """Write a trace and compute its figures on the way; ``with_figures``: write figures.json too."""
    folder.mkdir(parents=True)
    writer = open_writer(folder, "trace", trace_format)
    accumulator = FiguresAccumulator()
    for row in rows:
        writer.add(*row)
        accumulator.add(*row)
    writer.close()
    figures = accumulator.figures()
    if with_figures:
        (folder / "figures.json").write_text(json.dumps(figures.to_json()), "utf-8")
    return figures
