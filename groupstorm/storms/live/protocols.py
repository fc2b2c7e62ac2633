"""Which group protocols the members of a scenario speak, and what follows from it in real time."""

from __future__ import annotations

from typing import Final

from groupstorm.clients.group_protocol import GroupProtocol
from groupstorm.storms.scenario.settings import Settings

#: The broker's bounds of options of consumer groups: a fresh broker gets them, so that it takes the options.
BOUNDS: Final = frozenset(
    f"group.consumer.{bound}.{option}"
    for bound in ("min", "max")
    for option in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
)


def protocols(settings: Settings) -> frozenset[GroupProtocol]:
    """What members speak, those of later releases included."""
    return frozenset(GroupProtocol(own.choice("group.protocol")) for own in settings.of_profiles())


def speaks_consumer_protocol(settings: Settings) -> bool:
    return GroupProtocol.CONSUMER in protocols(settings)
