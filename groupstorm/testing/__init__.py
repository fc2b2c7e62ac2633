"""Brokers for people's tests: start one in three lines, make it fail, wait for its groups."""

from __future__ import annotations

from groupstorm.broker.security.listener import ListenerSecurity as Security
from groupstorm.testing.broker import BrokerUnderTest as Broker
from groupstorm.testing.broker import EmulatorOnly
from groupstorm.testing.emulated import EmulatedBroker, secured
from groupstorm.testing.faults import ArmedFault, FaultTimeout
from groupstorm.testing.groups import GroupTimeout, GroupView, LockedRecords, MemberView
from groupstorm.testing.groups import GroupUnderTest as Group
from groupstorm.testing.ledger import Ledger, LedgerFailed

__all__ = [
    "ArmedFault",
    "Broker",
    "EmulatedBroker",
    "EmulatorOnly",
    "FaultTimeout",
    "Group",
    "GroupTimeout",
    "GroupView",
    "Ledger",
    "LedgerFailed",
    "LockedRecords",
    "MemberView",
    "Security",
    "secured",
]
