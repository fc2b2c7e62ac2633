"""Hashes of everything that users see, to compare a rebuilding with an earlier commit.

    python -m tests.output_hashes                          # of this checkout, a line an output
    python -m tests.output_hashes --against HEAD~5         # of both; exit 1 if an output differs
    python -m tests.output_hashes --only rolling-deploy    # of the sources with this word in their names

A source is a preset with all its variants, a scenario file of the tests, or a recorded import. It is run or
imported through the command line alone, so that the same script hashes any commit, and looked at with every
command that reads traces: computed and exact runs, figures, tables, pages, stories, explanations, replays.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.command import groupstorm

ROOT = Path(__file__).resolve().parents[1]
PRESETS = sorted(path.stem for path in (ROOT / "groupstorm/storms/presets").glob("*.yaml"))
SCENARIOS = {
    path.stem if path.parent.name == "storms" else f"{path.parent.name}-{path.stem}": path
    for path in sorted((ROOT / "tests/storms").rglob("*.yaml"))
}
RECORDINGS = {
    path.name: path for path in sorted((ROOT / "tests/imports/logs/real").iterdir()) if path.is_dir()
}
#: Files with measured times, which differ from run to run.
MEASURED = frozenset({"measured.json"})
_ELAPSED = re.compile(r" in [\d.,]+ s(?=; files in )")


def hashes_of(source: str, folder: Path) -> list[str]:
    """The lines of one source, whose runs are written below ``folder``."""
    lines = list(_imported(source, folder) if source in RECORDINGS else _compared(source, folder))
    print(f"{source}: {len(lines)} outputs", file=sys.stderr, flush=True)
    return [f"{source} {line}" for line in lines]


def _compared(source: str, folder: Path) -> Iterator[str]:
    asked = source
    if source in SCENARIOS:
        asked = f"{source}.yaml"
        shutil.copy(SCENARIOS[source], folder / asked)
    yield _answer(folder, "compare", asked, "--all", "--out", "computed")
    yield _answer(folder, "compare", asked, "--all", "--out", "exact", "--exact")
    for run in sorted(path.parent.name for path in (folder / "computed").glob("*/trace.jsonl")):
        computed, exact = (_digest(folder / mode / run / "trace.jsonl") for mode in ("computed", "exact"))
        yield f"{run} exact = computed: {computed == exact}"
    yield from _looked_at("computed", folder)


def _imported(source: str, folder: Path) -> Iterator[str]:
    shutil.copytree(RECORDINGS[source], folder / "logs")
    logs = sorted(f"logs/{path.name}" for path in (folder / "logs").glob("*.log.gz"))
    yield _answer(folder, "import", *logs, "--out", "imported", "--unknown")
    yield from _looked_at("imported", folder)


def _looked_at(whole: str, folder: Path) -> Iterator[str]:
    """The files of a comparison or an import, and what each command says of it and of its runs."""
    for file in sorted((folder / whole).rglob("*")):
        if file.is_file() and file.name not in MEASURED:
            yield f"{file.relative_to(folder)} {_digest(file)}"
    yield _answer(folder, "analyze", whole, "--all", "--slowest", "20", "--out", "tables")
    for table in sorted((folder / "tables").rglob("*.parquet")):
        yield f"{table.relative_to(folder)} {_digest(table)}"
    yield _answer(folder, "report", whole, "-o", "report.html")
    yield f"report.html {_digest(folder / 'report.html')}"
    for trace in sorted((folder / whole).rglob("trace.jsonl")):
        run = str(trace.parent.relative_to(folder))
        yield _answer(folder, "trace", run)
        yield _answer(folder, "explain", run, "--all")
        yield _answer(folder, "watch", run, "--once", "--json", "--window", "1h", "--checkpoint", "watched")
        shutil.rmtree(folder / "watched", ignore_errors=True)
        yield _answer(folder, "whatif", run, "--seeds", "1", "--all", "--out", f"replayed/{run}")


def _answer(folder: Path, *arguments: str) -> str:
    """The exit code and the hash of what a command prints; of a refusal that of its reason."""
    done = groupstorm(*arguments, cwd=folder)
    printed = _ELAPSED.sub("", done.stdout or done.stderr)
    return f"{' '.join(arguments)} [{done.returncode}] {hashlib.sha256(printed.encode()).hexdigest()[:16]}"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else "absent"


def hashes(only: str) -> list[str]:
    sources = [source for source in [*PRESETS, *SCENARIOS, *RECORDINGS] if only in source]

    def one(source: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            return hashes_of(source, Path(folder))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for lines in pool.map(one, sources) for line in lines]


def hashes_at(commit: str, only: str) -> list[str]:
    """Return the hashes of an earlier commit, by this file."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(checkout), commit], check=True)
        try:
            done = subprocess.run(
                [sys.executable, __file__, "--only", only],
                cwd=checkout,
                env={**os.environ, "PYTHONPATH": str(checkout)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        finally:
            subprocess.run([*git, "remove", "--force", str(checkout)], check=True)
        return done.stdout.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT", help="compare with the outputs of this commit")
    parser.add_argument("--only", default="", help="the sources whose names contain this word")
    options = parser.parse_args()
    present = hashes(options.only)
    if options.against is None:
        print("\n".join(present))
        return 0
    before = hashes_at(options.against, options.only)
    changed = list(difflib.unified_diff(before, present, options.against, "this checkout", lineterm="", n=0))
    print(
        "\n".join(changed) if changed else f"{len(present)} outputs, all equal to those of {options.against}"
    )
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
