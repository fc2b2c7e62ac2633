"""`./dev oracle share-records`: the records of share groups against Kafka's own SharePartition."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.oracle.build import build_share_records
from tests.oracle.jvm import Jvm
from tests.oracle.running import Ask, Case, Progress, ahead, positive
from tests.oracle.share_partition import AskedPartition, Operation

KAFKA = "4.4.0"
_MEMBERS = ("a", "b", "c")
_OPERATIONS_MAX = 40
#: How often each operation is drawn.
_WEIGHTS = {
    "acquire": 32,
    "acknowledge": 32,
    "release": 5,
    "advance": 10,
    "log_start": 3,
    "persister": 6,
    "answer": 12,
}
_ERRORS = ("COORDINATOR_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--count", type=positive, default=1_000, help="cases (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which cases (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """0: no difference; 1: one at least, of which the first is printed."""
    progress = Progress(options.count, "cases")
    found: list[Difference] = []
    with Jvm(build_share_records(KAFKA), "share-records") as kafka:
        for done, difference in enumerate(compare(kafka.ask, options.count, options.seed), 1):
            found += [] if difference is None else [difference]
            progress(done, len(found))
    if found:
        print(f"{found[0]}\n")
    print(f"Kafka {KAFKA}'s SharePartition and ours, seed {options.seed}: {len(found)} differ")
    return 1 if found else 0


class Difference(NamedTuple):
    """The answers to an operation that differ; of the case the part up to there."""

    case: Case
    kafkas: Any
    ours: Any

    def __str__(self) -> str:
        return "\n".join(
            (json.dumps(self.case), f"Kafka: {json.dumps(self.kafkas)}", f"ours:  {json.dumps(self.ours)}")
        )


def compare(ask: Ask, count: int, seed: int) -> Iterator[Difference | None]:
    """The cases of a seed on both sides, one after the other."""
    for cases, answers in ahead(ask, (draw(seed, number) for number in range(count))):
        own = [play(case) for case in cases]
        for case, ours, kafkas in zip(cases, own, answers.result(), strict=True):
            yield _difference(case, kafkas["answers"], ours)


def _difference(case: Case, kafkas: list[Any], ours: list[Any]) -> Difference | None:
    for index, (theirs, own) in enumerate(zip(kafkas, ours, strict=True)):
        if theirs != own:
            return Difference({**case, "ops": case["ops"][:index]}, theirs, own)
    return None


def play(case: Case) -> list[Any]:
    """Our answers: after the partition was loaded, and after each operation."""
    partition = AskedPartition(case)
    answers = [partition.state("loaded")]
    for index, operation in enumerate(case["ops"]):
        answers.append(partition.state(partition.work(index, operation)))
    return answers


def draw(seed: int, number: int) -> Case:
    """A case. Its operations follow our partition, so that most of them are about records that are held."""
    drawn = random.Random(f"{seed}-{number}")
    limit = drawn.choice((2, 3, 5, 6))
    case: Case = {
        "limit": limit,
        "locks": drawn.choice((8, 25, 200)),
        "lock_ms": 30_000,
        "dead_letters": drawn.random() < 0.5,
        "stored": _stored(drawn, limit),
        "ops": [],
    }
    partition, log = AskedPartition(case), _Log(drawn, case["stored"]["start"])
    for index in range(drawn.randrange(5, _OPERATIONS_MAX)):
        operation = _operation(drawn, partition, log)
        case["ops"].append(operation)
        partition.work(index, operation)
    return case


def _stored(drawn: random.Random, limit: int) -> dict[str, Any]:
    start = drawn.choice((0, 0, 7))
    batches, first = [], start
    for _ in range(drawn.choice((0, 0, 0, 2, 5))):
        first += drawn.choice((0, 0, 0, 3))
        last = first + drawn.randrange(6)
        state = drawn.choice(("AVAILABLE", "AVAILABLE", "ACKNOWLEDGED", "ARCHIVED", "ARCHIVING"))
        batches.append([first, last, state, drawn.randint(1, limit - 1 if state == "AVAILABLE" else limit)])
        first = last + 1
    return {"start": start, "batches": batches}


class _Log:
    """The batches of a log, which grows as it is read: first and last offset, the producer of a transaction,
    and ABORT or COMMIT where the batch ends that."""

    def __init__(self, drawn: random.Random, start: int) -> None:
        self._drawn = drawn
        self.batches: list[list[Any]] = []
        self.end = start
        self._has_transactions = drawn.random() < 0.4
        #: The first offset of each open transaction by its producer, and the aborted ones with their ends.
        self._open: dict[int, int] = {}
        self._aborted: list[tuple[int, int, int]] = []

    def read(self, offset: int) -> tuple[list[list[Any]], list[list[int]]]:
        """A few batches from the one that holds the offset, or follows it, and the aborted transactions
        that end behind it."""
        most = self._drawn.randint(1, 4)
        while self.end < offset + 12 * most:
            base = self.end + (self._drawn.random() < 0.15) * self._drawn.randint(1, 4)
            self.batches.append(self._batch(base))
            self.end = self.batches[-1][1] + 1
        found = [batch for batch in self.batches if batch[1] >= offset][:most]
        last = found[-1][1]
        return found, [
            [producer, first] for producer, first, end in self._aborted if first <= last and end >= offset
        ]

    def _batch(self, base: int) -> list[Any]:
        batch: list[Any] = [base, base + self._drawn.choice((0, 0, 2, 4, 9))]
        producer = self._drawn.choice((None, 7, 8)) if self._has_transactions else None
        if producer is None:
            return batch
        if producer in self._open and self._drawn.random() < 0.5:
            marker = self._drawn.choice(("ABORT", "ABORT", "COMMIT"))
            first = self._open.pop(producer)
            if marker == "ABORT":
                self._aborted.append((producer, first, base))
            return [base, base, producer, marker]
        self._open.setdefault(producer, base)
        return [*batch, producer]

    def cut(self, start: int) -> None:
        self.batches = [batch for batch in self.batches if batch[1] >= start]


def _operation(drawn: random.Random, partition: AskedPartition, log: _Log) -> Operation:
    member, fetch_offset = drawn.choice(_MEMBERS), partition.next_fetch_offset
    (kind,) = drawn.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    about: list[Any] = [member]
    match kind:
        case "acquire":
            sizes = drawn.choice((1, 5, 50)), drawn.choice((1, 4, 20))
            about += [drawn.random() < 0.4, *sizes, *log.read(fetch_offset)]
        case "acknowledge":
            about += [_acknowledgements(drawn, partition.held_by(member), log.end)]
        case "advance":
            about = [drawn.choice((1, 1_000, 15_000, 30_000))]
        case "log_start":
            about = [drawn.randint(0, fetch_offset)]
            log.cut(about[0])
        case "persister":
            about = [drawn.choice(("ok", "ok", "hold", "hold", drawn.choice(_ERRORS)))]
        case "answer":
            about = [drawn.choice(("NONE", "NONE", "NONE", drawn.choice(_ERRORS)))]
    return [kind, *about]


def _acknowledgements(drawn: random.Random, held: list[tuple[int, int]], end: int) -> list[list[Any]]:
    """One to three ranges, mostly of records that the member has."""
    found = []
    ranges = sorted(drawn.sample(held, min(len(held), drawn.randint(1, 3))))
    if not ranges or drawn.random() < 0.1:
        first = drawn.randint(0, end)
        ranges = [(first, first + drawn.randrange(6))]
    for whole in ranges:
        first, last = whole
        if drawn.random() < 0.4:
            first = drawn.randint(first, last)
            last = drawn.randint(first, last)
        kinds = drawn.choice(((1,), (1,), (2,), (3,), (0, 1, 2, 3), (1, 2, 4)))
        is_mixed = drawn.random() < 0.4
        types = [drawn.choice(kinds) for _ in range(last - first + 1 if is_mixed else 1)]
        found.append([first, last, types])
    return found
