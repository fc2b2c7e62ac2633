"""The outputs in docs/trace.md are what the commands print. GROUPSTORM_REWRITE=1 writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groupstorm.report.lanes.spans import Span
from tests.command import groupstorm
from tests.generated_pages import check_section
from tests.report.lanes.test_spans import roots

PAGE = "trace.md"
SIZE = ("--set", "members=6", "--set", "partitions=24")
BEGIN = ("--begin", "2026-01-31T12:00:00Z")


def printed(folder: Path, *words: str) -> str:
    result = groupstorm(*words, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout.rstrip("\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("documented")
    printed(folder, "run", "deploy-and-crash", "--variant", "cooperative", *SIZE, "--out", "run")
    return folder


def block(folder: Path, *words: str) -> str:
    return f"```\n$ groupstorm {' '.join(words)}\n{printed(folder, *words)}\n```"


def test_the_picture(folder: Path) -> None:
    check_section(PAGE, "timeline", block(folder, "trace", "run", "--timeline"))


def test_perfetto(folder: Path) -> None:
    check_section(PAGE, "perfetto", block(folder, "trace", "run", "--perfetto", "lanes.json.gz"))


def test_spans(folder: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install 'groupstorm[otel]'")
    found = [root for root in roots(folder / "run") if root.name == "rebalance session-expired"]
    cause = found[0].links[0]
    tree = "\n".join([*_lines(cause, 0), *_lines(found[0], 0)])
    shown = block(folder, "trace", "run", "--otlp", "spans.jsonl", *BEGIN)
    told = "One of the rebalances and its cause, each with its begin and its length in seconds:"
    check_section(PAGE, "otlp", f"{shown}\n\n{told}\n\n```\n{tree}\n```")


def _lines(span: Span, depth: int) -> Iterator[str]:
    """The first two members of a round stand for all."""
    lasted = (span.to_us - span.from_us) / 1e6
    yield f"{span.from_us / 1e6:10.3f} {lasted:8.3f}  {'  ' * depth}{span.name}"
    for child in span.children[: 2 if span.name.startswith("round") else None]:
        yield from _lines(child, depth + 1)
    if span.name.startswith("round") and len(span.children) > 2:
        yield f"{'':21}{'  ' * (depth + 1)}... and {len(span.children) - 2} more members"
