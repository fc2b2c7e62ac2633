"""Counts what scripts reached: answers by error, requests by the group's state, transitions, removals.

Answers are Kafka's. What happened inside is read off our coordinator's events, which the comparison holds
against Kafka's states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.messages import ListGroups, Request
from groupstorm.trace.events.coordinator import Event, GroupStateChanged, MemberReconciled
from tests.oracle.comparison import Answer

#: What a group is called that is not there.
NO_GROUP = "no group"


class Coverage:
    """Counts; `watch` makes the coordinators that are counted."""

    def __init__(self) -> None:
        self.scripts = 0
        self.failed = 0
        self.steps = 0
        #: (kind of answer, error) -> answers; an OffsetCommit counts once for every error that it holds.
        self.answers: Counter[tuple[str, str]] = Counter()
        #: (kind of request, state of its group) -> requests.
        self.requests: Counter[tuple[str, str]] = Counter()
        #: (state, cause) -> changes.
        self.transitions: Counter[tuple[str, str]] = Counter()
        #: (event, cause) -> events, for all other events that have a cause.
        self.causes: Counter[tuple[str, str]] = Counter()
        #: (state before, state after) -> changes of members of consumer groups.
        self.reconciliations: Counter[tuple[str, str]] = Counter()
        self._member_states: dict[tuple[str, str], str] = {}

    def watch(self, *arguments: Any, **options: Any) -> GroupCoordinator:
        """A coordinator whose doings are counted here."""
        self._member_states.clear()
        return _Watched(self, *arguments, **options)

    def count_answer(self, steps: int, answer: Answer) -> None:
        """A script was answered."""
        self.scripts += 1
        self.steps += steps
        self.failed += "failed" in answer
        for event in answer.get("events", ()):
            for error in errors_of(event):
                self.answers[event["kind"], error] += 1

    def count_events(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, MemberReconciled):
                key = (event.group, event.member_id)
                self.reconciliations[self._member_states.get(key, "new"), event.state] += 1
                self._member_states[key] = event.state
            if isinstance(event, GroupStateChanged):
                self.transitions[event.previous_state, event.cause] += 1
            elif isinstance(cause := getattr(event, "cause", None), str):
                self.causes[type(event).__name__, cause] += 1
            else:
                self.causes[type(event).__name__, ""] += 1

    def features(self) -> set[tuple[str, ...]]:
        """Everything that was reached at least once."""
        found: set[tuple[str, ...]] = set()
        for name in ("answers", "requests", "transitions", "causes", "reconciliations"):
            counter: Counter[tuple[str, str]] = getattr(self, name)
            found |= {(name, *key) for key in counter}
        return found


def errors_of(event: dict[str, Any]) -> set[str]:
    """The errors of an answer; none for what is no answer."""
    if event["kind"] == "commit":
        return {error for _, _, error in event["partitions"]} or {"NONE"}
    return {event["error"]} if "error" in event else set()


class _Watched(GroupCoordinator):
    """Does as it always does, and is counted."""

    def __init__(self, coverage: Coverage, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._coverage = coverage

    def handle(
        self, request: Request, now_ms: int, token: Hashable, may_match: Callable[[str], bool] | None = None
    ) -> Effects:
        if not isinstance(request, ListGroups):
            group = self.group(request.group)
            state = NO_GROUP if group is None else group.state.value
            if group is not None and group.kind is not GroupType.CLASSIC:
                state = f"{group.kind.value} {state}"
            self._coverage.requests[type(request).__name__, state] += 1
        return self._count(super().handle(request, now_ms, token, may_match))

    def fire_one(self, now_ms: int) -> Effects | None:
        effects = super().fire_one(now_ms)
        return effects if effects is None else self._count(effects)

    def _count(self, effects: Effects) -> Effects:
        self._coverage.count_events(effects.events)
        return effects
