"""Runs cases on Kafka in a JVM with real clients and keeps their figures in measured.json:

    python -m tests.reality.measure [--case NAME]... [--with LIBRARY]... [--jobs N] [--again]

Runs that were measured are left out, unless --again is given. The virtual side is never kept: the page's test
computes it anew.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers import JVM, BrokerKind
from groupstorm.problems import ExpectedError
from groupstorm.storms.live.play import run_on
from groupstorm.storms.live.real_clients.libraries import library
from tests.reality.cases import BY_NAME, FIGURES, LIBRARIES, RUNS

MEASURED = Path(__file__).with_name("measured.json")

#: Case -> library -> the number of the run -> its figures and the machine's load at its end.
Measured = dict[str, dict[str, dict[str, dict[str, Any]]]]


def read_measured() -> Measured:
    found: Measured = json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}
    return found


def measure(case: str, name: str, run: int, folder: Path) -> dict[str, Any]:
    """The figures of one real run. Raises ExpectedError."""
    library(name).check_installed()
    real = run_on(BY_NAME[case].scenario(name, run), folder, "jsonl", BrokerKind(JVM), clients=library(name))
    figures = real.figures.to_json()
    return {"load": round(os.getloadavg()[0], 1)} | {figure: figures[figure] for figure in FIGURES}


def _wanted(chosen: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    measured = {} if chosen.again else read_measured()
    for run in range(RUNS):
        for case in BY_NAME.values():
            for name in case.libraries:
                if (
                    (not chosen.case or case.name in chosen.case)
                    and (not chosen.libraries or name in chosen.libraries)
                    and str(run) not in measured.get(case.name, {}).get(name, {})
                ):
                    yield case.name, name, run


def _keep(case: str, name: str, run: int, found: dict[str, Any]) -> None:
    measured = read_measured()
    measured.setdefault(case, {}).setdefault(name, {})[str(run)] = found
    MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=sorted(BY_NAME))
    parser.add_argument("--with", action="append", dest="libraries", choices=LIBRARIES)
    parser.add_argument("--again", action="store_true")
    parser.add_argument(
        "--jobs", type=int, default=1, help="runs at a time; two disturb each other on two cores"
    )
    parser.add_argument("--traces", type=Path, help="keep the runs' folders here")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as temporary,
        ProcessPoolExecutor(chosen.jobs, multiprocessing.get_context("spawn")) as pool,
    ):
        runs: dict[Future[dict[str, Any]], tuple[str, str, int]] = {}
        for case, name, run in _wanted(chosen):
            folder = (chosen.traces or Path(temporary)) / f"{case} {name} {run}".replace(" ", "-")
            runs[pool.submit(measure, case, name, run, folder)] = (case, name, run)
        for done in as_completed(runs):
            case, name, run = runs[done]
            try:
                found = done.result()
            except ExpectedError as problem:
                print(f"{case}, {name}, {run}: {problem}", flush=True)
                continue
            print(f"{case}, {name}, {run}: load {found['load']}", flush=True)
            _keep(case, name, run, found)


if __name__ == "__main__":
    main()
