"""Random cases for the assignors of the consumer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.oracle.assignors import drawing
from tests.oracle.assignors.drawing import Partition, happens
from tests.oracle.assignors.sizes import Size
from tests.oracle.running import Case

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")

_STICKY = "sticky"
_COOPERATIVE = "cooperative-sticky"

#: Bytes that pass for an assignor's user data, or nearly: a member may send whatever it likes.
_USER_DATA: dict[str, tuple[str, ...]] = {
    _STICKY: (
        "",
        "00000000",
        "0000000000000005",
        "7fffffff",
        "ffffffff",
        "0000000100",
        "00000001000274300000000100000000",  # version 0: t0-0
        "0000000100027430000000020000000000000001",  # version 0: t0-0, t0-1
        "000000010002743000000001000000000000000500ff",  # version 1 of generation 5, and more behind it
        "00000001ffff000000010000000000000005",  # a name of length -1
        "000000010002c3280000000100000000",  # a name that is no UTF-8
    ),
    _COOPERATIVE: ("", "00", "000000", "00000003", "ffffffff", "7fffffff", "0000000500", "0000000500ffff"),
}
_VERSIONS = (0, 1, 2, 3)
#: Versions that Kafka does not know yet count as its newest.
_LATER_VERSIONS = (4, 9)


class _Traits(NamedTuple):
    """Traits that are drawn once for a group: how likely each oddity is for a member."""

    generation: int
    racks: tuple[str, ...]
    contested: float
    haunted: bool
    late: float
    garbage: float
    static: float
    own_version: float


def draw_case(generator: random.Random, case_id: str, assignor: str, size: Size) -> Case:
    """A case of that id and size for that assignor."""
    traits = _traits(generator)
    names = drawing.topic_names(generator, size.topics)
    counts = drawing.partition_counts(generator, names, size.partitions_max)
    ids = drawing.member_ids(generator, size.members)
    topics_of = drawing.subscriptions(generator, ids, names)
    owned = drawing.owners(generator, ids, counts, topics_of)
    every = drawing.partitions_of(counts)
    members = []
    for number, member in enumerate(ids):
        claimed = _claimed(generator, traits, owned[member], counts, every)
        found = _member(generator, traits, assignor, member, topics_of[member], claimed)
        if happens(generator, traits.static):
            found["instance"] = f"i{(number * 7919) % 10_007}"
        members.append(found)
    case: Case = {"id": case_id, "assignor": assignor, "topics": _topics(generator, traits, counts)}
    case["members"] = members
    if happens(generator, 0.4):
        case["version"] = generator.choice(_VERSIONS if happens(generator, 0.95) else _LATER_VERSIONS)
    if happens(generator, 0.2):
        case["emit_bytes"] = True
    return case


def _traits(generator: random.Random) -> _Traits:
    racks = tuple(f"r{number}" for number in range(generator.choice((2, 2, 3, 4))))
    return _Traits(
        generation=generator.randint(0, 20),
        racks=racks if happens(generator, 0.35) else (),
        contested=generator.choice((0.0, 0.0, 0.3)),
        haunted=happens(generator, 0.1),
        late=generator.choice((0.0, 0.3)),
        garbage=0.3 if happens(generator, 0.15) else 0.0,
        static=generator.choice((0.0, 0.0, 0.4, 1.0)),
        own_version=0.4 if happens(generator, 0.2) else 0.0,
    )


# --- topics ----------------------------------------------------------------------------------------


def _topics(generator: random.Random, traits: _Traits, counts: Mapping[str, int]) -> dict[str, Any]:
    topics: dict[str, Any] = {name: {"partitions": count} for name, count in counts.items()}
    if traits.racks:
        # where all topics lie alike, those of equal size can be co-partitioned
        most = max(counts.values()) if happens(generator, 0.3) else 0
        alike = [generator.sample(traits.racks, 1) for _ in range(most)]
        for entry in topics.values():
            if happens(generator, 0.9):
                entry["racks"] = _racks(generator, traits.racks, entry["partitions"], alike)
    return topics


def _racks(
    generator: random.Random, racks: tuple[str, ...], count: int, alike: Sequence[list[str]]
) -> list[list[str]]:
    """The racks of each partition's replicas; at times one replica too few, or none."""
    if alike:
        return list(alike[:count])
    replicas = generator.randint(1, len(racks))
    fewer = 0.1 if happens(generator, 0.2) else 0.0
    return [generator.sample(racks, replicas - happens(generator, fewer)) for _ in range(count)]


# --- members ---------------------------------------------------------------------------------------


def _claimed(
    generator: random.Random,
    traits: _Traits,
    owned: list[Partition],
    counts: Mapping[str, int],
    every: Sequence[Partition],
) -> list[Partition]:
    """Draw the partitions that a member says it owned: its own, perhaps another's, what is gone, or one of
    them twice."""
    claimed = list(owned)
    if happens(generator, traits.contested):
        claimed += drawing.claims(generator, every)
    claimed = list(dict.fromkeys(claimed))
    if traits.contested and claimed and happens(generator, 0.02):
        claimed.append(claimed[0])
    if happens(generator, 0.3):
        generator.shuffle(claimed)
    if traits.haunted:
        place = generator.randint(0, len(claimed))
        claimed[place:place] = drawing.nonexistent(generator, counts)
    return claimed


def _member(
    generator: random.Random,
    traits: _Traits,
    assignor: str,
    member: str,
    topics: list[str],
    claimed: list[Partition],
) -> dict[str, Any]:
    owned = [list(partition) for partition in claimed]
    generation = _off(generator, traits.generation) if happens(generator, traits.late) else traits.generation
    found: dict[str, Any] = {"id": member, "topics": topics}
    if owned or happens(generator, 0.8):
        found["owned"] = owned
    if happens(generator, 0.95):
        found["generation"] = generation
    found |= _user_data(generator, traits, assignor, owned, generation)
    if happens(generator, 0.85 if traits.racks else 0.02):
        found["rack"] = generator.choice((*traits.racks, "elsewhere")) if happens(generator, 0.97) else ""
    if happens(generator, traits.own_version):
        found["version"] = generator.choice(_VERSIONS)
    return found


def _off(generator: random.Random, generation: int) -> int:
    """Another generation: of a member that has missed some, or begins anew."""
    return max(-1, generator.choice((generation - 1, generation + 1, generation - 2, -1)))


def _user_data(
    generator: random.Random, traits: _Traits, assignor: str, owned: list[list[Any]], generation: int
) -> dict[str, Any]:
    """Draw the user data of the member's own assignor, of this generation or another; or garbage."""
    if happens(generator, traits.garbage):
        return {"userdata_hex": _garbage(generator, assignor)}
    found: dict[str, Any] = {}
    if assignor == _STICKY and happens(generator, 0.8):
        found["userdata_owned"] = owned
    if assignor in (_STICKY, _COOPERATIVE) and happens(generator, traits.late):
        found["userdata_generation"] = _off(generator, generation)
    elif assignor == _COOPERATIVE and happens(generator, 0.7):
        found["userdata_generation"] = generation
    return found


def _garbage(generator: random.Random, assignor: str) -> str:
    if happens(generator, 0.4):
        return generator.randbytes(generator.randint(0, 12)).hex()
    return generator.choice(_USER_DATA.get(assignor, ("", "00ff")))
