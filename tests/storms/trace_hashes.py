"""Hashes of every preset's and variant's files, to compare a rebuilding with an earlier commit.

    python -m tests.storms.trace_hashes                    # of this checkout
    python -m tests.storms.trace_hashes --against HEAD~5   # of both; exit 1 if a file differs

One line a file: preset/variant, seed, file, SHA-256. The runs go through the command line alone, so that
the same script hashes any commit of the project.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ("trace.jsonl", "scenario.yaml", "figures.json")
SCENARIOS = sorted(path.stem for path in (ROOT / "groupstorm/storms/presets").glob("*.yaml"))
ALL_STEPS = ROOT / "tests/storms/all-steps.yaml"


def hashes(checkout: Path, seeds: int) -> list[str]:
    """The lines of one checkout, in the order of the presets' names."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for scenario in [*SCENARIOS, str(ALL_STEPS)]:
            for seed in range(seeds):
                out = Path(folder) / f"{Path(scenario).stem}-{seed}"
                _compare(checkout, scenario, seed, out)
                for path in sorted(out.glob("*/*")):
                    if path.name in FILES:
                        digest = hashlib.sha256(path.read_bytes()).hexdigest()
                        lines.append(f"{out.name} {path.parent.name} {path.name} {digest}")
    return lines


def _compare(checkout: Path, scenario: str, seed: int, out: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "groupstorm",
        "compare",
        scenario,
        "--seed",
        str(seed),
        "--out",
        str(out),
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:  # 1: an invariant broke, which some scenarios show
        sys.exit(f"{' '.join(command)}\n{done.stderr}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT", help="compare with the files of this commit")
    parser.add_argument("--seeds", type=int, default=1, help="seeds 0 to N-1 of each preset")
    options = parser.parse_args()
    present = hashes(ROOT, options.seeds)
    if options.against is None:
        print("\n".join(present))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        older = Path(folder) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(older), options.against], check=True)
        try:
            before = hashes(older, options.seeds)
        finally:
            subprocess.run([*git, "remove", "--force", str(older)], check=True)
    changed = list(difflib.unified_diff(before, present, options.against, "this checkout", lineterm="", n=0))
    print("\n".join(changed) if changed else f"{len(present)} files, all equal to those of {options.against}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
