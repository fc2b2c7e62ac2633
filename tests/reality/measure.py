"""Runs cases on Kafka in a JVM with real clients and keeps their figures in measured.json:

    python -m tests.reality.measure [--case NAME]... [--with LIBRARY]... [--again]

A case that was measured is left out, unless --again is given. The virtual side is never kept: the page's test
computes it anew.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers import JVM, BrokerKind
from groupstorm.problems import ExpectedError
from groupstorm.storms.live.play import run_on
from groupstorm.storms.live.real_clients.libraries import LIBRARIES, library
from tests.reality.cases import BY_NAME, Case

MEASURED = Path(__file__).with_name("measured.json")


def read_measured() -> dict[str, dict[str, Any]]:
    """Case -> library -> figures of the real run and the machine's load."""
    return json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}


def measure(case: Case, name: str, folder: Path) -> dict[str, Any]:
    """The figures of one real run. Raises ExpectedError."""
    library(name).check_installed()
    real = run_on(case.scenario(name, 0), folder, "jsonl", BrokerKind(JVM), clients=library(name))
    load = os.getloadavg()[0]
    return {"load": round(load, 1), "figures": real.figures.to_json()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=sorted(BY_NAME))
    parser.add_argument("--with", action="append", dest="libraries", choices=sorted(LIBRARIES))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--traces", type=Path, help="keep the runs' folders here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for case in BY_NAME.values():
            for name in case.libraries:
                if chosen.case and case.name not in chosen.case:
                    continue
                if chosen.libraries and name not in chosen.libraries:
                    continue
                if not chosen.again and name in read_measured().get(case.name, {}):
                    continue
                folder = (chosen.traces or Path(temporary)) / f"{case.name} {name}".replace(" ", "-")
                try:
                    found = measure(case, name, folder)
                except ExpectedError as problem:
                    print(f"{case.name}, {name}: {problem}", flush=True)
                    continue
                print(f"{case.name}, {name}: load {found['load']}", flush=True)
                measured = read_measured()
                measured.setdefault(case.name, {})[name] = found
                MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
