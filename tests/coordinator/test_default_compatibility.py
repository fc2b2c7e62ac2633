"""By default the coordinator is Kafka 4.4.0's, but for the defects that docs/coordinator.md names.

Every script that Kafka 4.4.0 has answered runs under the default setting, and every one that 4.3.1 has
answered under `4.3.1-repaired`. All answers are Kafka's, except in the scripts that are named here: each
shows one of these defects.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.trace.events import coordinator as events
from tests.coordinator.test_script_golden import _cases
from tests.oracle import golden
from tests.oracle.comparison import changes_only, difference
from tests.oracle.differential import our_answer
from tests.soaking import one_in

#: A member's metadata announces lengths that cannot be true: Kafka 4.3.1 freezes the group.
LYING_METADATA = {
    *("golden-268", "golden-501", "golden-2083", "golden-2552", "golden-2658", "golden-2719", "golden-2829"),
    *("golden-3047", "golden-3257", "golden-3754", "golden-3768", "golden-3823"),
}
#: A commit could not be written: Kafka 4.3.1 reverts its tables so that a fetch of all offsets shows
#: partitions twice or in another order.
REVERTED_COMMIT = {
    *("golden-928", "golden-1063", "golden-2810"),
    *("reverted-twice", "reverted-order", "reverted-growth", "reverted-by-others"),
}

#: A request that fails leaves a remembered assignment behind, to which Kafka 4.4.0 brings members later.
REMEMBERED = {"D39", "D41", "D42", "D43", "D44"}

_NAMED = LYING_METADATA | REVERTED_COMMIT | REMEMBERED

_RECORDED = [
    *(pytest.param(one.case, one.answer, id=one.case["id"]) for one in golden.read()),
    *(
        pytest.param(json.loads(line), changes_only(json.loads(answer)), id=json.loads(line)["id"])
        for line, answer in (case.values for case in _cases())
    ),
]


def _coordinator(
    compatibility: Compatibility, seen: list[events.Event] | None = None
) -> Callable[..., GroupCoordinator]:
    class Watched(GroupCoordinator):
        def handle(self, *request: Any) -> Effects:
            return self._watched(super().handle(*request))

        def fire_one(self, now_ms: int) -> Effects | None:
            effects = super().fire_one(now_ms)
            return None if effects is None else self._watched(effects)

        def _watched(self, effects: Effects) -> Effects:
            if seen is not None:
                seen.extend(effects.events)
            return effects

    return lambda config, **more: Watched(replace(config, compatibility=compatibility), **more)


def _sample(cases: list[Any]) -> list[Any]:
    """Return the scripts that are named here, and one in eight of the others, whose answers
    `test_script_golden.py` holds, too."""
    named, others = ([one for one in cases if (one.id in _NAMED) is chosen] for chosen in (True, False))
    return [*named, *one_in(8, others)]


@pytest.mark.parametrize(("script", "kafkas"), _sample(_RECORDED))
def test_answers_are_those_of_4_3_1_but_for_the_named_defects(script: Any, kafkas: Any) -> None:
    ours = changes_only(our_answer(script, _coordinator(Compatibility.REPAIRED)))
    name = script["id"]
    if name not in LYING_METADATA | REVERTED_COMMIT:
        assert difference(kafkas, ours) is None
        return
    assert difference(kafkas, ours) is not None, f"{name} shows no defect any more"
    seen: list[events.Event] = []
    our_answer(script, _coordinator(Compatibility.KAFKA_4_3_1, seen))
    if name in LYING_METADATA:
        broken_off = [event.detail for event in seen if isinstance(event, events.OperationFailed)]
        assert any("unreadable subscription" in detail for detail in broken_off)
    else:
        failed = [event.cause for event in seen if isinstance(event, events.AppendFailed)]
        assert "offset-commit" in failed
        pairs = zip(ours["events"], kafkas["events"], strict=True)
        assert {mine["kind"] for mine, theirs in pairs if mine != theirs} == {"fetch_offsets"}


@pytest.mark.parametrize(("line", "answer"), _sample(_cases(Compatibility.KAFKA_4_4_0)))
def test_answers_are_kafkas_but_for_the_named_defects(line: str, answer: str) -> None:
    default = CoordinatorConfig().compatibility
    ours = run_scenario(read_scenario(line, "golden"), changes=False, kafka=default)
    is_kafkas = json.loads(json.dumps(ours)) == json.loads(answer)
    assert is_kafkas is (json.loads(line)["id"] not in REMEMBERED)


def test_scripts_themselves_run_to_the_letter() -> None:
    """`groupstorm script` takes no default from here."""
    [line] = [case.values[0] for case in _cases() if case.id == "reverted-twice"]
    assert isinstance(line, str)
    shown = run_scenario(read_scenario(line, "golden"), changes=False)
    partitions = [event["partitions"] for event in shown["events"] if event["kind"] == "fetch_offsets"]
    assert any(len(listed) > len({tuple(one[:2]) for one in listed}) for listed in partitions)
