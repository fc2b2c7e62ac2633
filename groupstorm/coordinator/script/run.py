"""Runs a scenario in virtual time: steps in, the coordinator's answers and states out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.config_options import ConfigError, check_group
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import NO_ERROR, CoordinatorFault, Error
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.messages import DeleteGroup, DeleteGroupResponse
from groupstorm.coordinator.script.clients import InvalidStep, Names, is_name, topic_uuid
from groupstorm.coordinator.script.driver import (
    Answered,
    Driver,
    EndlessTimers,
    ScriptedPersister,
    Sent,
    StreamsSetting,
    persister_error,
)
from groupstorm.coordinator.script.fields import LONG_MAX, Fields, whole_number
from groupstorm.coordinator.script.modern_requests import group_options
from groupstorm.coordinator.script.printing import (
    ids_in_groups,
    ids_in_response,
    print_group,
    print_initialization,
    print_response,
)
from groupstorm.coordinator.script.scenario import (
    Scenario,
    ScenarioFailed,
    broker_config,
    group_options_of,
    initial_topics,
    partition_counts,
    read_scenario,
)
from groupstorm.problems import InputError


def run_lines(lines: Iterable[str], place: str, run: Callable[[Scenario], dict[str, Any]]) -> Iterator[str]:
    """One JSON line per scenario; empty lines are skipped. `InputError`: a line is not a scenario."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            answer = run(read_scenario(line, f"{place}:{number}"))
            yield json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def run_scenario(
    scenario: Scenario,
    *,
    changes: bool,
    kafka: Compatibility = Compatibility.KAFKA_4_3_1,
    coordinator: Callable[..., GroupCoordinator] = GroupCoordinator,
) -> dict[str, Any]:
    """The scenario's answer; ``changes``: a state is shown only if it differs from the one before.

    ``coordinator`` makes the coordinator, as `GroupCoordinator` does; tests pass one that counts what it
    reaches, or one with a fault.
    """
    try:
        run = _Run(scenario, kafka, coordinator, changes)
        for index, step in enumerate(scenario.steps):
            run.take(index, step)
    except ScenarioFailed as problem:
        return {"id": scenario.id, "failed": str(problem)}
    return {"id": scenario.id, "events": run.finish(), "ids": run.names.ids}


