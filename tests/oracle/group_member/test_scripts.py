"""Our members of groups do what Kafka's classes did in the same script: of a consumer group (4.3.1, JDK 17),
and of a streams group (4.4.0)."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.needs import needed
from tests.oracle.group_member.command import KINDS, MemberKind, Recording, changes, run
from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    INTERVAL_MS,
    POLL,
    STEP,
    Situation,
    advance,
    subscribe,
)
from tests.soaking import sizes

each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))

_STATES = {
    *("UNSUBSCRIBED", "JOINING", "RECONCILING", "ACKNOWLEDGING", "STABLE", "FENCED"),
    *("PREPARE_LEAVING", "LEAVING", "FATAL", "STALE"),
}


@each_kind
def test_our_member_does_what_kafkas_does(kind: MemberKind) -> None:
    assert [str(found) for found in kind.differing(kind.read_golden().items())] == []


@pytest.mark.parametrize(
    ("name", "methods", "fields"),
    [
        ("group-member", {"onPartitionsAssigned", "onPartitionsRevoked", "onPartitionsLost"},
         {"topics", "regex", "assignor", "owned", "instance", "rack", "rebalance_timeout"}),
        ("streams-thread", {"onTasksAssigned", "onTasksRevoked", "onAllTasksLost"},
         {"topology", "active", "standby", "warmup", "offsets", "end_offsets", "instance", "rack"}),
    ],
)  # fmt: skip
def test_the_recordings_meet_every_state_callback_and_field(
    name: str, methods: set[str], fields: set[str]
) -> None:
    golden = KINDS[name].read_golden()
    assert list(golden) == list(KINDS[name].kept)
    steps = [step for recording in golden.values() for step in recording]
    assert {step["state"] for step in steps if "state" in step} == _STATES
    seen = [one for step in steps for one in step.get("seen", ())]
    assert {one["callback"]["method"] for one in seen if "callback" in one} == methods
    told = {field for one in seen for field, value in one.get("sent", {}).items() if value not in (None, [])}
    assert told >= fields


@pytest.mark.parametrize(("lag", "told"), [(11, None), (10, {"0_0": 90}), (9, {"0_0": 90})])
def test_a_warm_up_task_that_has_caught_up_is_told_before_the_interval_is_over(
    lag: int, told: dict[str, int] | None
) -> None:
    """Kafka's classes did so in this script: the interval is a minute, acceptable.recovery.lag 10."""
    fields = {"epoch": 1, "interval": INTERVAL_MS, "offset_interval": 60_000, "recovery_lag": 10}
    warm_up = {"active": {}, "standby": {}, "warmup": {"0": [0]}}
    taken = (STEP, CALLBACK_BEGINS, CALLBACK_ENDS, STEP)
    progress = (("offsets", {"0_0": 90}), ("end_offsets", {"0_0": 90 + lag}))
    steps = (
        *(subscribe("t", "u", "v"), POLL, STEP, ("answer", {**fields, **warm_up}), *taken),
        *(("answer", fields), *progress, advance(INTERVAL_MS), POLL, STEP),
    )
    *_, last = KINDS["streams-thread"].play(Situation("warm-up", steps))
    assert last["seen"][0]["sent"]["offsets"] == told


@each_kind
def test_a_difference_ends_the_command_with_1_both_sides_and_the_steps_up_to_it(
    kind: MemberKind, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(situations: Iterable[Situation]) -> Iterator[Recording]:
        for situation in situations:
            recording = changes(kind.play(situation))
            yield [*recording[:1], {**recording[1], "epoch": 9}, *recording[2:]]

    assert run(Namespace(count=2, first=5, write_golden=False), kind._replace(ask=other)) == 1
    lines = capsys.readouterr().out.splitlines()
    first, second = (" ".join(map(str, step)) for step in kind.draw(5).steps[:2])
    assert lines[0] == f"5: {first}, {second}"
    assert lines[1].startswith("    Kafka: {")
    assert "'epoch': 9" in lines[1]
    assert lines[2].startswith("    ours:  {")
    assert lines[-1] == "scripts: 2; different: 2"


@each_kind
def test_recordings_are_written_as_they_are_read(kind: MemberKind, tmp_path: Path) -> None:
    recordings = kind.read_golden()
    told = kind._replace(
        golden=tmp_path / "golden.jsonl",
        ask=lambda situations: (recordings[int(situation.name)] for situation in situations),
    )
    assert run(Namespace(count=0, first=0, write_golden=True), told) == 0
    assert told.golden.read_bytes() == kind.golden.read_bytes()


@pytest.mark.slow
@each_kind
@pytest.mark.parametrize("scripts", sizes(1_000, 10_000, within_minutes=30))
def test_scripts_do_not_differ_from_kafkas_own_classes(kind: MemberKind, scripts: int) -> None:
    numbers = sorted({*kind.kept, *range(scripts)})
    with needed():
        recorded = dict(kind.record(numbers))
    assert {number: recorded[number] for number in kind.kept} == kind.read_golden()
    assert [str(found) for found in kind.differing(recorded.items())] == []
