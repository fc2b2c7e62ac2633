"""A group as JSON data: a copy goes on as the group would, and data of something else are refused."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import Any, get_args, get_type_hints

import pytest

from groupstorm.explain.history import Settings
from groupstorm.watch.checkpoint import FORMAT
from groupstorm.watch.feed import WatchedRow
from groupstorm.watch.group import WatchedGroup
from groupstorm.watch.rolling import Groups, Rolling
from groupstorm.watch.snapshot import FIELDS, OF_CONSTRUCTOR, PARTS, read, write
from tests.command import ROOT
from tests.explain.explaining import scenario_storm, storm
from tests.soaking import sizes
from tests.watch.rolling_rows import GROUP, SPAN_US, by_hand, rows_of

TRACES = [
    ("eager", ""),
    ("eager", "coordinator"),
    ("consumer", ""),
    pytest.param(("all-steps.yaml", ""), marks=pytest.mark.slow),
    pytest.param(("streams/all-steps.yaml", ""), marks=pytest.mark.slow),
]
#: A value of each type of JSON, and two that are no number of a trace.
VALUES: list[Any] = [None, True, 3, -1, 0.5, "x", [], {}, [0], {"x": 0}, 10**400, float("nan")]


@pytest.fixture(scope="module", params=TRACES, ids="".join)
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[WatchedRow]:
    folder = tmp_path_factory.mktemp("storm")
    name, source = request.param
    if name.endswith(".yaml"):
        return rows_of(scenario_storm(folder, (ROOT / "tests/storms" / name).read_text("utf-8")), source)
    return rows_of(storm(folder, "rolling-deploy", name, {"members": 4, "partitions": 8}), source)


def through_text(groups: Groups) -> Groups:
    found: Groups = read(Groups, json.loads(json.dumps(write(Groups, groups))), checks_rows=True)
    return found


def test_a_state_with_other_parts_has_another_format() -> None:
    """Else a checkpoint of the version before is called damaged: after a change raise `FORMAT`."""
    fresh = json.dumps(write(WatchedGroup, WatchedGroup("g")))
    assert (FORMAT, hashlib.sha256(fresh.encode()).hexdigest()[:8]) == (21, "4671419c")


@pytest.mark.parametrize("cases", sizes(4, 400, 10))
def test_a_copy_at_any_row_goes_on_as_the_group_itself(rows: list[WatchedRow], cases: int) -> None:
    """``other`` is copied again and again, also where figures begin to count anew."""
    for seed in range(cases):
        random = Random(seed)
        one, others = WatchedGroup("g"), {"g": WatchedGroup("g")}
        for row in rows[: random.randrange(len(rows))]:
            for group in (one, others["g"]):
                group.add(row)
            if random.random() < 10 / len(rows):
                others = through_text(others)
            if random.random() < 2 / len(rows):
                for group in (one, others["g"]):
                    group.count_from(row.time_us + 1)
        others = through_text(others)
        end_us = rows[-1].time_us
        assert others["g"].picture(end_us) == one.picture(end_us)


@pytest.mark.parametrize("cases", sizes(2, 100, 10))
def test_pictures_are_those_of_a_watch_that_never_carried(rows: list[WatchedRow], cases: int) -> None:
    for seed in range(cases):
        random = Random(seed)
        carrying, whole = Rolling(SPAN_US, late_us=0, carried_rows=10), Rolling(SPAN_US)
        begin, carried = 0, 0
        while begin < len(rows):
            end = begin + random.randrange(1, len(rows) // 4)
            for rolling in (carrying, whole):
                rolling.add(rows[begin:end])
            carried += carrying.carry()
            span_us = random.randrange(1, SPAN_US)
            assert carrying.pictures(span_us, carrying.last_us) == whole.pictures(span_us, whole.last_us)
            begin = end
        assert carried


def small_state() -> dict[str, Any]:
    """The data of a group after a rebalance, with a record rate so that lag and ages are part of it."""
    rates = {
        "s": 3.1,
        "event": "record_rates_changed",
        "source": "world",
        "partitions": ["t-0", "t-1"],
        "positions": [5, 5],
        "rates": [10, 10],
    }
    group = WatchedGroup("g")
    for row in by_hand(*GROUP[:7], rates, *GROUP[7:]):
        group.add(row)
    found: dict[str, Any] = write(Groups, {"g": group})
    return found


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Each container within ``data``, with each key or index."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], dict | list):
            yield from places(data[key])


@pytest.mark.slow
@pytest.mark.parametrize("places_per_test", sizes(60, 10_000, 10))
def test_a_value_of_another_type_anywhere_is_refused(places_per_test: int) -> None:
    data, random = small_state(), Random(0)
    everywhere = list(places(data))
    refused = []
    for container, key in random.sample(everywhere, min(places_per_test, len(everywhere))):
        before = container[key]
        for container[key] in VALUES:
            refused.append(is_refused(data))
        container[key] = before
    assert sum(refused) > len(refused) * 0.8  # the others are of the type that stood there


def is_refused(data: Any) -> bool:
    try:
        read(Groups, data, checks_rows=True)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("extra", [{"_handlers": 1}, {"__class__": "os.system"}, {"_listeners": None}])
def test_an_attribute_that_a_group_does_not_have_is_refused(extra: dict[str, Any]) -> None:
    data = small_state()
    data["g"]["_recorder"] |= extra
    with pytest.raises(ValueError, match=f"expected no {next(iter(extra))}"):
        read(Groups, data)


def test_the_types_of_all_attributes_are_known() -> None:
    """A kind that the first value does not tell is in PARTS, and a compiled class is in FIELDS."""
    for kind, hints in PARTS.items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(vars(kind)["__init__"]))))
        annotated = {
            node.target.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute)
        }
        assert hints.keys() == annotated - OF_CONSTRUCTOR, (
            f"{kind.__name__}: change PARTS in groupstorm/watch/snapshot.py"
        )
    for kind, hints in FIELDS.items():
        wanted = get_type_hints(kind) | ({"of_group": dict[str, Any]} if kind is Settings else {})
        assert dict(hints) == wanted, f"{kind.__name__}: change FIELDS in groupstorm/watch/snapshot.py"


def test_the_fields_of_compiled_classes_are_known() -> None:
    hatch_build = pytest.importorskip("hatch_build", reason="needs hatchling: requirements/test.txt")
    compiled = {f"groupstorm.{module.replace('/', '.')}" for module in hatch_build.COMPILED}
    hints = [hint for known in (PARTS, FIELDS) for one in known.values() for hint in one.values()]
    for hint in hints:  # which grows meanwhile
        hints += get_args(hint)
        if inspect.isclass(hint) and hint.__module__.startswith("groupstorm.") and hint not in PARTS:
            hints += get_type_hints(hint).values() if not issubclass(hint, Enum) else ()
            assert hint in FIELDS or hint.__module__ not in compiled or issubclass(hint, Enum), (
                f"{hint.__name__}: add it to FIELDS in groupstorm/watch/snapshot.py"
            )
