"""Runs the scripts of `groupstorm script --records`: steps in; answers, what the share coordinator was asked,
and states out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from groupstorm.coordinator.config import COMPATIBILITY, Compatibility, parse_int
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.script.clients import InvalidStep
from groupstorm.coordinator.script.fields import LONG_MAX, Fields, whole_number
from groupstorm.coordinator.script.scenario import Scenario, ScenarioFailed, initial_topics
from groupstorm.problems import InputError
from groupstorm.share_records.broker import Ports, ShareBroker
from groupstorm.share_records.config import ShareBrokerConfig
from groupstorm.share_records.coordinator import ShareCoordinator
from groupstorm.share_records.messages import Request
from groupstorm.share_records.ports import SharePartitionKey, TopicPartition, WriteState
from groupstorm.share_records.script.clients import (
    GROUP,
    Client,
    kind_of,
    name_of,
    partition_of,
    read_acknowledge,
    read_batch,
    read_error,
    read_fetch,
)
from groupstorm.share_records.script.log import ScriptCluster, ScriptLog
from groupstorm.share_records.script.persister import ScriptPersister, print_read, read_way
from groupstorm.share_records.script.printing import print_answer, print_state
from groupstorm.share_records.timers import Timers
from groupstorm.turns import at_once

_RECORDS_MAX = 1_000_000
#: Timers that may fire at one millisecond, before they count as setting each other without end.
_TIMERS_AT_ONCE_MAX = 1_000_000


def run_records(scenario: Scenario) -> dict[str, Any]:
    """The scenario's answer, as Kafka 4.4.0 to the letter."""
    try:
        run = _Run(scenario)
        for index, step in enumerate(scenario.steps):
            run.take(index, step)
    except ScenarioFailed as problem:
        return {"id": scenario.id, "failed": str(problem)}
    return {"id": scenario.id, "events": run.finish()}


