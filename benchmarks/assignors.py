"""How long a leader thinks, ours beside Kafka's Java: subscriptions as bytes in, assignments as bytes out.

    python -m benchmarks.assignors [--small] [--only WORD]... [--assignor NAME]... [--repeat 5] [--without-java]

CPU milliseconds, the least of ``--repeat`` runs: Kafka's of the calling thread, warmed up, ours of the
process; the two take turns. Three rounds follow one another in a group: empty start, one more
member, a tenth of the members gone. Our memory of earlier rounds starts empty with each empty start
and is warm after it, as a leader's is; ``cold`` is a leader who takes over and has seen nothing.
Where Kafka has the assignor, the answers must be equal, byte by byte, or the benchmark fails.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.assignorspeed.java import KAFKAS, JavaLeader, before_kafka_9987, digest
from benchmarks.assignorspeed.rounds import PHASES, Group, Names, Round, Size, Subscribed
from groupstorm.assignors import registry
from groupstorm.assignors.leader import perform_assignment
from groupstorm.assignors.leadermemory import LeaderMemory
from tests.oracle.build import Built, OracleUnavailable, build

_OURS = ("optimal-sticky", "constrained-cooperative-sticky", "two-phase-sticky", "stream-join-sticky")
_UNEQUAL = (*KAFKAS, "optimal-sticky")
#: Whom we compare an assignor with that Kafka does not have.
_PEER = {"optimal-sticky": "sticky"}

_MILLION = (
    Size(2000, 1_000_000, 500),
    Size(2000, 1_000_000, 500, Names.SCATTERED),
    Size(2000, 1_000_000, 100),
)
EQUAL = (Size(2100, 2100, 1), Size(2000, 200_000, 200), *_MILLION)
UNEQUAL = tuple(
    Size(members, partitions, topics, subscribed=subscribed)
    for subscribed in (Subscribed.BUT_ONE, Subscribed.RANDOM)
    for members, partitions, topics in ((200, 2000, 20), (1000, 10_000, 100), (2000, 20_000, 200))
)
SMALL = (
    Size(210, 210, 1),
    Size(200, 10_000, 50),
    Size(200, 10_000, 50, Names.SCATTERED),
    Size(50, 500, 10, subscribed=Subscribed.RANDOM),
)


class Row(NamedTuple):
    """Milliseconds per phase; ``java`` None: not measured; ``memory_mib``: the peak above the input."""

    size: Size
    assignor: str
    java: list[float] | None
    ours: list[float]
    cold: list[float]
    memory_mib: float
    equal: bool | None


def measure(size: Size, name: str, repeat: int, java: JavaLeader | None, patience_s: float) -> Row:
    """One line of the table."""
    group = Group(size, registry.get(name))
    timed = {round_.phase: round_ for round_ in group.rounds if round_.phase is not None}
    peer = name if name in KAFKAS else _PEER.get(name)
    equal: bool | None = None
    if java is not None and peer is not None:
        # another assignor's history is not this one's
        asked = timed if peer == name else _timed(Group(size, registry.get(peer)))
        digests = java.load(peer, group.topics, {phase: round_.members for phase, round_ in asked.items()})
        if peer == name:
            equal = all(digests[phase] == digest(round_.answer) for phase, round_ in timed.items())
    memory_mib = _peak_mib(group)
    ours: dict[str, list[float]] = {phase: [] for phase in PHASES}
    cold: dict[str, list[float]] = {phase: [] for phase in PHASES}
    javas: dict[str, list[float]] = {phase: [] for phase in PHASES}
    start = time.monotonic()
    for turn in range(repeat):
        memory = LeaderMemory()
        for round_ in group.rounds:
            if round_.phase is None:
                _run_ms(group, round_, memory)
                continue
            if java is not None and peer is not None:
                if not turn or time.monotonic() - start < patience_s * 2:
                    javas[round_.phase].append(java.run_ms(round_.phase))
            ours[round_.phase].append(_run_ms(group, round_, memory))
            cold[round_.phase].append(_run_ms(group, round_, LeaderMemory()))
    return Row(
        size,
        name,
        [min(javas[phase]) for phase in PHASES] if java is not None and peer is not None else None,
        [min(ours[phase]) for phase in PHASES],
        [min(cold[phase]) for phase in PHASES],
        memory_mib,
        equal,
    )


def _timed(group: Group) -> dict[str, Round]:
    return {round_.phase: round_ for round_ in group.rounds if round_.phase is not None}


def _run_ms(group: Group, round_: Round, memory: LeaderMemory) -> float:
    gc.collect()
    start = time.process_time_ns()
    answer = perform_assignment(group.assignor, group.topics, round_.members, memory)
    elapsed = time.process_time_ns() - start
    if answer != round_.answer:
        raise AssertionError(f"{group.assignor.name} answers differently when asked again")
    return elapsed / 1e6


def _peak_mib(group: Group) -> float:
    """The most that all rounds with one memory take, the subscriptions that come in not counted."""
    gc.collect()
    tracemalloc.start()
    try:
        memory = LeaderMemory()
        for round_ in group.rounds:
            perform_assignment(group.assignor, group.topics, round_.members, memory)
        return tracemalloc.get_traced_memory()[1] / (1 << 20)
    finally:
        tracemalloc.stop()


# --- what is printed ---------------------------------------------------------------------------------

_HEAD = f"{'members x partitions, topics, subscriptions':<47}{'assignor':<31}"


def print_head() -> None:
    phases = "".join(f"{phase + ': Java':>18}{'ours':>9}{'cold':>9}{'ratio':>7}" for phase in PHASES)
    print(f"{_HEAD}{phases}{'MiB':>7}  answer", flush=True)


def print_row(row: Row) -> None:
    cells = ""
    for place in range(len(PHASES)):
        java = None if row.java is None else row.java[place]
        ratio = "" if java is None else f"{row.ours[place] / java:.2f}"
        cells += f"{'' if java is None else f'{java:.1f}':>18}{row.ours[place]:>9.1f}"
        cells += f"{row.cold[place]:>9.1f}{ratio:>7}"
    answer = {None: "", True: "equal", False: "DIFFERENT"}[row.equal]
    if row.equal is None and row.java is not None:
        answer = f"beside Kafka's {_PEER[row.assignor]}"
    print(f"{row.size!s:<47}{row.assignor:<31}{cells}{row.memory_mib:>7.0f}  {answer}", flush=True)


def print_documents(built: Built, java: JavaLeader, patience_s: float, small: bool) -> None:
    """What the design documents argue with, in Java both."""
    old_size = SMALL[0] if small else EQUAL[0]
    group = Group(old_size, registry.get("sticky"))
    with JavaLeader(before_kafka_9987(built), patience_s) as old:
        old.load("sticky", group.topics, {phase: rnd.members for phase, rnd in _timed(group).items()})
        times = ", ".join(f"{phase} {old.run_ms(phase):,.1f}" for phase in PHASES)
    print(f"\nKAFKA-9987: sticky of kafka-clients 2.5.0, {old_size}: {times} ms")
    for members, partitions in ((10, 1000),) if small else ((2000, 200_000), (20, 200_000), (2, 100_000)):
        loop, sublist = java.sublist_ms(members, partitions)
        print(
            f"KAFKA-12464: phase 1 with {members:,} x {partitions:,}: "
            f"one by one {loop:,.1f} ms, subList and removeAll {sublist:,.1f} ms"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 where an answer is not Kafka's."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="small groups only, for a quick look")
    parser.add_argument("--only", action="append", default=[], help="sizes whose name contains this")
    parser.add_argument("--assignor", action="append", default=[], help="this one only")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--patience", type=float, default=10.0, help="seconds for warming up one round of Java"
    )
    parser.add_argument("--without-java", action="store_true")
    options = parser.parse_args(arguments)
    built = None if options.without_java else _find_java()
    equal = True
    with ExitStack() as stack:
        java = None if built is None else stack.enter_context(JavaLeader(built, options.patience))
        print_head()
        for size in SMALL if options.small else (*EQUAL, *UNEQUAL):
            if not all(word in str(size) for word in options.only):
                continue
            for name in _assignors(size, options.assignor):
                row = measure(size, name, options.repeat, java, options.patience)
                print_row(row)
                equal = equal and row.equal is not False
        if built is not None and java is not None and not options.only and not options.assignor:
            print_documents(built, java, options.patience, options.small)
    return 0 if equal else 1


def _assignors(size: Size, chosen: Sequence[str]) -> Iterable[str]:
    every = (*KAFKAS, *_OURS) if size.subscribed is Subscribed.EQUAL else _UNEQUAL
    return [name for name in every if not chosen or name in chosen]


def _find_java() -> Built | None:
    try:
        return build()
    except OracleUnavailable as problem:
        print(f"ours alone: {problem}", file=sys.stderr)
        return None


if __name__ == "__main__":
    sys.exit(main())
