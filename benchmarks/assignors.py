"""How long a leader thinks: subscriptions as bytes in, assignments as bytes out.

    python benchmarks/assignors.py [--assignor NAME] [--repeat 3] [MEMBERSxPARTITIONSxTOPICS[:random] ...]

CPU milliseconds of the calling thread, the least of ``--repeat`` runs, for three rounds that follow
one another in a group: empty start, one more member, and a tenth of the members gone. ``:random``
lets every member subscribe to about half of the topics. The door's memory starts empty with the
empty start, and is warm after it, as a leader's is.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Mapping, Sequence

from groupstorm.assignors import registry
from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.leader import Member, perform_assignment
from groupstorm.assignors.leadermemory import LeaderMemory
from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)

DEFAULT_SIZES = ("2100x2100x1", "2000x200000x200", "10000x10000x1", "1000x10000x100:random")


def subscriptions(
    assignor: Assignor,
    wanted: Mapping[str, Sequence[str]],
    owned: Mapping[str, Sequence[TopicPartition]],
    generation: int,
) -> list[Member]:
    """What every member would put into JoinGroup."""
    cooperative = len(assignor.protocols) > 1
    return [
        (
            member,
            None,
            encode_subscription(
                Subscription(
                    tuple(topics),
                    assignor.user_data(owned.get(member), generation),
                    tuple(owned.get(member, ())) if cooperative else (),
                    generation if member in owned else -1,
                )
            ),
        )
        for member, topics in wanted.items()
    ]


def member_names(count: int) -> list[str]:
    """Ids as a broker draws them: client id and a UUID, here from a fixed seed."""
    draw = random.Random(9987)
    return [f"consumer-{number}-{draw.getrandbits(128):032x}" for number in range(count)]


def rounds(size: str, assignor: Assignor) -> list[float]:
    """CPU milliseconds of the three rounds."""
    shape, _, kind = size.partition(":")
    members, partitions, topics = (int(part) for part in shape.split("x"))
    known = {f"topic-{number}": partitions // topics for number in range(topics)}
    draw = random.Random(12675)
    names = list(known)

    def choose() -> list[str]:
        chosen = [name for name in names if draw.random() < 1 / 2] if kind == "random" else names
        return chosen or names[:1]

    ids = member_names(members + 1)
    wanted = {member: choose() for member in ids}
    memory = LeaderMemory()
    owned: dict[str, Sequence[TopicPartition]] = {}
    measured: list[float] = []
    present: Sequence[str] = ids[:members]
    for generation, present in enumerate((ids[:members], ids, ids[members // 10 :])):
        inside = {member: wanted[member] for member in present}
        joining = subscriptions(assignor, inside, {m: owned[m] for m in present if m in owned}, generation)
        start = time.thread_time_ns()
        answer = perform_assignment(assignor, known, joining, memory)
        measured.append((time.thread_time_ns() - start) / 1e6)
        owned = {member: decode_assignment(data).partitions for member, data in answer.items()}
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", nargs="*", default=DEFAULT_SIZES, metavar="SIZE")
    parser.add_argument("--assignor", default="cooperative-sticky")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    assignor = registry.get(options.assignor)
    print(f"{'members x partitions x topics':<32}{'empty':>10}{'one more':>10}{'10% leave':>10}   CPU ms")
    for size in options.sizes:
        runs = [rounds(size, assignor) for _ in range(options.repeat)]
        best = [min(values) for values in zip(*runs, strict=True)]
        print(f"{size:<32}" + "".join(f"{value:>10.1f}" for value in best), flush=True)


if __name__ == "__main__":
    main()
