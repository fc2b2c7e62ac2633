"""The notebook of examples/ runs from top to bottom, and git has it without outputs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.command import ROOT

NOTEBOOK = ROOT / "examples" / "rebalance_costs.ipynb"


def test_it_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 4
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []


@pytest.mark.slow
def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ("ipykernel", "matplotlib", "nbclient", "nbformat", "pandas", "pyarrow"):
        pytest.importorskip(needed, reason="runs the notebook: pip install its set `test`, or use ./dev test")
    import nbclient
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()  # raises if a cell does
    outputs = {cell["id"]: cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"}
    assert "<caption>rolling-deploy, seeds 0 to 1</caption>" in shown(outputs["compare"], "text/html")
    assert "cooperative" in shown(outputs["figures"], "text/html")
    assert {name for name, each in outputs.items() if shown(each, "image/png")} == {
        "figures",
        "handovers",
        "knee",
    }
    assert shown(outputs["knee"], "text/plain").startswith(("20000", "30000", "40000", "50000", "60000"))
    assert "member-updated" in shown(outputs["rows"], "text/html")


def shown(outputs: list[Any], kind: str) -> str:
    """Return what the outputs of a cell show in a format."""
    return "".join(one["data"].get(kind, "") for one in outputs if "data" in one)
