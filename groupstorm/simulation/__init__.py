"""A person's own asyncio service against the brokers in virtual time, under schedules of failures."""

from __future__ import annotations

from groupstorm.simulation.loop import InstanceFailed, NotSimulated, SimulationError, Stuck
from groupstorm.simulation.schedule import Kind
from groupstorm.simulation.simulate import ScheduleFailed, simulate
from groupstorm.simulation.world import ConditionTimeout, World

__all__ = [
    "ConditionTimeout",
    "InstanceFailed",
    "Kind",
    "NotSimulated",
    "ScheduleFailed",
    "SimulationError",
    "Stuck",
    "World",
    "simulate",
]