class _Run:
    """One script in progress."""

    def __init__(self, scenario: Scenario) -> None:
        config = scenario.config
        self._cluster = ScriptCluster(initial_topics(scenario))
        try:
            self._config = _read_config(config)
        except InputError as problem:
            raise ScenarioFailed(f"config: {problem}") from problem
        self._timers = Timers()
        self._coordinator = ShareCoordinator(self._config.updates_per_snapshot, self._cluster.has_partition)
        delay_ms, state_epoch = _read_number(config, "persister_ms"), _read_number(config, "state_epoch")
        self._persister = ScriptPersister(self._coordinator, self._timers, delay_ms, self._ask)
        self._groups = _read_groups(config)
        self._broker = self._start_broker()
        self._clients: dict[str, Client] = {}
        #: The requests without an answer, by the index of their step.
        self._waiting: dict[int, tuple[str, Request]] = {}
        self._step = -1
        self._events: list[dict[str, Any]] = []
        self._answers: list[tuple[int, dict[str, Any]]] = []
        self._asked: list[dict[str, Any]] = []
        self._shown: dict[str, dict[str, Any]] = {}
        self._shown_waiting: list[int] | None = None
        if config.get("init", True):
            for group in self._groups:
                for one in self._cluster.logs:
                    key = SharePartitionKey(group, one)
                    self._coordinator.initialize(key, state_epoch, -1)
        self._end_moment()

    def _start_broker(self) -> ShareBroker:
        ports = Ports(self._cluster, self._persister, self._persister)
        broker = ShareBroker(self._config, ports, self._timers)
        for group, own in self._groups.items():
            try:
                broker.set_group_options(group, own)
            except InputError as problem:
                raise ScenarioFailed(f"config: groups: {group}: {problem}") from problem
        return broker

    def take(self, index: int, step: Mapping[str, Any]) -> None:
        """One step, and all that is due after it."""
        self._step = index
        fields = Fields(step)
        try:
            label = fields.text("as", "")
            client = self._clients.setdefault(label, Client())
            if not self._is_wanted(step, client):
                return
            work = _STEPS.get(fields.text("op", ""))
            if work is None:
                raise InvalidStep(f"no op {step.get('op')!r}")
            work(self, fields)
        except InvalidStep as problem:
            self._show("invalid", self._step, why=str(problem))
        self._fire_due()
        self._end_moment()

    def _is_wanted(self, step: Mapping[str, Any], client: Client) -> bool:
        if step.get("when") is not None and not client.matches(step["when"]):
            return False
        return step.get("unless") is None or not client.matches(step["unless"])

    # requests

    def _request(self, step: Fields) -> None:
        label = step.text("as", "")
        read = read_fetch if step.value("op") == "fetch" else read_acknowledge
        self._send(label, read(step, label, self._clients[label], self._cluster))

    def _send(self, label: str, request: Request) -> None:
        self._clients[label].sent(request)
        self._waiting[self._step] = (label, request)
        at_once(self._broker.handle(request, self._step))

    def _disconnect(self, step: Fields) -> None:
        label = step.text("as", "")
        self._broker.disconnect(step.text("conn", label))
        self._clients[label].disconnected()

    # the cluster

    def _log(self, step: Fields) -> tuple[TopicPartition, ScriptLog]:
        one = partition_of(step.value("p"))
        if one not in self._cluster.logs:
            raise InvalidStep(f"no partition {name_of(one)}")
        return one, self._cluster.logs[one]

    def _produce(self, step: Fields) -> None:
        one, log = self._log(step)
        for batch in step.listed("batches"):
            if not isinstance(batch, list) or not 1 <= len(batch) <= 3:
                raise InvalidStep(f"batches: {batch!r} is no [records, bytes, producer]")
            records = whole_number("batches", batch[0], _RECORDS_MAX)
            if records < 1:
                raise InvalidStep(f"batches: {records} is no number of records")
            size = whole_number("batches", batch[1], 2**31 - 1) if len(batch) > 1 else 0
            producer = whole_number("batches", batch[2], LONG_MAX) if len(batch) > 2 else None
            log.append(records, size or 100 + 10 * records, producer, self._timers.now_ms)
        self._broker.records_arrived(one)

    def _end_transaction(self, step: Fields) -> None:
        one, log = self._log(step)
        producer = whole_number("producer", step.value("producer"), LONG_MAX)
        is_commit = step.value("commit", True) is not False
        log.end_transaction(producer, is_commit=is_commit, now_ms=self._timers.now_ms)
        self._broker.records_arrived(one)

    def _delete_records(self, step: Fields) -> None:
        _, log = self._log(step)
        log.delete_records(whole_number("to", step.value("to"), LONG_MAX))

    def _compact(self, step: Fields) -> None:
        _, log = self._log(step)
        first, last = (whole_number(name, step.value(name), LONG_MAX) for name in ("first", "last"))
        log.compact(first, last)

    def _move_leader(self, step: Fields) -> None:
        one, log = self._log(step)
        event = step.text("event", "move")
        if event not in ("follower", "leader", "move", "failed"):
            raise InvalidStep(f"event: {event!r} is none of follower, leader, move, failed")
        if event != "leader":
            log.current_epoch += event != "failed"
            log.is_leader = False
            self._broker.leave_partition(one)
        if event in ("leader", "move"):
            log.current_epoch += 1
            log.is_leader = True

    def _set_read_error(self, step: Fields) -> None:
        _, log = self._log(step)
        log.error = read_error(step) or Error.NONE

    def _delete_topic(self, step: Fields) -> None:
        for one in self._cluster.delete_topic(step.text("topic", "")):
            self._broker.leave_partition(one)

    def _restart(self, _step: Fields) -> None:
        now_ms = self._timers.now_ms
        self._timers = Timers()
        self._timers.now_ms = now_ms
        self._persister.restart(self._timers)
        for log in self._cluster.logs.values():
            log.current_epoch += 1
        self._broker = self._start_broker()

    def _set_persister(self, step: Fields) -> None:
        for kind, way in self._persister.ways.items():
            if kind in step:
                try:
                    way.set(*read_way(step.value(kind)))
                except ValueError as problem:
                    raise InvalidStep(f"{kind}: {problem}") from problem
        release = step.value("release")
        if release is not None and release is not False:
            count = None if release is True else whole_number("release", release, LONG_MAX)
            self._persister.release(count, read_error(step))

    def _set_group(self, step: Fields) -> None:
        group = step.text("group", GROUP)
        own = {**self._groups.get(group, {}), **step.table("set")}
        own = {name: value for name, value in own.items() if value is not None}
        try:
            self._broker.set_group_options(group, own)
        except InputError as problem:
            raise InvalidStep(f"set: {problem}") from problem
        self._groups[group] = own

    def _ask_coordinator(self, step: Fields) -> None:
        one = partition_of(step.value("p"))
        key = SharePartitionKey(step.text("group", GROUP), one)
        call = step.text("call", "")
        start = whole_number("start", step.value("start", -1), LONG_MAX)
        state_epoch, leader_epoch = step.int32("state_epoch", 0), step.int32("leader_epoch", 0)
        record = None
        fields: dict[str, Any] = {}
        if call == "initialize":
            error, record = self._coordinator.initialize(key, state_epoch, start)
        elif call == "write":
            batches = [read_batch(batch) for batch in step.listed("batches")]
            complete = step.int32("complete", -1)
            request = WriteState(key, state_epoch, leader_epoch, start, complete, batches)
            error, record = self._coordinator.write(request)
        elif call == "read":
            answer, record = self._coordinator.read(key, leader_epoch)
            error, fields = answer.error, print_read(answer)
        elif call == "summary":
            error, state = self._coordinator.summary(key)
            fields = {
                name: getattr(state, name) for name in ("start", "complete", "leader_epoch", "state_epoch")
            }
        elif call == "delete":
            error, record = self._coordinator.delete(key)
        else:
            raise InvalidStep(f"call: {call!r} is none of initialize, write, read, summary, delete")
        found = fields if error is Error.NONE else {}
        self._ask("coord", key, call=call, error=error.name, record=record, **found)

    # time

    def _advance(self, step: Fields) -> None:
        duration_ms = whole_number("ms", step.value("ms"), LONG_MAX)
        if duration_ms < 0:
            raise InvalidStep(f"ms: {duration_ms} would turn the clock back")
        until_ms = self._timers.now_ms + duration_ms
        for now_ms in self._instants(until_ms):
            self._timers.now_ms = now_ms
            self._fire_due()
            self._end_moment()
        self._timers.now_ms = until_ms

    def _instants(self, until_ms: int) -> Iterator[int]:
        """The deadlines before a time."""
        while (deadline_ms := self._timers.next_deadline()) is not None and deadline_ms < until_ms:
            yield deadline_ms

    def _fire_due(self) -> None:
        self._drain()
        for _ in range(_TIMERS_AT_ONCE_MAX):
            if not self._timers.fire_one():
                return
            self._drain()
        raise ScenarioFailed(f"steps[{self._step}]: timers set each other without end")

    def _drain(self) -> None:
        for token, response in self._broker.drain():
            step = int(str(token))
            label, request = self._waiting.pop(step)
            self._clients[label].answered(request, response)
            fields = {"kind": kind_of(request), "as": label, **print_answer(response)}
            self._answers.append((step, fields))

    # what is printed

    def _ask(self, kind: str, key: SharePartitionKey, **fields: Any) -> None:
        self._asked.append({"kind": kind, "g": key.group, "p": name_of(key.topic_partition), **fields})

    def _show(self, kind: str, step: int, **fields: Any) -> None:
        self._events.append({"t": self._timers.now_ms, "step": step, "kind": kind, **fields})

    def _end_moment(self) -> None:
        """Show the answers of this millisecond, then what was asked, then what changed."""
        for step, fields in sorted(self._answers, key=lambda one: one[0]):
            self._show(step=step, **fields)
        for fields in sorted(self._asked, key=lambda one: (one["g"], one["p"])):
            self._show(step=self._step, **fields)
        self._answers.clear()
        self._asked.clear()
        state = print_state(self._broker, self._coordinator, self._cluster)
        changed: dict[str, Any] = {}
        for part, now in state.items():
            before = self._shown.get(part, {})
            news = {key: value for key, value in now.items() if before.get(key) != value}
            news |= {key: None for key in before if key not in now}
            if news:
                changed[part] = news
        waiting = sorted(self._waiting)
        if waiting != self._shown_waiting:
            changed["waiting"] = waiting
        self._shown, self._shown_waiting = state, waiting
        if changed:
            self._show("state", self._step, **changed)

    def finish(self) -> list[dict[str, Any]]:
        """All events; requests that were never answered come last."""
        self._step += 1
        for step, (label, _) in sorted(self._waiting.items()):
            self._show("pending", self._step, **{"as": label, "of": step})
        return self._events


