"""Drives a coordinator in virtual time: steps, requests and time in, answers and events out.

    driver = Driver(CoordinatorConfig(), names=Names("example"))
    outcome = driver.send_step({"op": "join", "as": "a"}, token=1)
    for outcome in driver.advance(3_000):
        ...

`groupstorm script`, the transcripts and the `World` of the tests stand on this class. The driver keeps the
clock, remembers for each client label what the answers to it said, and decides how the next append goes.
What an outcome looks like on the screen is the caller's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import Request, Response
from groupstorm.coordinator.records import AppendCause, Record, TransactionEndRecord
from groupstorm.coordinator.script.clients import Clients, InvalidStep, Names, Scene, topic_uuid
from groupstorm.coordinator.script.requests import append_error, build_request
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.streams.description_plugin import Outcome as PluginOutcome
from groupstorm.coordinator.streams.description_plugin import PluginAnswer
from groupstorm.coordinator.streams.messages import TopologyDescription
from groupstorm.coordinator.topics import Topic
from groupstorm.trace.events.coordinator import Event
from groupstorm.turns import Turns

#: More timers than this at one instant do not end by themselves.
_TIMERS_AT_ONCE_MAX = 100_000


_LOST = "lost"


def persister_error(step: Mapping[str, Any]) -> Error | None:
    """The answer of the persister to what the step makes the coordinator ask; None: it is lost."""
    name = step.get("persister")
    if name is None:
        return NO_ERROR
    if name == _LOST:
        return None
    if not isinstance(name, str) or name not in Error.__members__:
        raise InvalidStep(f"persister: {name!r} is neither an error's name nor lost")
    return Error[name]


class ScriptedPersister:
    """``error``: its answer to the present step. ``asked`` keeps what it was asked to initialise."""

    def __init__(self) -> None:
        self.error: Error | None = NO_ERROR
        self.asked: list[tuple[str, Initialization]] = []

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]:
        self.asked.append((group, asked))
        yield 0
        return self.error

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]:
        del group, partitions
        yield 0
        return self.error


_NOTHING = "none"
_FAILURES = {
    "permanent": PluginAnswer(PluginOutcome.PERMANENT, "never"),
    "transient": PluginAnswer(PluginOutcome.TRANSIENT, "later"),
    "throw": PluginAnswer(PluginOutcome.RAISED),
    "lost": PluginAnswer(PluginOutcome.LOST),
}
_WAYS = (*_FAILURES, _NOTHING)


class ScriptedPlugin:
    """Keeps descriptions by group. ``way``: how the present step wants it to answer; None: with success."""

    def __init__(self) -> None:
        self.way: str | None = None
        self._kept: dict[str, tuple[int, TopologyDescription]] = {}

    def set_topology(self, group: str, epoch: int, description: TopologyDescription, /) -> PluginAnswer:
        if self.way is None:
            self._kept[group] = epoch, description
        return self._answer()

    def get_topology(self, group: str, epoch: int, /) -> PluginAnswer:
        kept_epoch, description = self._kept.get(group, (-1, None))
        is_found = self.way is None and kept_epoch == epoch
        return self._answer()._replace(description=description if is_found else None)

    def delete_topology(self, group: str, /) -> PluginAnswer:
        if self.way is None:
            self._kept.pop(group, None)
        return self._answer()

    def _answer(self) -> PluginAnswer:
        return _FAILURES.get(self.way or "", PluginAnswer(PluginOutcome.DONE))


def plugin_way(step: Mapping[str, Any]) -> str | None:
    """The answer of the plugin for topology descriptions to what the step makes the coordinator ask."""
    way = step.get("plugin")
    if way is not None and way not in _WAYS:
        raise InvalidStep(f"plugin: {way!r} is not one of {', '.join(_WAYS)}")
    return way


class EndlessTimers(Exception):
    """Timers set each other again and again at one instant."""


class StreamsSetting(NamedTuple):
    """Topologies by the names that steps give them, and whether the broker has a plugin for descriptions."""

    topologies: Mapping[str, Any]
    has_plugin: bool = False


class Sent(NamedTuple):
    """A request and the client label that sent it. ``by_members``: a LeaveGroup that named its members."""

    token: Hashable
    kind: str
    label: str
    request: Request
    by_members: bool = False


class Answered(NamedTuple):
    """A request and the answer to it."""

    sent: Sent
    response: Response


class Outcome(NamedTuple):
    """The outcome of one call to the coordinator: answers in the order of completion, and events."""

    answers: list[Answered]
    events: list[Event]


class Driver:
    """One coordinator, its clock and its clients.

    ``member_ids``: draws the member ids, by default those of ``names``. ``coordinator``: makes the
    coordinator, as `GroupCoordinator` does. ``append_delay_ms`` and ``append_error`` say how appends go from
    now on; ``appended`` keeps all records if ``keeps_records`` is set.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        *,
        names: Names,
        member_ids: Callable[[str], str] | None = None,
        topics: Mapping[str, int] | None = None,
        has_racks: bool = False,
        coordinator: Callable[..., GroupCoordinator] = GroupCoordinator,
        keeps_records: bool = False,
        streams: StreamsSetting | None = None,
    ) -> None:
        self.now_ms = 0
        self.clients = Clients(names)
        self.topics: dict[str, int] = {}
        self._has_racks = has_racks
        #: Topics as the cluster knows them: they never shrink.
        self._partitions: dict[str, int] = {}
        self.append_delay_ms = 0
        self.append_error: Error | None = None
        #: Of the records that the present step's request makes; background work has records of its own.
        self._step_error: Error | None = None
        self.appended: list[tuple[list[Record], AppendCause]] = []
        #: Requests without an answer, by their token.
        self.unanswered: dict[Hashable, Sent] = {}
        self._names = names
        self._keeps_records = keeps_records
        self._streams = streams or StreamsSetting({})
        self._plugin = ScriptedPlugin()
        options: dict[str, Any] = {"whole_records": True}  # which `reload` replays
        if self._streams.has_plugin:
            options["description_plugin"] = self._plugin
        self.coordinator = coordinator(
            config, member_ids=member_ids or names.draw, append=self._append, **options
        )
        self.change_topics(topics or {}, ())

    def _append(self, records: Sequence[Record], cause: AppendCause) -> tuple[int, Error | None]:
        if self._keeps_records:
            self.appended.append((list(records), cause))
        own = None if cause is AppendCause.REGEXES_RESOLVED else self._step_error
        return self.append_delay_ms, own or self.append_error

    def change_topics(self, changed: Mapping[str, int], removed: Sequence[str]) -> Outcome:
        """A new metadata image: topics with their numbers of partitions, and topics that are gone."""
        self.topics.update(changed)
        for name, count in changed.items():
            self._partitions[name] = max(count, self._partitions.get(name, 0))
        created = {name: self._topic(name) for name in changed}
        known = [name for name in removed if self.topics.pop(name, None) is not None]
        for name in known:
            del self._partitions[name]
        return self.receive(self.coordinator.update_topics(created, known, self.now_ms))

    def _topic(self, name: str) -> Topic:
        """Partition p has replicas on brokers p and p + 1 of four, each in a rack of its own."""
        count = self._partitions[name]
        racks = tuple((f"rack{number % 4}", f"rack{(number + 1) % 4}") for number in range(count))
        return Topic(topic_uuid(name), count, racks if self._has_racks else ())

    def request(self, step: Mapping[str, Any], label: str) -> Request:
        """The request of a step; `InvalidStep` if it cannot be made into one."""
        return build_request(
            step, label, Scene(self.clients, self._names, self.topics, self._streams.topologies)
        )

    def send_step(self, step: Mapping[str, Any], token: Hashable) -> Outcome:
        """Send the request of a step of `groupstorm script`, for the client that it names."""
        label = step.get("as", "")
        request = self.request(step, label)
        error = append_error(step)
        sent = Sent(token, str(step["op"]), label, request, by_members="members" in step)
        self._step_error, self._plugin.way = error, plugin_way(step)
        try:
            return self.send(sent)
        finally:
            self._step_error = self._plugin.way = None

    def send(self, sent: Sent) -> Outcome:
        """Send a request; the answer comes now or in a later outcome."""
        self.clients.get(sent.label).sent(sent.kind, sent.request)
        self.unanswered[sent.token] = sent
        effects = self.coordinator.handle(sent.request, self.now_ms, sent.token)
        return self.receive(effects, own=sent.token)

    def receive(self, effects: Effects, own: Hashable = None) -> Outcome:
        """Take what a call to the coordinator brought about.

        Clients remember the answers in the order of completion, the answer to the request ``own`` last.
        """
        answers = [Answered(self.unanswered.pop(token), response) for token, response in effects.replies]
        for sent, response in sorted(answers, key=lambda answer: answer.sent.token == own):
            member_id = getattr(sent.request, "member_id", None)
            client = self.clients.get(sent.label)
            client.answered(sent.kind, member_id, response, by_members=sent.by_members)
        return Outcome(answers, effects.events)

    def reload(self) -> Outcome:
        """Another coordinator takes over, with the records of this one and nothing else."""
        records = self.coordinator.snapshot()
        written = (one.group for one in records if not isinstance(one, TransactionEndRecord))
        groups = dict.fromkeys([*self.coordinator.groups, *written, *self.coordinator.timed_groups])
        return self.receive(self.coordinator.move(groups, self.now_ms))

    def end_transaction(self, producer_id: int, is_commit: bool) -> Outcome:
        """The end of a producer's transaction, as the coordinator receives it."""
        return self.receive(self.coordinator.end_transaction(producer_id, is_commit, self.now_ms))

    def fire_due(self) -> Iterator[Outcome]:
        """Fire the timers of this instant one by one, in the order in which they were set."""
        for _ in range(_TIMERS_AT_ONCE_MAX):
            effects = self.coordinator.fire_one(self.now_ms)
            if effects is None:
                return
            yield self.receive(effects)
        raise EndlessTimers(f"at {self.now_ms} ms timers set each other without end")

    def instants(self, until_ms: int) -> Iterator[int]:
        """Move the clock from deadline to deadline before ``until_ms``, then to it; the caller fires what is
        due at each."""
        while (deadline_ms := self.coordinator.next_deadline()) is not None and deadline_ms < until_ms:
            self.now_ms = max(deadline_ms, self.now_ms)
            yield self.now_ms
        self.now_ms = until_ms
        yield until_ms

    def advance(self, duration_ms: int) -> Iterator[Outcome]:
        """Let time pass; every timer fires at its own millisecond, those at the end included."""
        for _ in self.instants(self.now_ms + duration_ms):
            yield from self.fire_due()
