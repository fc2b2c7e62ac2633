"""docs/testing.md says what `groupstorm.broker` takes and does."""

from __future__ import annotations

import inspect
import re

import pytest

import groupstorm
from groupstorm import testing
from groupstorm.coordinator.classic.states import DEAD
from groupstorm.testing.control import KEPT_EVENTS
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S
from groupstorm.trace.events.group_states import GroupState
from tests.generated_pages import DOCS

PAGE = (DOCS / "testing.md").read_text("utf-8")


def first_cells(head: str) -> str:
    """The first column of the table with this head."""
    table = PAGE.partition(head)[2].partition("\n\n")[0]
    return "\n".join(line.split(" | ")[0] for line in table.splitlines())


def test_the_arguments_are_those_of_the_function() -> None:
    named = set(re.findall(r"`(\w+)=", first_cells("| argument | |")))
    assert named == set(inspect.signature(groupstorm.broker).parameters)


def test_the_marker_takes_the_same_arguments() -> None:
    from groupstorm.testing.chosen import EMULATOR_ONLY, EVERYWHERE

    of_the_function = set(inspect.signature(groupstorm.broker).parameters) - {"port"}
    assert {*EVERYWHERE, *EMULATOR_ONLY} == of_the_function


def test_the_calls_that_make_things_go_wrong_are_those_of_the_broker() -> None:
    named = set(re.findall(r"`broker\.(\w+)\(", first_cells("| call | what happens |")))
    calls = {name for name, _ in inspect.getmembers(testing.Broker, inspect.isfunction) if name[0] != "_"}
    assert named == calls - {
        *("produce", "records", "topic", "create_topic", "group", "in_flight", "start", "stop")
    }


def test_what_only_the_emulator_does_is_named() -> None:
    row = next(line for line in PAGE.splitlines() if "`EmulatorOnly`" in line and line[0] == "|")
    said = {
        name
        for name, call in inspect.getmembers(testing.Broker)
        if (inspect.getdoc(call) or "").endswith("The emulator only.")
    }
    assert set(re.findall(r"`(\w+)`", row)) - {"EmulatorOnly"} == said


def test_the_page_names_every_attribute_of_a_group() -> None:
    named = set(re.findall(r"`group\.(\w+)", first_cells("| attribute | |")))
    shown = {name for name, value in inspect.getmembers(testing.Group) if isinstance(value, property)} | {
        "committed",
        "lag",
    }
    assert named == shown


@pytest.mark.parametrize("state", [*map(str, GroupState), DEAD])
def test_every_state_is_named(state: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `group.state` |"))
    assert f"`{state}`" in row


def test_waiting_ends_after_as_long_as_the_page_says() -> None:
    assert f"`timeout_s` is {DEFAULT_TIMEOUT_S:g}" in PAGE


def test_every_import_of_the_page_is_exported() -> None:
    for names in re.findall(r"from groupstorm\.testing import ([\w, ]+)", PAGE):
        assert set(names.split(", ")) <= set(testing.__all__)


def test_the_trace_over_http_has_as_many_rows_as_the_page_says() -> None:
    assert f"the last\n{KEPT_EVENTS:,}" in PAGE
