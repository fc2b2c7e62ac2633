"""Assignors by name: Kafka's, those of the design documents, our own, and third parties'.

A third party's assignor is a function, an object or a class (see `custom`). It is named by an entry point
of the group ``groupstorm.assignors``, or as ``module:attribute``. The latter imports the module, from
Python's path or the working directory, and so runs its code. Nothing else of the text is evaluated.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

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
from groupstorm.assignors.custom import adapt
from groupstorm.problems import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINT_GROUP = "groupstorm.assignors"

_MADE_BY: dict[str, Callable[[MapOrder, bool], Assignor]] = {
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

#: The names of our assignors, Kafka's first.
BUILT_IN: tuple[str, ...] = tuple(_MADE_BY)


def names() -> list[str]:
    """The names of our assignors, Kafka's first, then those of installed plug-ins."""
    plug_ins = {entry.name for entry in _entry_points()}
    return [*BUILT_IN, *sorted(plug_ins.difference(BUILT_IN))]


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # and with it email, zipfile and csv: only plug-ins need them

    return entry_points(group=ENTRY_POINT_GROUP)


def get(name: str, *, order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False) -> Assignor:
    """The assignor of that name; the options are those of our assignors, plug-ins do not get them.

    Raises `InputError`, which lists the names.
    """
    if name in _MADE_BY:
        return _MADE_BY[name](order, bug_compat)
    place = f"assignor {name!r}"
    for entry in _entry_points():
        if entry.name == name:
            return adapt(_load(entry.load, place), place, default_name=name)
    if is_plug_in(name):
        module, _, attribute = name.partition(":")
        return adapt(_load(lambda: getattr(_import(module), attribute), place), place)
    raise InputError(f"{place}: expected one of {', '.join(names())}, or a plug-in as module:attribute")


def own(assignor: object) -> Assignor:
    """One of our assignors as it is; another function, object or class adapted. Raises `InputError`."""
    name = getattr(assignor, "name", getattr(assignor, "__name__", type(assignor).__name__))
    ours = get(name) if name in _MADE_BY else None
    if ours is not None and type(assignor) is type(ours):
        return assignor
    return adapt(assignor, f"assignor {name!r}")


def is_plug_in(name: str) -> bool:
    """Whether `get` imports code for that name: ``module:attribute``."""
    return ":" in name


def _import(module: str) -> ModuleType:
    """From Python's path, or else from the working directory."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    return import_module(module)


def _load(load: Callable[[], object], place: str) -> object:
    try:
        return load()
    except (ImportError, AttributeError, ValueError, SyntaxError) as problem:
        raise InputError(f"{place}: expected a plug-in to import: {problem}") from problem
