"""Heartbeats and background commits: sent periodically, computed as long as they change nothing.

docs/periodic-requests.md says how a heartbeat that is never sent still decides.
"""

from __future__ import annotations

from groupstorm.storms.world.periodic_requests.lateness import SHARES, DrawnSums, ProcessTimer, timer_sums
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.periodic_requests.sender import Sender
from groupstorm.storms.world.periodic_requests.sessions import SessionArbiter

__all__ = [
    "SHARES",
    "DrawnSums",
    "PeriodicRequests",
    "ProcessTimer",
    "Sender",
    "SessionArbiter",
    "timer_sums",
]
