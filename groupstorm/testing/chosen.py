"""The broker that a test run asks for by name, with what a test says about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.clients.brokers import EMULATOR, read_kind
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.problems import InputError
from groupstorm.testing.broker import Broker
from groupstorm.testing.emulated import EmulatedBroker
from groupstorm.testing.real import RealBroker

#: What a test may say about its broker: on every kind, and what only the emulator has.
EVERYWHERE = ("topics", "settings")
EMULATOR_ONLY = ("brokers", "as_version", "control", "trace")


def chosen_broker(
    kind: str, said: Mapping[str, Any], *, allow_writes: bool = False, needs_faults: bool = False
) -> Broker:
    """The broker of a test, to be entered. ``kind``: as `groupstorm run --on` has it; ``said``: arguments of
    `groupstorm.broker`; ``needs_faults``: the test is about faults.

    Raises BrokerUnavailable where only the emulator can do what the test says, and InputError.
    """
    unknown = next((name for name in said if name not in EVERYWHERE + EMULATOR_ONLY), None)
    if unknown is not None:
        known = ", ".join((*EVERYWHERE, *EMULATOR_ONLY, "faults"))
        raise InputError(f"{unknown}: no argument of a broker; there are {known}")
    found = read_kind(kind)
    if found.name == EMULATOR:
        return EmulatedBroker(**said)
    if needs_faults:
        raise BrokerUnavailable(f"{kind}: the test needs faults, which the emulator has")
    for name in EMULATOR_ONLY:
        if name in said:
            raise BrokerUnavailable(f"{kind}: {name}={said[name]!r} is for the emulator")
    return RealBroker(found, said.get("topics"), said.get("settings"), allow_writes=allow_writes)