_STEPS = {
    "fetch": _Run._request,
    "ack": _Run._request,
    "disconnect": _Run._disconnect,
    "produce": _Run._produce,
    "end_txn": _Run._end_transaction,
    "delete_records": _Run._delete_records,
    "compact": _Run._compact,
    "leader": _Run._move_leader,
    "read_error": _Run._set_read_error,
    "delete_topic": _Run._delete_topic,
    "restart": _Run._restart,
    "persister": _Run._set_persister,
    "group_config": _Run._set_group,
    "coord": _Run._ask_coordinator,
    "advance": _Run._advance,
}


def _read_config(config: Mapping[str, Any]) -> ShareBrokerConfig:
    sessions = {} if "sessions" not in config else {"group.share.max.share.sessions": config["sessions"]}
    has_dead_letters = config.get("dlq", True) is not False
    options = {**config, **sessions, COMPATIBILITY: Compatibility.KAFKA_4_4_0}
    return ShareBrokerConfig.from_mapping(options, has_dead_letters=has_dead_letters)


def _read_number(config: Mapping[str, Any], name: str) -> int:
    try:
        return parse_int(name, config.get(name, 0), 0)
    except InputError as problem:
        raise ScenarioFailed(f"config: {problem}") from problem


def _read_groups(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of groups; the group of steps that name none always exists."""
    groups = config.get("groups", {})
    if not isinstance(groups, dict) or not all(isinstance(own, dict) for own in groups.values()):
        raise ScenarioFailed(f"config: groups: {groups!r} does not give options by group")
    return {GROUP: {}, **groups}
