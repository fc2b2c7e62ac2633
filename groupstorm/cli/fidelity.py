"""`groupstorm compare --on`: the same scenario in virtual time and against a broker, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from groupstorm.clients.brokers import BrokerKind
from groupstorm.report.tables import shown
from groupstorm.storms.figures.agreement import Judged, agreement_answer, judge
from groupstorm.storms.live.run import run_on
from groupstorm.storms.run import require_invariants, run, write_json
from groupstorm.storms.scenario import ResolvedScenario

FIDELITY_FILE = "fidelity.json"


def compare_with_broker(
    variants: Mapping[str, ResolvedScenario],
    kind: BrokerKind,
    folder: Path,
    trace_format: str,
    console: Console,
    as_json: bool,
) -> None:
    """Run each variant both ways; files: one folder per variant and way, and fidelity.json."""
    content = {}
    for name, scenario in variants.items():
        virtual = run(scenario, folder / name / "virtual", trace_format)
        real = run_on(scenario, folder / name / "real", trace_format, kind)
        judged = judge(virtual.figures, real.figures)
        content[name] = {
            "virtual": virtual.figures.to_json(),
            "real": real.figures.to_json(),
            "agrees": {one.figure: one.agrees for one in judged},
            "answer": agreement_answer(judged),
        }
        console.print(_table(f"{scenario.name} ({name}), seed {scenario.seed}", kind, judged))
        console.print(agreement_answer(judged))
        for finished in (virtual, real):
            require_invariants(finished)
    write_json(folder / FIDELITY_FILE, {"on": kind.name, "variants": content})
    if as_json:
        print(json.dumps({"on": kind.name, "variants": content}, ensure_ascii=False))
    else:
        console.print(f"\nFiles in {folder}", highlight=False)


def _table(title: str, kind: BrokerKind, judged: list[Judged]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in ("figure", "virtual", kind.name, ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    for one in judged:
        table.add_row(one.figure, shown(one.virtual), shown(one.real), "" if one.agrees else "differs")
    return table
