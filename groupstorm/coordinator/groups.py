"""The kinds of group that a coordinator holds, for the modules that serve every kind."""

from __future__ import annotations

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.streams.group import StreamsGroup

#: Groups whose members have epochs and get their assignments from the coordinator.
ModernGroup = ConsumerGroup | StreamsGroup
AnyGroup = ClassicGroup | ModernGroup