class _Run:
    """One scenario in progress."""

    def __init__(
        self,
        scenario: Scenario,
        kafka: Compatibility,
        coordinator: Callable[..., GroupCoordinator],
        changes: bool,
    ) -> None:
        self.names = Names(scenario.id)
        self._changes = changes
        topics = initial_topics(scenario)
        self._config = broker_config(scenario, kafka)
        self._persister = ScriptedPersister()
        self._driver = Driver(
            self._config,
            names=self.names,
            topics=topics,
            has_racks=scenario.config.get("racks", False),
            coordinator=partial(coordinator, persister=self._persister),
            streams=StreamsSetting(
                scenario.config.get("topologies", {}), scenario.config.get("description_plugin", False)
            ),
        )
        self._is_4_4 = kafka.is_4_4
        self._logs_persister = scenario.config.get("persister_log", False)
        self._topic_names = {topic_uuid(name): name for name in topics}
        for group, options in group_options_of(scenario).items():
            self._driver.coordinator.set_group_options(group, options)
        self._step = 0
        #: The client labels that steps name: answers to them show the label.
        self._labels: dict[int, str] = {}
        #: The answers so far to DeleteGroups steps, which have a request for each group.
        self._deleted: dict[int, list[list[str]]] = {}
        self._events: list[dict[str, Any]] = []
        self._state: dict[str, Any] | None = None
        #: Answers of this moment: they are shown by step.
        self._answers: list[Answered] = []
        #: The fields of the answer to an administrator's step, which is this one.
        self._administered: dict[str, Any] | None = None

    def take(self, index: int, step: Mapping[str, Any]) -> None:
        """One step, and every timer that is due after it."""
        self._step = index
        label = step.get("as", "")
        if not isinstance(label, str) or is_name(label):
            raise ScenarioFailed(f"steps[{index}]: as: {label!r} cannot be a client's label")
        try:
            # it is asked behind the step's answer, so this holds until the next step
            self._persister.error = persister_error(step)
            if not self._wanted(step, label):
                pass
            elif step.get("op") == "advance":
                self._advance(whole_number("ms", step.get("ms"), LONG_MAX))
            elif step.get("op") == "topics":
                self._change_topics(step)
            elif step.get("op") in ("end_txn", "check_config"):
                self._administer(step, label)
            elif step.get("op") == "delete_groups":
                self._delete_groups(step)
            elif step.get("op") == "reload":
                self._reload()
            elif step.get("op") == "group_config":
                self._change_group(step)
            else:
                self._request(step)
        except InvalidStep as problem:
            self._show("invalid", why=str(problem))
        self._fire_due()
        self._end_moment(always=True)

    def _wanted(self, step: Mapping[str, Any], label: str) -> bool:
        """`when`: the label's last answer, whole or its error alone."""
        if "when" not in step or step["when"] is None:
            return True
        when = step["when"] if isinstance(step["when"], list) else [step["when"]]
        last = self._driver.clients.get(label).last
        return last is not None and (last in when or last.partition(":")[2] in when)

    def _request(self, step: Mapping[str, Any]) -> None:
        if "as" in step:
            self._labels[self._step] = step["as"]
        self._answers += self._driver.send_step(step, self._step).answers

    def _administer(self, step: Mapping[str, Any], label: str) -> None:
        """A step that is no request to the coordinator: the end of a transaction, which comes as a marker,
        or the check that a broker makes of a group's options before it sets them."""
        fields = Fields(step)
        if step["op"] == "end_txn":
            producer = whole_number("producer", fields.value("producer", 1), LONG_MAX)
            is_commit = fields.flag("commit", default=True)
            self._answers += self._driver.end_transaction(producer, is_commit).answers
            own: dict[str, Any] = {"error": NO_ERROR.name}
        else:
            own = _check_config(fields, self._config)
        self._administered = {"kind": step["op"], **({"as": label} if "as" in step else {}), **own}

    def _delete_groups(self, step: Mapping[str, Any]) -> None:
        """DeleteGroups: the coordinator has a request for each group, the step one answer.

        Kafka asks the persister about share groups first, then the plugin about streams groups. The other
        groups wait for their answers.
        """
        groups = step.get("groups", [step.get("group", "g")])
        if not isinstance(groups, list) or not groups or not all(isinstance(one, str) for one in groups):
            raise InvalidStep(f"groups: {groups!r} is no list of groups")
        if "as" in step:
            self._labels[self._step] = step["as"]
        for group in sorted(dict.fromkeys(groups), key=self._deletion_turn):
            token = self._step, group
            self._answers += self._driver.send_step({**step, "group": group}, token).answers
            if token in self._driver.unanswered:
                return

    def _deletion_turn(self, name: str) -> int:
        group = self._driver.coordinator.group(name)
        first = (GroupType.SHARE, GroupType.STREAMS)
        return first.index(group.kind) if group is not None and group.kind in first else len(first)

    def _change_topics(self, step: Mapping[str, Any]) -> None:
        """A new metadata image; offsets of removed topics go with them."""
        removed = Fields(step).texts("remove")
        try:
            changed = partition_counts(step.get("set", {}))
        except InputError as problem:
            raise InvalidStep(f"set: {problem}") from problem
        if step.get("create") == "$":
            changed = {**changed, **self._driver.clients.get(step.get("as", "")).to_create}
        self._topic_names |= {topic_uuid(name): name for name in changed}
        self._answers += self._driver.change_topics(changed, removed).answers

    def _reload(self) -> None:
        """Kafka cannot load a group that it removed without a record and made again as another kind."""
        try:
            self._answers += self._driver.reload().answers
        except CoordinatorFault as problem:
            raise ScenarioFailed(f"steps[{self._step}]: the records cannot be loaded: {problem}") from problem

    def _change_group(self, step: Mapping[str, Any]) -> None:
        """The options of one group, all of them: those that are left out are the broker's again."""
        group = Fields(step).text("group", "g")
        options = group_options(step.get("set", {}))
        try:
            self._driver.coordinator.set_group_options(group, options)
        except InputError as problem:
            raise InvalidStep(f"set: {problem}") from problem

    def _advance(self, duration_ms: int) -> None:
        """From deadline to deadline, each at its own millisecond."""
        if duration_ms < 0:
            raise InvalidStep(f"ms: {duration_ms} would turn the clock back")
        until_ms = self._driver.now_ms + duration_ms
        for now_ms in self._driver.instants(until_ms):
            if now_ms < until_ms:
                self._fire_due()
                self._end_moment(always=False)

    def _fire_due(self) -> None:
        try:
            for outcome in self._driver.fire_due():
                self._answers += outcome.answers
        except EndlessTimers as problem:
            raise ScenarioFailed(f"steps[{self._step}]: {problem}") from problem

    def _end_moment(self, *, always: bool) -> None:
        """Name the ids that were seen now, then show the answers and the state."""
        names = self.names
        coordinator = self._driver.coordinator
        found = [one for name in coordinator.groups if (one := coordinator.group(name)) is not None]
        names.see(member for _, response in self._answers for member in ids_in_response(response))
        names.see(ids_in_groups(found))
        shown = [
            (
                _step_of(sent),
                sent.kind,
                print_response(response, names, self._topic_names, is_4_4=self._is_4_4),
            )
            for sent, response in self._answers
            if not isinstance(sent.request, DeleteGroup)
        ]
        shown += [(step, "delete_groups", {"groups": groups}) for step, groups in self._take_deletions()]
        for step, kind, fields in sorted(shown, key=lambda one: one[0]):
            label = {"as": self._labels[step]} if step in self._labels else {}
            self._show(kind, step=step, **label, **fields)
        self._answers.clear()
        if self._administered is not None:
            self._show(**self._administered)
            self._administered = None
        if self._logs_persister:
            for group, asked in self._persister.asked:
                self._show("initialize", **print_initialization(group, asked, self._topic_names))
        self._persister.asked.clear()
        state = {group.name: print_group(group, names, self._topic_names) for group in found}
        if state != self._state or (always and not self._changes):
            self._show("state", groups=state)
        self._state = state

    def _take_deletions(self) -> list[tuple[int, list[list[str]]]]:
        """The groups and errors of each DeleteGroups step that has all its answers."""
        for sent, response in self._answers:
            if isinstance(sent.request, DeleteGroup) and isinstance(response, DeleteGroupResponse):
                self._deleted.setdefault(_step_of(sent), []).append([sent.request.group, response.error.name])
        waiting = {_step_of(sent) for sent in self._driver.unanswered.values()}
        return [(step, sorted(self._deleted.pop(step))) for step in self._deleted.keys() - waiting]

    def _show(self, kind: str, *, step: int | None = None, **fields: Any) -> None:
        at = {"t": self._driver.now_ms, "step": self._step if step is None else step, "kind": kind}
        self._events.append(at | fields)

    def finish(self) -> list[dict[str, Any]]:
        """All events; requests that were never answered come last."""
        pending = {_step_of(sent): sent.kind for sent in self._driver.unanswered.values()}
        for step in sorted(pending):
            self._show("pending", step=step, of=pending[step])
        return self._events


def _step_of(sent: Sent) -> int:
    """The index of the request's step: its token, or the first part of it."""
    token = sent.token[0] if isinstance(sent.token, tuple) else sent.token
    return cast("int", token)


def _check_config(fields: Fields, config: CoordinatorConfig) -> dict[str, Any]:
    changes = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in fields.table("set").items()
    }
    try:
        check_group(changes, config)
    except ConfigError as problem:
        return {"error": Error.INVALID_CONFIG.name, "message": str(problem)}
    return {"error": NO_ERROR.name, "message": None}
