"""Kafka's group coordinator, emulated faithfully in protocol and in time.

async with groupstorm.broker(topics={"orders": 6}) as broker:
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers, group_id="readers")

print(groupstorm.compare("rolling-deploy", settings={"members": 100}).answer)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from groupstorm.version import __version__

if TYPE_CHECKING:
    import os

    from groupstorm.library import compare, read, run, sweep
    from groupstorm.testing import EmulatedBroker, Security

__all__ = ["__version__", "broker", "compare", "read", "run", "sweep"]

#: Functions of `groupstorm.library`, which is imported when one of them is first used.
_OF_THE_LIBRARY = frozenset({"compare", "read", "run", "sweep"})


if not TYPE_CHECKING:  # to type checkers it would say that there is every name

    def __getattr__(name: str) -> Any:
        if name not in _OF_THE_LIBRARY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from groupstorm import library

        return getattr(library, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def broker(
    topics: Mapping[str, int] | Iterable[str] | None = None,
    settings: Mapping[str, str | int | float | bool] | None = None,
    *,
    brokers: int = 1,
    as_version: str = "4.x",
    port: int = 0,
    trace: str | os.PathLike[str] | None = None,
    control: bool | int = False,
    security: Security | None = None,
) -> EmulatedBroker:
    """A broker for tests, for ``with`` and ``async with``: real clients connect to it over TCP.

    ``topics``: name -> partitions, or a list of names; "orders:6" has six partitions, "orders" has
    num.partitions of them. The broker makes other topics on demand. ``settings``: by Kafka's names, see
    `groupstorm serve`. ``brokers``: how many, in this process. ``as_version``: advertise no higher versions
    than that Kafka (2.8, 3.9, 4.x). ``port``: of the first broker, 0: a free one; the broker listens on the
    loopback interface only. ``trace``: a folder for the coordinator's events. ``control``: True, or a port,
    for an HTTP interface through which other processes ask for faults (`EmulatedBroker.control_url`).
    ``security``: TLS and SASL, see `groupstorm.testing.secured`.

    Raises `groupstorm.problems.InputError`, which names the argument, the value and what was expected.
    """
    from groupstorm.testing import EmulatedBroker

    return EmulatedBroker(
        topics,
        settings,
        brokers=brokers,
        as_version=as_version,
        port=port,
        trace=trace,
        control=control,
        security=security,
    )


class _Package(ModuleType):
    """Keeps `groupstorm.broker` the function above: importing the room of that name would replace it. The
    room's modules are attributes of the function, so that `import groupstorm.broker.assembly` finds them."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "broker" and isinstance(value, ModuleType):
            broker.__dict__ = value.__dict__
        else:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
