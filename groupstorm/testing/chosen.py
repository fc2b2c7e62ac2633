"""The broker of a test: the kind that the test run names, with the arguments of the test's markers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers import EMULATOR, read_kind
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.wire.security import read_client_properties
from groupstorm.problems import InputError
from groupstorm.testing.broker import BrokerUnderTest
from groupstorm.testing.emulated import EmulatedBroker
from groupstorm.testing.real import RealBroker, SharedBrokers

#: The arguments of a marker: for every kind of broker, and for the emulator only.
EVERYWHERE = ("topics", "settings")
EMULATOR_ONLY = ("brokers", "as_version", "control", "trace", "security")


def chosen_broker(
    kind: str,
    arguments: Mapping[str, Any],
    *,
    allow_writes: bool = False,
    client_config: Path | None = None,
    faults: bool = False,
    emulated: bool = False,
    shared: SharedBrokers | None = None,
) -> BrokerUnderTest:
    """The broker of a test, not started.

    ``kind``: as for `groupstorm run --on`; ``arguments``: of `groupstorm.broker`; ``client_config``: TLS and
    SASL of a cluster; ``faults``: a real broker gets a proxy that carries them out; ``emulated``: the test
    needs the emulator; ``shared``: real brokers for several tests.

    Raises BrokerUnavailable if the test needs the emulator and this is another kind, and InputError.
    """
    unknown = next((name for name in arguments if name not in EVERYWHERE + EMULATOR_ONLY), None)
    if unknown is not None:
        known = ", ".join((*EVERYWHERE, *EMULATOR_ONLY, "faults", "emulated", "shared"))
        raise InputError(f"{unknown}: no argument of a broker; there are {known}")
    found = read_kind(kind)
    if found.name == EMULATOR:
        return EmulatedBroker(**arguments)
    if emulated:
        raise BrokerUnavailable(f"{kind}: the test needs the emulator (emulated=True)")
    for name in EMULATOR_ONLY:
        if name in arguments:
            raise BrokerUnavailable(f"{kind}: {name}={arguments[name]!r} is for the emulator")
    if client_config is not None:
        found = found._replace(security=read_client_properties(client_config))
    topics, settings = arguments.get("topics"), arguments.get("settings")
    return RealBroker(found, topics, settings, allow_writes=allow_writes, shared=shared, faults=faults)
