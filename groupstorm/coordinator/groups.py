"""The kinds of group that a coordinator holds, for the modules that serve every kind."""

from __future__ import annotations

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.group import ConsumerGroup

AnyGroup = ClassicGroup | ConsumerGroup
