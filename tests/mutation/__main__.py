"""Break a room's rules one at a time, and see whether its fast tests notice.

    ./dev mutate                                   all rooms, and a table
    ./dev mutate coordinator --count 100 --seed 1  a sample of one room
    ./dev mutate figures --only groupstorm/figures/lag.py
    ./dev mutate storms --only groupstorm/storms/world/clock.py --tests tests/storms/test_clock.py

Each mutation runs in a forked process; no file is changed. Only the tests that execute the mutated lines
run, the fastest first (each test file is traced once, the result is kept in .mutation-cache). A mutation
survives if all of them pass, or if no test executes it. `equivalent.txt` names those that change nothing,
with the reason; a sample does not try them.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutation.mutations import Mutation, mutations
from tests.mutation.recording import CACHE, Recorded
from tests.mutation.rooms import ROOMS, ROOT
from tests.mutation.trying import (
    CANNOT_SWAP,
    TestsFail,
    Trial,
    import_outside,
    record,
    try_imported,
    try_swapped,
)

EQUIVALENT: Final = Path(__file__).with_name("equivalent.txt")


class Outcome(NamedTuple):
    """Of a room: the mutations tried, the survivors (with a remark), and how many are known as equivalent."""

    tried: int
    survivors: list[str]
    equivalent: int

    def row(self, room: str) -> str:
        rules = self.tried - self.equivalent
        share = 100 * len(self.survivors) / max(rules, 1)
        return f"{room:<12} {self.tried:>9} {len(self.survivors):>9} {share:>8.1f} {self.equivalent:>10}"


HEAD: Final = f"{'room':<12} {'mutations':>9} {'survived':>9} {'per cent':>8} {'equivalent':>10}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    left_out = "; ".join(
        f"{name}: {', '.join(room.left_out)}" for name, room in ROOMS.items() if room.left_out
    )
    parser.epilog = f"Left out, since only slow tests run them:\n  {left_out}"
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(ROOMS)} (default: all)")
    parser.add_argument("--count", type=int, help="a sample of so many mutations per room (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed takes the same sample")
    parser.add_argument("--only", action="append", metavar="PATH", help="only files whose path starts so")
    parser.add_argument(
        "--tests",
        action="append",
        metavar="PATH",
        help="only these tests: quick, but others of the room may notice what survives",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    options = parser.parse_args()
    if unknown := sorted(set(options.rooms) - set(ROOMS)):
        parser.error(f"there is no room {unknown[0]!r}: the rooms are {', '.join(ROOMS)}")
    if missing := [each for each in options.tests or () if not (ROOT / each).exists()]:
        parser.error(f"--tests {missing[0]}: there is no such file or folder")
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(2))  # and end what was started
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode = False  # mutated modules have no bytecode; all others are read from here
    sys.pycache_prefix = str(CACHE / "bytecode")
    outcomes = {}
    for name in options.rooms or ROOMS:
        try:
            outcomes[name] = _measure(name, options)
        except TestsFail as problem:
            print(problem, file=sys.stderr)
            return 2
    print("\n".join((HEAD, *(outcome.row(name) for name, outcome in outcomes.items()))))
    return 1 if any(outcome.survivors for outcome in outcomes.values()) else 0


def _measure(name: str, options: argparse.Namespace) -> Outcome:
    found = [
        (path, mutation)
        for path in ROOMS[name].files()
        if options.only is None or str(path.relative_to(ROOT)).startswith(tuple(options.only))
        for mutation in mutations(path.read_text("utf-8"))
    ]
    total = len(found)
    if options.count is not None and options.count < total:
        found = sorted(random.Random(options.seed).sample(found, options.count))
    print(f"{name}: {len(found)} of {total} mutations", flush=True)
    room = ROOMS[name] if options.tests is None else ROOMS[name]._replace(tests=tuple(options.tests))
    recorded = record(name, room, options.jobs)
    known, excused, survivors = equivalent(), [], []
    rules = found
    if options.count is not None:  # a run of all finds out which of the equivalent ones are noticed
        rules = [each for each in found if named(*each) not in known]
        excused = [named(*each) for each in found if named(*each) in known]
    codes = _try(rules, recorded, options.jobs)
    for at, (path, mutation) in enumerate(rules):
        what = named(path, mutation)
        if codes.get(at, 0) != 0:
            continue
        if what in known:
            excused.append(what)
            continue
        remark = "" if at in codes else "  (no test runs this line)"
        survivors.append(named(path, mutation, mutation.line) + remark)
    if options.count is None:
        tried = {str(path.relative_to(ROOT)) for path, _mutation in found}
        for each in sorted(known - set(excused)):
            if each.partition(":")[0] in tried:
                print(f"{EQUIVALENT.name} is out of date: noticed, or gone: {each}", file=sys.stderr)
    print("".join(f"survived: {each}\n" for each in survivors), end="", flush=True)
    return Outcome(len(found), survivors, len(excused))


def _try(
    found: Sequence[tuple[Path, Mutation]], recorded: Mapping[Path, Recorded], jobs: int
) -> dict[int, int]:
    """The exit code of the tests per mutation; without one: no test runs it."""
    import_outside(sorted({name for each in recorded.values() for name in each.modules}))
    swapped: dict[int, Trial] = {}
    imported: dict[int, Trial] = {}
    for at, (path, mutation) in enumerate(found):
        at_import = any(_touches(each.at_import, path, mutation) for each in recorded.values())
        tests = _tests_of_module(path, recorded) if at_import else _tests_of_lines(path, mutation, recorded)
        if tests:
            (imported if at_import else swapped)[at] = Trial(path, mutation, tests)
    codes: dict[int, int] = {}
    if swapped:
        modules = sorted({_module(trial.path) for trial in swapped.values()})
        files = [path for path, each in recorded.items() if each.lines]
        answers = _Answers(codes, swapped, len(found))
        try_swapped(list(swapped.values()), files, modules, jobs, answers)
    imported |= {at: trial for at, trial in swapped.items() if codes.get(at, CANNOT_SWAP) == CANNOT_SWAP}
    try_imported(list(imported.values()), jobs, _Answers(codes, imported, len(found)))
    return codes


class _Answers:
    """Takes the exit codes of trials, by their places among the mutations, and says on standard error how far
    it is: each survivor as soon as it is known."""

    def __init__(self, codes: dict[int, int], trials: Mapping[int, Trial], total: int) -> None:
        self._codes, self._trials, self._total = codes, trials, total
        self._order = list(trials)

    def __call__(self, number: int, code: int) -> None:
        at = self._order[number]
        self._codes[at] = code
        trial = self._trials[at]
        if code == 0:
            print("...", named(trial.path, trial.mutation, trial.mutation.line), file=sys.stderr, flush=True)
        if len(self._codes) % 20 == 0:
            print(f"... {len(self._codes)} of {self._total}", file=sys.stderr, flush=True)


def named(path: Path, mutation: Mutation, line: int | None = None) -> str:
    where = str(path.relative_to(ROOT)) if line is None else f"{path.relative_to(ROOT)}:{line}"
    return f"{where}: {mutation.scope}: {mutation.what}"


def _touches(lines: Mapping[str, Sequence[int]], path: Path, mutation: Mutation) -> bool:
    return any(line in mutation.lines for line in lines.get(str(path), ()))


def _tests_of_lines(path: Path, mutation: Mutation, recorded: Mapping[Path, Recorded]) -> dict[str, float]:
    """The tests that execute the mutated lines, the fastest first."""
    found = {
        test: each.seconds[test]
        for each in recorded.values()
        for test, lines in each.lines.items()
        if _touches(lines, path, mutation)
    }
    return dict(sorted(found.items(), key=lambda pair: (pair[1], pair[0])))


def _tests_of_module(path: Path, recorded: Mapping[Path, Recorded]) -> dict[str, float]:
    """All tests of the files that import the module: first those whose tests execute any of its lines, the
    fastest first."""
    importing = [each for each in recorded.values() if str(path) in each.at_import]
    importing.sort(
        key=lambda each: (
            not any(str(path) in lines for lines in each.lines.values()),
            sum(each.seconds.values()),
        )
    )
    return {test: each.seconds[test] for each in importing for test in each.lines}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def equivalent() -> set[str]:
    """The mutations that change nothing: "path: scope: before -> after", whatever the line."""
    lines = EQUIVALENT.read_text("utf-8").splitlines()
    return {line.partition("  #")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


if __name__ == "__main__":
    sys.exit(main())
