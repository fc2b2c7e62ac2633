"""Assignors by name: Kafka's, those of the design documents, our own, and third parties'.

A third party's assignor is any object with the attributes of `contract.Assignor`, or a class that
makes one without arguments. It is found by the name of an entry point of the group
``groupstorm.assignors``, or as ``module:attribute`` (which imports the module, and so runs code).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from groupstorm.assignors.consumer.fourphase import constrained_cooperative_sticky
from groupstorm.assignors.consumer.optimal import optimal_cooperative_sticky, optimal_sticky
from groupstorm.assignors.consumer.range import RangeAssignor
from groupstorm.assignors.consumer.roundrobin import RoundRobinAssignor
from groupstorm.assignors.consumer.sticky import CooperativeStickyAssignor, StickyAssignor
from groupstorm.assignors.consumer.streamjoin import StreamJoinStickyAssignor
from groupstorm.assignors.consumer.twophase import (
    two_phase_java_sketch,
    two_phase_pseudo_code,
    two_phase_sticky,
)
from groupstorm.assignors.contract import Assignor, MapOrder
from groupstorm.problems import InputError

ENTRY_POINT_GROUP = "groupstorm.assignors"

_BUILT_IN: dict[str, Callable[[MapOrder, bool], Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
    "optimal-sticky": optimal_sticky,
    "optimal-sticky/cooperative": optimal_cooperative_sticky,
    "constrained-cooperative-sticky": constrained_cooperative_sticky,
    "two-phase-sticky": two_phase_sticky,
    "two-phase-sticky/pseudo-code": two_phase_pseudo_code,
    "two-phase-sticky/java-sketch": two_phase_java_sketch,
    "stream-join-sticky": StreamJoinStickyAssignor,
}
_CONTRACT = ("name", "protocols", "needs_equal_subscriptions", "user_data", "assign")


def names() -> list[str]:
    """The names of our assignors, Kafka's first, then those of installed plug-ins."""
    plug_ins = {entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}
    return [*_BUILT_IN, *sorted(plug_ins.difference(_BUILT_IN))]


def get(name: str, *, order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False) -> Assignor:
    """The assignor of that name; the options are our assignors' own, plug-ins do not see them.

    Raises `InputError` with the names there are.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name](order, bug_compat)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name == name:
            return _checked(_load(entry.load, name), name)
    if ":" in name:
        module, _, attribute = name.partition(":")
        return _checked(_load(lambda: getattr(import_module(module), attribute), name), name)
    raise InputError(
        f"assignor {name!r}: expected one of {', '.join(names())}, or a plug-in as module:attribute"
    )


def _load(load: Callable[[], object], name: str) -> object:
    try:
        return load()
    except (ImportError, AttributeError, ValueError) as problem:
        raise InputError(f"assignor {name!r}: expected a plug-in to import: {problem}") from problem


def _checked(plug_in: object, name: str) -> Assignor:
    missing = [attribute for attribute in _CONTRACT if not hasattr(plug_in, attribute)]
    if missing and not isinstance(plug_in, type):
        raise InputError(f"assignor {name!r}: expected an assignor, this has no {', '.join(missing)}")
    if not isinstance(plug_in, type):
        return cast(Assignor, plug_in)
    if not hasattr(plug_in, "assign"):
        raise InputError(f"assignor {name!r}: expected an assignor, this class has no assign")
    try:
        made = plug_in()
    except TypeError as problem:
        raise InputError(f"assignor {name!r}: expected a class without arguments: {problem}") from problem
    return _checked(made, name)
