"""Heartbeats and background commits: sent periodically, computed as long as nothing disturbs them.

docs/periodic-requests.md has the rules.
"""

from __future__ import annotations

from groupstorm.storms.world.periodic_requests.lateness import SHARES, DrawnSums, ProcessTimer, timer_sums
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.periodic_requests.resting import RestingMembers
from groupstorm.storms.world.periodic_requests.sender import Sender

__all__ = [
    "SHARES",
    "DrawnSums",
    "PeriodicRequests",
    "ProcessTimer",
    "RestingMembers",
    "Sender",
    "timer_sums",
]
