"""The examples in the docstrings and in docs/library.md print what they say."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import groupstorm
from groupstorm import library
from groupstorm.library import comparison, run_result, sweep_result
from tests.generated_pages import DOCS

MODULES = (library, comparison, run_result, sweep_result)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The examples need pandas and write into the current folder."""
    pytest.importorskip("pandas", reason="pip install 'groupstorm[pandas]'")
    pytest.importorskip("pyarrow", reason="pip install 'groupstorm[pandas]'")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_examples_of_a_module(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert (failed, tried > 1) == (0, True)


def test_the_examples_of_the_page() -> None:
    text = re.sub(r"^```.*$", "", (DOCS / "library.md").read_text("utf-8"), flags=re.MULTILINE)
    example = doctest.DocTestParser().get_doctest(text, {}, "library.md", "docs/library.md", 0)
    assert len(example.examples) > 10
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
    assert failed == 0


@pytest.mark.parametrize("function", [groupstorm.run, groupstorm.compare, groupstorm.sweep, groupstorm.read])
def test_the_page_has_the_parameters_of_each_function(function: Callable[..., Any]) -> None:
    page = " ".join((DOCS / "library.md").read_text("utf-8").split())
    parameters = inspect.signature(function).parameters.values()
    plain = inspect.Signature([one.replace(annotation=inspect.Parameter.empty) for one in parameters])
    assert f"`{function.__name__}{plain}`" in page
