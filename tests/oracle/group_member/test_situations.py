"""Our member of a consumer group does what Kafka's classes (4.3.1, JDK 17) did in the same situation."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.oracle.build import Built
from tests.oracle.group_member.drawing import draw
from tests.oracle.group_member.playing import play
from tests.oracle.group_member.recordings import Recording, ask, changes, difference, read_golden
from tests.oracle.group_member.situation import Situation
from tests.oracle.group_member.situations import SITUATIONS

#: How many drawn scripts the tests run against Kafka itself.
SCRIPTS = 1_000


@pytest.fixture(scope="module")
def golden() -> Mapping[str, Recording]:
    return read_golden()


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_our_member_does_what_kafkas_does(situation: Situation, golden: Mapping[str, Recording]) -> None:
    found = difference(situation, golden[str(situation)])
    assert found is None, str(found)


def test_the_recordings_are_those_of_the_table(golden: Mapping[str, Recording]) -> None:
    assert list(golden) == [str(situation) for situation in SITUATIONS]


def test_a_difference_is_found_where_it_is(golden: Mapping[str, Recording]) -> None:
    first = SITUATIONS[0]
    recording = [dict(state) for state in golden[str(first)]]
    recording[4]["seen"] = []
    found = difference(first, recording)
    assert found is not None
    assert found.at == 4
    assert str(found).startswith("join and acknowledge: topic t, topic u, subscribe ['t'], poll, step\n")


def test_every_state_is_met() -> None:
    met = {
        state["state"] for situation in SITUATIONS for state in changes(play(situation)) if "state" in state
    }
    assert met == {
        "UNSUBSCRIBED",
        "JOINING",
        "RECONCILING",
        "ACKNOWLEDGING",
        "STABLE",
        "FENCED",
        "PREPARE_LEAVING",
        "LEAVING",
        "FATAL",
        "STALE",
    }


def test_a_script_is_drawn_by_its_number() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


@pytest.mark.slow
def test_kafkas_classes_still_do_what_was_recorded(built: Built, golden: Mapping[str, Recording]) -> None:
    live = {str(situation): recording for situation, recording in ask(built, SITUATIONS)}
    assert live == golden


@pytest.mark.slow
def test_drawn_scripts_do_not_differ(built: Built) -> None:
    drawn = [draw(number) for number in range(SCRIPTS)]
    assert [str(found) for one in ask(built, drawn) if (found := difference(*one))] == []
