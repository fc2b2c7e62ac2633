"""Runs a scenario: steps in, what the coordinator answered and became out, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Request, Response
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.script.clients import Clients, InvalidStep
from groupstorm.coordinator.script.fields import LONG_MAX, whole_number
from groupstorm.coordinator.script.names import Names, is_name
from groupstorm.coordinator.script.printing import (
    ids_in_groups,
    ids_in_response,
    print_group,
    print_response,
)
from groupstorm.coordinator.script.requests import Scene, append_error, build_request
from groupstorm.coordinator.script.scenario import (
    Scenario,
    ScenarioFailed,
    broker_config,
    initial_topics,
    partition_counts,
    read_scenario,
)
from groupstorm.problems import InputError

#: More timers than this at one instant do not end by themselves.
_TIMERS_AT_ONCE_MAX = 100_000


class _Sent(NamedTuple):
    """A request that was made, and whose it was."""

    step: int
    kind: str
    label: str
    shown_label: str | None
    request: Request
    by_members: bool


def run_lines(lines: Iterable[str], place: str, *, changes: bool) -> Iterator[str]:
    """One JSON line per scenario; `InputError` at the first line that is none. Empty lines do not count."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            scenario = read_scenario(line, f"{place}:{number}")
            yield json.dumps(
                run_scenario(scenario, changes=changes), ensure_ascii=False, separators=(",", ":")
            )


def run_scenario(
    scenario: Scenario, *, changes: bool, coordinator: Callable[..., GroupCoordinator] = GroupCoordinator
) -> dict[str, Any]:
    """The scenario's answer; ``changes``: a state is shown only where it differs from the one before.

    ``coordinator`` makes the one that is asked, as `GroupCoordinator` does: one that watches itself, or
    one with a fault put in.
    """
    try:
        run = _Run(scenario, coordinator, changes)
        for index, step in enumerate(scenario.steps):
            run.take(index, step)
    except ScenarioFailed as problem:
        return {"id": scenario.id, "failed": str(problem)}
    return {"id": scenario.id, "events": run.finish(), "ids": run.names.ids}


