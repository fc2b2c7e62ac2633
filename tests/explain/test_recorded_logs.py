"""Recorded logs of real brokers and clients: explain tells what the harness did to the groups.

In this order: what failed, what was done on purpose, and last that the group was stopped.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from groupstorm.explain.explanation import Explanation, explain
from groupstorm.explain.findings import Finding
from groupstorm.explain.patterns.selecting import SECOND_US
from groupstorm.figures.accumulator import Window
from tests.explain.explaining import names
from tests.imports.real_logs import BOTH, BROKER, CLIENTS, Recording, Traces, each, recorded, recordings
from tests.imports.recording.situation import DYNAMIC, FENCED, MOVED, SEATS, STATIC

EVERY = each(recordings())
APPS = {"app-0", "app-1", "app-2"}
#: On a busy machine the static member that was restarted came back when its session had expired.
TOO_LATE = {"kafka-3.8.1-java"}
#: What may stand between the deployment and the end: a group that formed member by member, and a member that
#: worked on while it was too slow for its group.
ASIDE = {"formed-in-rounds", "zombie"}


class Explained:
    """The groups of all recordings, each imported and explained once."""

    def __init__(self, folder: Path) -> None:
        self._traces = Traces(folder)
        self.of = cache(self._explain)

    def _explain(self, recording: Recording, source: str, from_s: int = 0) -> dict[str, Explanation]:
        found = explain(self._traces.of(recording, source).folder, window=Window(from_s * SECOND_US))
        return {one.history.group: one for one in found}


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Explained:
    return Explained(tmp_path_factory.mktemp("traces"))


def named(one: Explanation, pattern: str) -> Finding:
    (found,) = [finding for finding in one.findings if finding.pattern.name == pattern]
    return found


@EVERY
@pytest.mark.parametrize("from_s", [0, 45])
def test_the_reasons_add_up_to_the_time_without_an_owner(
    recording: Recording, from_s: int, explained: Explained
) -> None:
    """Also of a part of the trace, and though the groups have no members at the end of it."""
    for one in explained.of(recording, BOTH, from_s).values():
        if one.history.unowned_us is not None:
            assert sum(one.reasons.us.values()) == pytest.approx(one.history.unowned_us, abs=1)


@EVERY
def test_a_group_of_dynamic_members(recording: Recording, explained: Explained) -> None:
    """app-1 is killed, app-2 does not poll for too long; before, all three are restarted one after the other;
    in the end all are closed, and then the broker."""
    one = explained.of(recording, BOTH)[DYNAMIC]
    first, second, third, *others = names(one)
    assert {first, second} == {"session-expired", "max-poll-interval"}
    assert third == "deploy-wave"
    assert set(others[:-1]) <= ASIDE
    assert others[-1] == "stopped"
    assert named(one, "session-expired").match.members == ("app-1",)
    assert named(one, "max-poll-interval").match.members == ("app-2",)
    wave = named(one, "deploy-wave").match
    assert wave.members == ("app-0", "app-1", "app-2")
    assert wave.sentence.startswith("3 members stopped and came back")
    assert set(named(one, "stopped").match.members) == APPS
    library = recording.clients.removesuffix("-consumer-group")
    assert {one.history.settings.libraries[name] for name in APPS} == {library}


@EVERY
def test_a_group_of_static_members(recording: Recording, explained: Explained) -> None:
    """web-1 is restarted, and its group does not rebalance; in the end all are closed, and expire. aiokafka
    does not log that it closes a static member: its members look as if they were gone, or stopped."""
    one = explained.of(recording, BOTH)[STATIC]
    found = names(one)
    if recording.name in TOO_LATE:
        assert found == ["static-session-too-short", "stopped"]
        assert named(one, "static-session-too-short").match.members == ("web-1",)
        return
    if recording.clients == "aiokafka":
        assert found == ["static-orphan", "static-restart"]
        assert set(named(one, "static-orphan").match.members) == {*SEATS}
        assert "if somebody stopped the group, nothing" in named(one, "static-orphan").pattern.advice
    else:
        assert found == ["static-restart", "stopped"]
        assert set(named(one, "stopped").match.members) == {*SEATS}
    back = named(one, "static-restart")
    assert back.match.members == ("web-1",)
    assert back.rebalances == []


WITH_TROUBLE = each(one for one in recordings() if FENCED in recorded(one))


@WITH_TROUBLE
def test_two_processes_with_one_instance_id(recording: Recording, explained: Explained) -> None:
    """The second one takes the first one's place, or in a consumer group is refused; aiokafka does not know
    the error, and its processes take the place from each other."""
    one = explained.of(recording, BOTH)[FENCED]
    found = named(one, "static-fenced").match
    assert names(one)[0] == "static-fenced"
    assert "seat-2" in found.sentence
    assert {*found.members} <= {"web-2", "web-3"}
    assert all(name in f"{found.sentence} {found.members}" for name in ("web-2", "web-3"))
    assert found.unknown == ""
    assert {"failing-members", "session-expired"}.isdisjoint(names(one))


@WITH_TROUBLE
def test_a_member_that_dies_after_its_coordinator_has_moved(
    recording: Recording, explained: Explained
) -> None:
    """The group rides the move out. app-1 is killed seconds later: the move is not to blame for that, nor for
    the members that are closed in the end."""
    one = explained.of(recording, BOTH)[MOVED]
    assert named(one, "session-expired").match.members == ("app-1",)
    assert len(named(one, "session-expired").rebalances) == 1
    assert named(one, "coordinator-moved").rebalances == []
    assert {*named(one, "stopped").match.members} == {"app-0", "app-2"}


@WITH_TROUBLE
def test_nothing_is_said_of_what_no_line_shows(recording: Recording, explained: Explained) -> None:
    """Twins do not stop, and members that end with their group are not replaced.

    Clients' logs do not say when a process was killed, and so not how long two worked on one partition.
    """
    both, alone = explained.of(recording, BOTH), explained.of(recording, CLIENTS)
    assert all("deploy-wave" not in names(both[group]) for group in (FENCED, MOVED))
    assert all("zombie" not in names(alone[group]) for group in (DYNAMIC, MOVED))


@EVERY
def test_the_end_of_a_recording_is_no_story(recording: Recording, explained: Explained) -> None:
    """Every recording ends with the end of its broker. Since Kafka 3.3 it logs that it unloads its groups."""
    for group, one in explained.of(recording, BOTH).items():
        assert ("coordinator-moved" in names(one)) == (group == MOVED)
        if recording.release != "2.8.2":
            assert one.history.ended is not None
            assert one.history.ended.time_us == one.history.last_us


@each(one for one in recordings() if one.is_consumer_group)
@pytest.mark.parametrize("source", [BROKER, BOTH])
def test_each_epoch_of_a_consumer_group_counts(
    recording: Recording, source: str, explained: Explained
) -> None:
    found = explained.of(recording, source)
    for group, one in found.items():
        seen = {each["epoch"] for each in recorded(recording)[group]["written"] if each["kind"] == "epoch"}
        epochs = [round_.begun["generation"] for each in one.history.rebalances for round_ in each.rounds]
        assert epochs == sorted(seen - {0})
        assert all(each.culprit for each in one.history.rebalances)
        causes = {each.cause for each in one.history.rebalances}
        if group in (STATIC, FENCED):
            assert causes == {"static-member", "session-expired"}
        else:
            assert causes == {"new-member", "left", "session-expired"}
    if source == BOTH:
        for one in found.values():
            costs = [each.unowned_us for each in one.history.rebalances]
            costs += [each.unowned_us for each in one.history.absences]
            assert one.history.unowned_us == sum(costs)
