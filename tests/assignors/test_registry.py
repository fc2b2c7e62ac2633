"""Assignors by name: Kafka's, entry points, module:attribute."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from groupstorm.assignors import registry
from groupstorm.assignors.contract import AssignmentResult, MapOrder, RebalanceProtocol
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.problems import InputError


class EverythingToTheFirst:
    """A third party's assignor: no base class, only the attributes."""

    name = "first"
    protocols = (RebalanceProtocol.EAGER,)
    needs_equal_subscriptions = False

    def user_data(self, owned: object, generation: int) -> None:
        return None

    def assign(self, topics: dict, subscriptions: dict) -> AssignmentResult:
        every = [TopicPartition(topic, p) for topic in topics for p in range(topics[topic].partitions)]
        first = min(subscriptions)
        return AssignmentResult({member: every if member == first else [] for member in subscriptions})


class OpensAFile(EverythingToTheFirst):
    def __init__(self) -> None:
        raise FileNotFoundError("weights.json")


class WantsArguments(EverythingToTheFirst):
    def __init__(self, needed: int) -> None:
        self.needed = needed


made = EverythingToTheFirst()
not_an_assignor = object()


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_ours_by_their_names(name: str) -> None:
    """The name that is asked for is the one that travels in JoinGroup; docs/assignors.md has the rest."""
    assert registry.get(name).name == name
    one, other = (registry.get(name, order=MapOrder.SORTED, bug_compat=True) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("attribute", ["EverythingToTheFirst", "made"])
def test_a_class_or_an_object_of_a_module(attribute: str) -> None:
    assert registry.get(f"{__name__}:{attribute}").name == "first"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stickyy", "did you mean sticky"),
        ("no.such.module:X", "to import: ModuleNotFoundError: No module named"),
        ("./my_assignor.py:X", "to import: TypeError"),
        (f"{__name__}:OpensAFile", "to make without arguments: FileNotFoundError: weights.json"),
        (f"{__name__}:nothing", "to import"),
        (":X", "to import"),
        (f"{__name__}:not_an_assignor", "this has no assign"),
        (f"{__name__}:WantsArguments", "without arguments"),
        ("builtins:dict", "no assign"),
    ],
)
def test_what_cannot_be_found_is_named(name: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        registry.get(name)
    assert repr(name) in str(raised.value)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_module_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_at_once.py").write_text("import os; os.environ['WEIGHTS_OF_NOBODY']", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"'fails_at_once:X': expected a plug-in to import: KeyError"):
        registry.get("fails_at_once:X")


def test_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("first-come", f"{__name__}:EverythingToTheFirst", registry.ENTRY_POINT_GROUP)

    def entry_points(**chosen: Any) -> EntryPoints:
        return EntryPoints([entry]).select(**chosen)

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert registry.get("first-come").name == "first"
    assert registry.names() == [*registry.BUILT_IN, "first-come"]
