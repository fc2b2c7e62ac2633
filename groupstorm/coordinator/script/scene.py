"""The state that a step may refer to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupstorm.coordinator.script.clients import Clients
from groupstorm.coordinator.script.names import Names


class Scene(NamedTuple):
    """The state that a step may refer to."""

    clients: Clients
    names: Names
    topics: Mapping[str, int]
