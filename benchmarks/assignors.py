"""The time of a leader, ours beside Kafka's Java: subscriptions as bytes in, assignments as bytes out.

python -m benchmarks.assignors [--small] [--only WORD]... [--assignor NAME]... [--without-java]

The figures are CPU milliseconds, the least of ``--repeat`` runs: Kafka's of the calling thread, after a
warm-up, ours of the process; the two take turns. Three rounds follow one another in a group: empty start,
one more member, a tenth of the members gone. Our leader memory is empty before each empty start and warm
after it, as a leader's is; ``cold`` is a leader with an empty memory in each round. If Kafka has the
assignor, the answers must be equal, byte by byte, or the benchmark fails.
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

from benchmarks.assignorspeed.java import KAFKAS, JavaLeader, WarmUp, before_kafka_9987, digest
from benchmarks.assignorspeed.rounds import PHASES, BenchmarkGroup, Names, Round, Size, Subscribed
from groupstorm.assignors import registry
from groupstorm.assignors.leader import LeaderMemory, perform_assignment
from tests.oracle.build import Built, OracleUnavailable, build

_OURS = ("optimal-sticky", "constrained-cooperative-sticky", "two-phase-sticky", "stream-join-sticky")
_UNEQUAL = (*KAFKAS, "optimal-sticky")
#: Kafka's assignor that stands beside one of ours that Kafka does not have.
_PEER = {"optimal-sticky": "sticky"}

_MILLION = tuple(Size(2000, 1_000_000, topics, names) for topics in (500, 100) for names in Names)
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


class Times(NamedTuple):
    """Milliseconds of one phase; ``java`` None: not measured."""

    phase: str
    java: float | None
    ours: float
    cold: float


class Row(NamedTuple):
    """``memory_mib``: the peak above the input; ``equal``: None if Kafka has no such assignor."""

    size: Size
    assignor: str
    times: list[Times]
    memory_mib: float
    equal: bool | None


def measure(size: Size, name: str, repeat: int, java: JavaLeader | None) -> Row:
    """One assignor at one size."""
    group = BenchmarkGroup(size, registry.get(name))
    timed = group.timed()
    peer = name if name in KAFKAS else _PEER.get(name)
    equal: bool | None = None
    if java is None or peer is None:
        java = None
    else:
        # another assignor's history is not this one's
        asked = timed if peer == name else BenchmarkGroup(size, registry.get(peer)).timed()
        digests = java.load(peer, group.topics, {phase: round_.members for phase, round_ in asked.items()})
        if peer == name:
            equal = all(digests[phase] == digest(round_.answer) for phase, round_ in timed.items())
    memory_mib = _peak_mib(group)
    javas: dict[str, list[float]] = {phase: [] for phase in PHASES}
    ours: dict[str, list[float]] = {phase: [] for phase in PHASES}
    cold: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for _ in range(repeat):
        memory = LeaderMemory()
        for round_ in group.rounds:
            own_ms = _run_ms(group, round_, memory)
            if round_.phase is not None:
                ours[round_.phase].append(own_ms)
                cold[round_.phase].append(_run_ms(group, round_, LeaderMemory()))
                if java is not None:
                    javas[round_.phase].append(java.run_ms(round_.phase))
    times = [
        Times(phase, min(javas[phase], default=None), min(ours[phase]), min(cold[phase])) for phase in PHASES
    ]
    return Row(size, name, times, memory_mib, equal)


def _run_ms(group: BenchmarkGroup, round_: Round, memory: LeaderMemory) -> float:
    gc.collect()
    gc.freeze()  # so that the collector does not visit the benchmark's own objects during the measurement
    start = time.process_time_ns()
    answer = perform_assignment(group.assignor, group.topics, round_.members, memory)
    elapsed = time.process_time_ns() - start
    gc.unfreeze()
    if answer != round_.answer:
        raise AssertionError(f"{group.assignor.name} answers differently when asked again")
    return elapsed / 1e6


def _peak_mib(group: BenchmarkGroup) -> float:
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


def print_head() -> None:
    print(
        f"{'members x partitions, topics, subscriptions':<46}{'assignor':<31}{'CPU ms:':<12}"
        f"{'Java':>10}{'ours':>10}{'ratio':>8}{'cold':>10}{'ratio':>8}{'MiB':>7}  answer",
        flush=True,
    )


def print_row(row: Row) -> None:
    answer = {None: "", True: "equal", False: "DIFFERENT"}[row.equal]
    if row.equal is None and row.times[0].java is not None:
        answer = f"beside Kafka's {_PEER[row.assignor]}"
    title, about = f"{row.size!s:<46}{row.assignor:<31}", f"{row.memory_mib:>7.0f}  {answer}"
    for phase, java, ours, cold in row.times:
        if java is None:
            figures = f"{'':>10}{ours:>10.1f}{'':>8}{cold:>10.1f}{'':>8}"
        else:
            figures = f"{java:>10.1f}{ours:>10.1f}{ours / java:>8.2f}{cold:>10.1f}{cold / java:>8.2f}"
        print(f"{title}{phase:<12}{figures}{about}".rstrip(), flush=True)
        title, about = " " * len(title), ""


def print_documents(built: Built, java: JavaLeader, small: bool) -> None:
    """Print the figures that the design documents argue with, in Java both."""
    size = SMALL[0] if small else EQUAL[0]
    group = BenchmarkGroup(size, registry.get("sticky"))
    with JavaLeader(before_kafka_9987(built), java.warm_up) as old:
        old.load("sticky", group.topics, {phase: round_.members for phase, round_ in group.timed().items()})
        times = ", ".join(f"{phase} {old.run_ms(phase):,.1f}" for phase in PHASES)
    print(f"\nKAFKA-9987: sticky of kafka-clients 2.5.0, {size}: {times} ms")
    for members, partitions in ((10, 1000),) if small else ((2000, 200_000), (20, 200_000), (2, 100_000)):
        loop, sublist = java.sublist_ms(members, partitions)
        print(
            f"KAFKA-12464: phase 1 with {members:,} x {partitions:,}: "
            f"one by one {loop:,.1f} ms, subList and removeAll {sublist:,.1f} ms"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 if an answer differs from Kafka's."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="small groups and no long warm-up: a quick look")
    parser.add_argument("--only", action="append", default=[], help="sizes whose name contains this")
    parser.add_argument("--assignor", action="append", default=[], help="this one only")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds to warm up one round of Java")
    parser.add_argument("--without-java", action="store_true")
    options = parser.parse_args(arguments)
    warm_up = WarmUp(0.2 if options.small else 3.0, options.warm_up)
    built = None if options.without_java else _find_java()
    equal = True
    with ExitStack() as stack:
        java = None if built is None else stack.enter_context(JavaLeader(built, warm_up))
        print_head()
        for size in SMALL if options.small else (*EQUAL, *UNEQUAL):
            if not all(word in str(size) for word in options.only):
                continue
            for name in _assignors(size, options.assignor):
                row = measure(size, name, options.repeat, java)
                print_row(row)
                equal = equal and row.equal is not False
        if built is not None and java is not None and not options.only and not options.assignor:
            print_documents(built, java, options.small)
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
