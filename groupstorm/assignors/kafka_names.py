"""Kafka's class names of its assignors, as client configurations have them."""

from __future__ import annotations

from typing import Final

_PACKAGE: Final = "org.apache.kafka.clients.consumer."
_CLASSES: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
#: The names of Kafka's assignors in the group's protocol.
KAFKAS: Final = frozenset(_CLASSES.values())


def protocol_name(name: str) -> str:
    """The name of the assignor in the group's protocol, by its class with or without the package.

    Any other name is returned as it is.
    """
    return _CLASSES.get(name.removeprefix(_PACKAGE), name)
