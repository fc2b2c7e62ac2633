"""Assignors: Kafka's and others as pure functions over plain data, which partitions each member gets.

No clock, no I/O, no asyncio. `userdata` decodes and encodes the bytes inside JoinGroup and SyncGroup;
`consumer` holds the assignors; `registry` finds them by Kafka's names; `leader` is the leader's side, bytes
in and bytes out. `server` has the broker's assignors (KIP-848), `streams` the task assignors of Kafka
Streams.
"""

from __future__ import annotations

from typing import Final

_PACKAGE: Final = "org.apache.kafka.clients.consumer."
_CLASSES: Final = {
    "Range": "range",
    "RoundRobin": "roundrobin",
    "Sticky": "sticky",
    "CooperativeSticky": "cooperative-sticky",
}
#: The names of Kafka's assignors in the group's protocol.
KAFKAS: Final = frozenset(_CLASSES.values())


def protocol_name(name: str) -> str:
    """The name of the assignor in the group's protocol, by its class with or without the package, or as .NET
    spells it (CooperativeSticky).

    Any other name is returned as it is.
    """
    return _CLASSES.get(name.removeprefix(_PACKAGE).removesuffix("Assignor"), name)
