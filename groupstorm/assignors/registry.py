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

from groupstorm.assignors import protocol_name
from groupstorm.assignors.consumer.indexed import IndexedAssignor
from groupstorm.assignors.consumer.memoryless import RangeAssignor, RoundRobinAssignor
from groupstorm.assignors.consumer.optimal import OptimalCooperativeStickyAssignor, OptimalStickyAssignor
from groupstorm.assignors.consumer.planned import (
    ConstrainedCooperativeStickyAssignor,
    TwoPhaseJavaSketch,
    TwoPhasePseudoCode,
    TwoPhaseStickyAssignor,
)
from groupstorm.assignors.consumer.sticky import CooperativeStickyAssignor, StickyAssignor
from groupstorm.assignors.consumer.streamjoin import StreamJoinStickyAssignor
from groupstorm.assignors.contract import Assignor, MapOrder
from groupstorm.assignors.custom import adapt
from groupstorm.problems import InputError, not_one_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINT_GROUP = "groupstorm.assignors"

_MADE_BY: dict[str, type[IndexedAssignor] | type[StreamJoinStickyAssignor]] = {
    kind.name: kind
    for kind in (
        RangeAssignor,
        RoundRobinAssignor,
        StickyAssignor,
        CooperativeStickyAssignor,
        OptimalStickyAssignor,
        OptimalCooperativeStickyAssignor,
        ConstrainedCooperativeStickyAssignor,
        TwoPhaseStickyAssignor,
        TwoPhasePseudoCode,
        TwoPhaseJavaSketch,
        StreamJoinStickyAssignor,
    )
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
    """The assignor of that name, or of Kafka's class; the options are those of our assignors, plug-ins do not
    get them.

    Raises `InputError`, which lists the names.
    """
    if protocol_name(name) in _MADE_BY:
        return _MADE_BY[protocol_name(name)](order, bug_compat)
    place = f"assignor {name!r}"
    for entry in _entry_points():
        if entry.name == name:
            return adapt(_load(entry.load, place), place, default_name=name)
    if is_plug_in(name):
        module, _, attribute = name.partition(":")
        return adapt(_load(lambda: getattr(_import(module), attribute), place), place)
    others = "a plug-in is named as module:attribute, and the broker's own by group.remote.assignor"
    raise InputError(f"assignor {not_one_of(name, names())}; {others}")


def own(assignor: object) -> Assignor:
    """One of our assignors as it is; another function, object or class adapted. Raises `InputError`."""
    name = getattr(assignor, "name", getattr(assignor, "__name__", type(assignor).__name__))
    kind = _MADE_BY.get(name)
    if kind is not None and type(assignor) is kind:
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
    except Exception as problem:  # a module of the user's own may raise anything while it is imported
        why = f"{type(problem).__name__}: {problem}"
        raise InputError(f"{place}: expected a plug-in to import: {why}") from problem