class _Run:
    def __init__(
        self, scenario: Scenario, coordinator: Callable[..., GroupCoordinator], changes: bool
    ) -> None:
        self.names = Names(scenario.id)
        self._clients = Clients(self.names)
        self._topics = dict(initial_topics(scenario))
        self._changes = changes
        self._append_error: Error | None = None
        config = broker_config(scenario)
        self._coordinator = coordinator(config, member_ids=self.names.draw, append=self._append)
        self._now_ms = 0
        self._step = 0
        self._events: list[dict[str, Any]] = []
        self._state: dict[str, Any] | None = None
        #: Requests without an answer, by the index of their step, which is their token.
        self._unanswered: dict[Hashable, _Sent] = {}
        #: Answers of this moment: they are shown by step.
        self._answers: list[tuple[_Sent, Response]] = []

    def _append(self, records: Sequence[Record], cause: AppendCause) -> tuple[int, Error | None]:
        del records, cause
        return 0, self._append_error

    def take(self, index: int, step: Mapping[str, Any]) -> None:
        """One step, and everything that is due after it."""
        self._step = index
        label = step.get("as", "")
        if not isinstance(label, str) or is_name(label):
            raise ScenarioFailed(f"steps[{index}]: as: {label!r} cannot be a client's label")
        try:
            if not self._wanted(step, label):
                pass
            elif step.get("op") == "advance":
                self._advance(whole_number("ms", step.get("ms"), LONG_MAX))
            elif step.get("op") == "topics":
                self._change_topics(step)
            else:
                self._request(step, label)
        except InvalidStep as problem:
            self._show("invalid", why=str(problem))
        self._fire_due()
        self._end_moment(always=True)

    def _wanted(self, step: Mapping[str, Any], label: str) -> bool:
        """`when`: the label's last answer, whole or its error alone."""
        if "when" not in step or step["when"] is None:
            return True
        when = step["when"] if isinstance(step["when"], list) else [step["when"]]
        last = self._clients.get(label).last
        return last is not None and (last in when or last.partition(":")[2] in when)

    def _request(self, step: Mapping[str, Any], label: str) -> None:
        request = build_request(step, label, Scene(self._clients, self.names, self._topics))
        error = append_error(step)
        kind = str(step["op"])
        sent = _Sent(
            self._step, kind, label, label if "as" in step else None, request, by_members="members" in step
        )
        self._unanswered[self._step] = sent
        self._clients.get(label).sent(kind, request)
        self._append_error = error
        effects = self._coordinator.handle(request, self._now_ms, self._step)
        self._append_error = None
        self._receive(effects, own=self._step)

    def _receive(self, effects: Effects, own: int | None = None) -> None:
        """Clients remember the answers in the order of completion, that of the step itself last."""
        replies = sorted(effects.replies, key=lambda reply: reply[0] == own)
        for token, response in replies:
            sent = self._unanswered.pop(token)
            self._clients.get(sent.label).answered(
                sent.kind,
                getattr(sent.request, "member_id", None),
                response,
                by_members=sent.by_members,
            )
            self._answers.append((sent, response))

    def _change_topics(self, step: Mapping[str, Any]) -> None:
        """A new metadata image; offsets of removed topics go with them."""
        removed = step.get("remove", [])
        if not isinstance(removed, list) or not all(isinstance(topic, str) for topic in removed):
            raise InvalidStep(f"remove: {removed!r} is no list of topics")
        try:
            self._topics.update(partition_counts(step.get("set", {})))
        except InputError as problem:
            raise InvalidStep(f"set: {problem}") from problem
        known = [topic for topic in removed if self._topics.pop(topic, None) is not None]
        self._receive(self._coordinator.on_topics_deleted(known, self._now_ms))

    def _advance(self, duration_ms: int) -> None:
        """From deadline to deadline, each at its own millisecond."""
        if duration_ms < 0:
            raise InvalidStep(f"ms: {duration_ms} would turn the clock back")
        until_ms = self._now_ms + duration_ms
        while (deadline_ms := self._coordinator.next_deadline()) is not None and deadline_ms < until_ms:
            self._now_ms = max(deadline_ms, self._now_ms)
            self._fire_due()
            self._end_moment(always=False)
        self._now_ms = until_ms

    def _fire_due(self) -> None:
        for _ in range(_TIMERS_AT_ONCE_MAX):
            effects = self._coordinator.fire_one(self._now_ms)
            if effects is None:
                return
            self._receive(effects)
        raise ScenarioFailed(f"steps[{self._step}]: at {self._now_ms} ms timers set each other without end")

    def _end_moment(self, *, always: bool) -> None:
        """Name the ids that were seen now, then show the answers and the state."""
        names = self.names
        groups = [
            group for name in self._coordinator.groups if (group := self._coordinator.group(name)) is not None
        ]
        names.see(member for _, response in self._answers for member in ids_in_response(response))
        names.see(ids_in_groups(groups))
        for sent, response in sorted(self._answers, key=lambda answer: answer[0].step):
            label = {} if sent.shown_label is None else {"as": sent.shown_label}
            self._show(sent.kind, step=sent.step, **label, **print_response(response, names))
        self._answers.clear()
        state = {group.name: print_group(group, names) for group in groups}
        if state != self._state or (always and not self._changes):
            self._show("state", groups=state)
        self._state = state

    def _show(self, kind: str, *, step: int | None = None, **fields: Any) -> None:
        at = {"t": self._now_ms, "step": self._step if step is None else step, "kind": kind}
        self._events.append(at | fields)

    def finish(self) -> list[dict[str, Any]]:
        """All events; requests that were never answered come last."""
        for sent in sorted(self._unanswered.values(), key=lambda sent: sent.step):
            self._show("pending", step=sent.step, of=sent.kind)
        return self._events
