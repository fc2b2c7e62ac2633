"""A record that kills the process which works on it, among the steps of a world: who dies, and what is said.

The world looks every half a second who works on the record, and kills it a second later.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.world.steps import WorldSteps
from tests.storms.test_steps_by_hand import SECOND, START, Host

P0 = TopicPartition("t", 3)


def host_with(owner: str, fatal: bool) -> Host:
    """Two processes run; a process of this name works on the record of offset 7 from the beginning."""
    host = Host(START)
    work = SimpleNamespace(owner=owner, position=lambda *_: 7)
    records: Any = SimpleNamespace(holders={P0: [work]}, logs=SimpleNamespace(end=lambda *_: 8))
    times: Any = SimpleNamespace(fatal={P0: (7, SECOND)} if fatal else {})
    host.records, host.slow_records = records, times
    world: Any = host
    WorldSteps(host.runner, world)
    assert host.until(0)[1:] == ["0 member-0 starts", "0 member-1 starts"]
    return host


def test_the_process_that_works_on_a_fatal_record_dies_of_it() -> None:
    host = host_with("member-1", fatal=True)
    assert host.until(1.4) == []
    assert host.until(1.5) == ["1.5 step crash member-1: of a record of t-3", "1.5 member-1 dies"]
    assert [*host.processes] == ["member-0"]
    assert host.until(10) == [], "it is gone"


@pytest.mark.parametrize(("owner", "fatal"), [("member-9", True), ("member-1", False)])
def test_nobody_dies_of_a_record_that_is_not_fatal_or_whose_owner_is_gone(owner: str, fatal: bool) -> None:
    host = host_with(owner, fatal)
    assert host.until(10) == []
    assert [*host.processes] == ["member-0", "member-1"]
