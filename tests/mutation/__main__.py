"""Break a room's rules one at a time, and see whether its fast tests notice.

    ./dev mutate coordinator --count 100 --seed 1       a sample of one room
    ./dev mutate figures --only groupstorm/figures/lag.py
    ./dev mutate storms --only groupstorm/storms/world/clock.py --tests tests/storms/test_clock.py

Each mutation is a run of the room's fast tests up to the first failure; no file is changed. What survives is
printed: a rule that no test holds, or a change that makes no difference, which a reader has to tell apart.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.mutation.mutations import Mutation, mutations
from tests.mutation.rooms import ROOMS, ROOT
from tests.mutation.swap import VARIABLE

#: A mutation may make tests run for ever: they get this many times what the unchanged ones take.
_PATIENCE: Final = 5


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("room", metavar="ROOM", choices=sorted(ROOMS), help=", ".join(ROOMS))
    parser.add_argument("--count", type=int, help="a sample of so many mutations (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed takes the same sample")
    parser.add_argument("--only", action="append", metavar="PATH", help="only files whose path starts so")
    parser.add_argument("--tests", action="append", metavar="PATH", help="these tests instead of the room's")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    options = parser.parse_args()
    if missing := [each for each in options.tests or () if not (ROOT / each).exists()]:
        parser.error(f"--tests {missing[0]}: there is no such file or folder")
    modules, tests = ROOMS[options.room]
    files = sorted({path for pattern in modules for path in ROOT.glob(pattern)})
    if options.only:
        files = [path for path in files if str(path.relative_to(ROOT)).startswith(tuple(options.only))]
    found = [(path, one) for path in files for one in mutations(path.read_text("utf-8"))]
    total = len(found)
    if options.count is not None and options.count < total:
        found = sorted(random.Random(options.seed).sample(found, options.count))
    print(f"{options.room}: {len(found)} of {total} mutations", flush=True)
    return _try(found, options.tests or tests, options.jobs)


def _try(found: Sequence[tuple[Path, Mutation]], tests: Sequence[str], jobs: int) -> int:
    started = time.monotonic()
    if not _pass(tests, None, None):
        print("the tests fail without a mutation", file=sys.stderr)
        return 2
    patience_s = 60 + _PATIENCE * (time.monotonic() - started)
    survived = 0
    with ThreadPoolExecutor(jobs) as threads:
        passing = threads.map(lambda each: _pass(tests, each, patience_s), found)
        for (path, mutation), passes in zip(found, passing, strict=True):
            if passes:
                survived += 1
                where = f"{path.relative_to(ROOT)}:{mutation.line}: {mutation.scope}"
                print(f"survived: {where}: {mutation.what}", flush=True)
    print(f"{survived} of {len(found)} survived")
    return 1 if survived else 0


def _pass(tests: Sequence[str], broken: tuple[Path, Mutation] | None, patience_s: float | None) -> bool:
    """Whether the tests pass in time."""
    variable = "" if broken is None else f"{broken[1].place}:{broken[0]}"
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutation.swap", "-p", "no:cacheprovider"]
    # pytest would load the package itself, past the swap, to rewrite the assertions of an installed plugin
    command.append("--assert=plain")
    running = subprocess.Popen(
        [*command, "-n", "0", "-x", "-q", *tests],
        cwd=ROOT,
        env={**os.environ, VARIABLE: variable},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return running.wait(patience_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


if __name__ == "__main__":
    sys.exit(main())
