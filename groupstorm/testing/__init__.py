"""Brokers for people's tests: started in three lines, made to fail, and waited for."""

from __future__ import annotations

from groupstorm.coordinator.server.security.listener import Security
from groupstorm.testing.broker import ArmedFault, Broker, EmulatorOnly, FaultTimeout
from groupstorm.testing.emulated import EmulatedBroker
from groupstorm.testing.groups import Group, GroupTimeout, GroupView, MemberView
from groupstorm.testing.secured import secured

__all__ = [
    "ArmedFault",
    "Broker",
    "EmulatedBroker",
    "EmulatorOnly",
    "FaultTimeout",
    "Group",
    "GroupTimeout",
    "GroupView",
    "MemberView",
    "Security",
    "secured",
]
