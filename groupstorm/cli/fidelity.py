"""`groupstorm compare --on`: the same scenario in virtual time and against a broker, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from groupstorm.cli.failed_runs import require_invariants
from groupstorm.cli.printing import print_grid, print_json, print_line, print_paragraph
from groupstorm.clients.brokers import BrokerKind
from groupstorm.report.grid import Grid, Row
from groupstorm.report.tables import brief
from groupstorm.storms.live.play import run_on
from groupstorm.storms.live.real_clients.libraries import Library
from groupstorm.storms.runs.run import run
from groupstorm.storms.runs.run_folder import write_json
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.verdicts.agreement import Judged, agreement_answer, judge

FIDELITY_FILE = "fidelity.json"


def compare_with_broker(
    variants: Mapping[str, ResolvedScenario],
    kind: BrokerKind,
    folder: Path,
    trace_format: str,
    as_json: bool,
    options: Sequence[str],
    clients: Library | None = None,
) -> None:
    """Run each variant both ways; files: one folder per variant and way, and fidelity.json.

    ``options``: the words of the command line that name the broker and the clients.
    """
    content = {}
    for name, scenario in variants.items():
        virtual = run(scenario, folder / name / "virtual", trace_format)
        real = run_on(scenario, folder / name / "real", trace_format, kind, clients=clients)
        judged = judge(virtual.figures, real.figures)
        content[name] = {
            "virtual": virtual.figures.to_json(),
            "real": real.figures.to_json(),
            "agrees": {one.figure: one.agrees for one in judged},
            "answer": agreement_answer(judged),
        }
        if not as_json:
            print_grid(_grid(f"{scenario.name} ({name}), seed {scenario.seed}", kind, judged))
            print_paragraph(agreement_answer(judged))
        require_invariants([virtual])
        require_invariants([real], options)
    write_json(folder / FIDELITY_FILE, {"on": kind.name, "variants": content})
    if as_json:
        print_json({"on": kind.name, "variants": content})
    else:
        print()
        print_line(f"Files in {folder}")


def _grid(title: str, kind: BrokerKind, judged: list[Judged]) -> Grid:
    rows = [
        Row(
            one.figure,
            (brief(one.figure, one.virtual), brief(one.figure, one.real), "" if one.agrees else "differs"),
        )
        for one in judged
    ]
    return Grid(("figure", "virtual", kind.name, ""), rows, title, left=frozenset({2}))
