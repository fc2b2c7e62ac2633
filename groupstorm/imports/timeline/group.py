"""One group while its observations come: what is known of it, its open rounds, and the rows that follow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, Final

from groupstorm.history.unknown import GENERATIONS, NAMES, TOPICS
from groupstorm.imports.provenance import Rows, Why
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.members import STARTED, Comings, Membership, ReturningMembers
from groupstorm.imports.timeline.rounds import Round, round_rows
from groupstorm.imports.timeline.summary import GroupSummary
from groupstorm.imports.timeline.topics import LostTopics
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

#: The word that librdkafka logs in the place of a member id that it has not got yet.
NO_ID: Final = "(not-set)"
#: A null in a row, in the place of a value that rows of storms always have.
NULL: Final[Any] = None
#: Rounds that stay open for lines of slower clocks and members.
_OPEN_ROUNDS: Final = 4

ADD_ASSIGNMENTS: Final = (
    "add the log of the group's leader (its client may log the assignment of every member), of every member, "
    "or the records of __consumer_offsets"
)
ADD_GENERATIONS: Final = "add the records of __consumer_offsets, or the log of the group's coordinator"
_UNKNOWN: Final = "who owned which partition is not known"
OWNERS_UNKNOWN: Final = f"{_UNKNOWN}: {ADD_ASSIGNMENTS}"
#: Of KIP-848, in which no client leads.
OWNERS_UNKNOWN_MODERN: Final = f"{_UNKNOWN}: {ADD_GENERATIONS}"
_BETWEEN_DESCRIPTIONS: Final = (
    "what happened between two descriptions is known only by what differs: there may be more rebalances, and "
    "how long one took is not known"
)
#: The sentence on what is missing from a trace of a group of Kafka Connect.
NO_PARTITIONS: Final = (
    "a group of Kafka Connect has connectors and tasks, and no partitions: the workers' own logs say who "
    "runs which (work_assigned)"
)
ADD_MEMBERS: Final = "add the log from before they joined, or the members' own logs"


@dataclass(slots=True, eq=False)
class GroupRecord:
    """``state``, ``generation``, ``leader`` and ``protocol`` as far as lines have said them."""

    name: str
    rows: Rows
    state: str = "unknown"
    generation: int | None = None
    leader: str | None = None
    protocol: str | None = None
    members: Membership = field(default_factory=Membership)
    summary: GroupSummary = field(init=False)
    returning: ReturningMembers = field(init=False)
    comings: Comings = field(init=False)
    topics: LostTopics = field(default_factory=LostTopics)
    first: Observation = field(init=False)
    last: Observation | None = None
    #: Member ids that lines name -> whether the member has a log of its own.
    all_ids: dict[str, bool] = field(default_factory=dict)
    #: Client ids with a log -> whether it says what the client subscribes to.
    clients: dict[str, bool] = field(default_factory=dict)
    #: Those whose log begins while they are in the group.
    running: set[str] = field(default_factory=set)
    #: Client id -> the settings that its log has said.
    configured: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Told of a member that the coordinator removes: member id, line, cause.
    on_removal: list[Callable[[str, Observation, str], None]] = field(default_factory=list)
    #: Whether a line or record of the coordinator, or what a tool asked it for, tells of the group.
    has_coordinator: bool = False
    is_modern: bool = False
    #: Its members are threads of Kafka Streams, to which the broker assigns tasks (KIP-1071).
    is_streams: bool = False
    #: Its members are workers of Kafka Connect.
    is_connect: bool = False
    #: Client ids that several members had in one generation.
    shared: set[str] = field(default_factory=set)
    #: Client ids under which one log has the lines of several processes.
    mixed: set[str] = field(default_factory=set)
    #: Whether a description had the owners of all partitions.
    owners_described: bool = False
    #: When the round at hand began.
    prepared_us: int | None = None
    #: The last line that says that the group's partition of __consumer_offsets takes no records.
    append_refused: Observation | None = None
    broker_settings: Mapping[str, str] = field(default_factory=dict)
    #: Member id -> what its coordinator says of it; client id -> what it says of all its members.
    session_timeouts_ms: dict[str, int] = field(default_factory=dict)
    session_timeouts_of_clients_ms: dict[str, set[int]] = field(default_factory=dict)
    _members_tell_all: bool = True
    _rounds: dict[int, Round] = field(default_factory=dict)
    #: Members whose settings have a row.
    _configured: dict[str, None] = field(default_factory=dict)
    _unnamed: int = 0

    def __post_init__(self) -> None:
        self.summary = GroupSummary(self.name)
        self.returning = ReturningMembers(self.name, self.rows, self.members)
        self.comings = Comings(self.name)

    def begin(self, line: Observation) -> None:
        """The next observation of the group."""
        if self.last is None:
            self.first = line
        self.last = line
        member_id = line.fields.get("member_id")
        if member_id and member_id != NO_ID:
            self.all_ids.setdefault(member_id, False)
            self.returning.seen(member_id, line)

    def here(self, line: Observation) -> Observation:
        """A line whose rows stand in the place of the last observation."""
        return line._replace(order=0 if self.last is None else self.last.order)

    def emit(
        self,
        line: Observation,
        event: TracedEvent,
        why: Why | None = None,
        source: Source = Source.COORDINATOR,
        step: int = 0,
    ) -> None:
        """A row in the place of ``line``, which says it unless ``why`` knows better."""
        self.rows.add(line, source, event, why or Why([line]), step)

    # -- members ---------------------------------------------------------------------------------

    def added(self, member_id: str, instance: str | None, cause: str) -> events.MemberAdded:
        """Take a member in: the event."""
        self.members.add(member_id, instance)
        name = self.members.name(member_id, instance)
        return events.MemberAdded(self.name, name, member_id, instance, self.generation, str(cause))

    def removed(self, member_id: str, cause: str, instance: str | None = None) -> events.MemberRemoved:
        """Take a member out: the event. ``instance``: its static id, if a line says it."""
        name, instance = self.members.name(member_id), self.members.remove(member_id) or instance
        return events.MemberRemoved(self.name, name, member_id, instance, self.generation, str(cause))

    def replaced(self, old: str, member_id: str, instance: str | None) -> events.MemberReplaced:
        """Give a static member its new id: the event."""
        self.members.replace(old, member_id, instance)
        name = self.members.name(member_id, instance)
        return events.MemberReplaced(self.name, name, member_id, old, instance or "", self.generation)

    def tell_removal(self, member_id: str, line: Observation, cause: str) -> None:
        """Tell the members' own logs that the coordinator has removed a member."""
        for tell in self.on_removal:
            tell(member_id, line, cause)

    def described(self, line: Observation) -> None:
        """A line has a member's client id and timeouts."""
        fields = line.fields
        member_id = fields.get("member_id")
        if member_id is None:
            return
        self.members.learn(member_id, fields.get("client"))
        said: dict[str, int | str] = {
            name.replace("_", "."): int(fields[name])
            for name in ("session_timeout_ms", "rebalance_timeout_ms")
            if fields.get(name)
        }
        if "session.timeout.ms" in said:
            timeout_ms = self.session_timeouts_ms[member_id] = int(said["session.timeout.ms"])
            self.session_timeouts_of_clients_ms.setdefault(fields.get("client", ""), set()).add(timeout_ms)
        if fields.get("host"):
            said[imported.CLIENT_HOST] = str(fields["host"]).lstrip("/")
        if said and member_id not in self._configured:
            self._configured[member_id] = None
            event = imported.MemberConfigured(self.name, self.members.name(member_id), json.dumps(said))
            self.emit(line, event)

    def coordinated(self, line: Observation, configuration: Observation | None) -> None:
        """A broker's own line about the group. ``configuration``: the broker's, if its log has it."""
        self.has_coordinator = True
        settings = None if configuration is None else configuration.fields["settings"]
        if configuration is None or not settings or settings == self.broker_settings:
            return
        self.broker_settings = settings
        event = imported.BrokerConfigured(self.name, json.dumps(settings))
        self.emit(line, event, Why([configuration]), Source.WORLD, step=-7)

    # -- rounds ----------------------------------------------------------------------------------

    def round(self, generation: int) -> Round:
        """The round of a generation; older ones are closed."""
        one = self._rounds.get(generation)
        if one is None:
            one = self._rounds[generation] = Round(generation)
            while len(self._rounds) > _OPEN_ROUNDS:
                self._close(self._rounds.pop(next(iter(self._rounds))))
        return one

    def begin_again(self) -> None:
        """The group was deleted, and is there again: its generations count anew."""
        self.close_rounds()
        self.generation = None

    def begins(self, generation: int, cause: str, member_id: str | None) -> events.GroupStateChanged:
        """The round of ``generation`` begins: the event."""
        return events.GroupStateChanged(
            self.name, self.state, GroupState.PREPARING_REBALANCE, generation - 1, cause, member_id,
            self.protocol, self.leader, self.members.count,
        )  # fmt: skip

    def began_unsaid(self, line: Observation, generation: int, rule: str, earliest_us: int | None) -> None:
        """The round of ``generation`` has begun before ``line``, and no line says when."""
        why = Why([line], rule, earliest_us, line.time_us, inferred=True)
        self.emit(line, self.begins(generation, "unknown", None), why, step=-8)

    def round_completing(self, line: Observation, generation: int, cause: str, rule: str) -> None:
        """The join phase of ``generation`` has ended."""
        one = self.round(generation)
        one.stabilized, one.end_cause, one.end_rule = line, cause, rule
        one.count = line.fields.get("count")
        one.named = tuple(self.members.members)

    def assigned(self, plan: Mapping[str, Sequence[str]], protocol: str | None, line: Observation) -> None:
        """A complete assignment is known. ``plan``: member id -> partitions."""
        new = self.topics.assigned(plan, protocol, line)
        if new:
            more = f" and {len(new) - 1} more" if new[1:] else ""
            sentence = (
                f"for how long {min(new)}{more} waited for the first owner (no line says since when they "
                "exist), so times without an owner may be longer than is counted"
            )
            self.is_missing(line, TOPICS, None, sentence, step=-4)

    def see_shared(self, names: Mapping[str, str], line: Observation) -> None:
        """Members are in one generation. ``names``: their client ids by member id."""
        for name, count in Counter(names.values()).items():
            if count > 1 and name not in self.shared:
                self.shared.add(name)
                sentence = (
                    f"which processes follow each other: several members have the client id {name} at once, "
                    "so they go by their member ids, of which each process has a new one: add the log of "
                    "each pod as a file of its own"
                )
                self.is_missing(line, NAMES, None, sentence)

    def see_mixed(self, client: str, line: Observation) -> None:
        """Several processes log as one client, and nothing tells their lines apart."""
        self.mixed.add(client)
        self.shared.add(client)
        self._members_tell_all = False
        sentence = f"two processes log as {client}: give the log of each process as a file of its own"
        self.is_missing(line, "ownership", None, sentence)

    def round_stable(self, line: Observation, generation: int, leader: str | None) -> None:
        one = self.round(generation)
        one.assigned, one.leader = line, leader or one.leader
        if self.prepared_us is not None:
            self.summary.longest_us = max(self.summary.longest_us, line.time_us - self.prepared_us)
            self.prepared_us = None

    def generations_missing(self, line: Observation, last: int, now: int) -> None:
        """The logs skip generations."""
        sentence = (
            f"between generation {last} and generation {now} lines are missing: add the logs in between, or "
            "the log of the broker that was the coordinator then"
        )
        self.is_missing(line, GENERATIONS, now, sentence)

    def is_assigned(self, generation: int) -> bool:
        """Whether a member says that it has the assignment of a generation."""
        one = self._rounds.get(generation)
        return one is not None and bool(one.synced or one.told)

    def is_missing(
        self, line: Observation, cause: str, generation: int | None, sentence: str, step: int = 1
    ) -> None:
        """The logs do not say something from this line on."""
        count, first = self.summary.missing.get(cause, (0, sentence))
        self.summary.missing[cause] = count + 1, first
        self.add_missing(line, cause, generation, sentence, step)

    def add_missing(
        self, line: Observation, cause: str, generation: int | None, sentence: str, step: int
    ) -> None:
        """A row that says that the logs do not say something from this line on."""
        event = imported.EvidenceMissing(self.name, cause, generation, sentence)
        self.rows.add(line, Source.WORLD, event, Why([line], missing=True), step)

    def finish(self) -> None:
        """No more observations come."""
        self.returning.finish()
        self.close_rounds()
        self.comings.tell(self.rows)
        if unknown := self.topics.finish(self.name, self.rows):
            self.summary.missing.setdefault(TOPICS, (1, unknown))
        if self.summary.is_only_described and self.summary.descriptions > 1 and self.last is not None:
            sentence = f"{_BETWEEN_DESCRIPTIONS}: {ADD_GENERATIONS}"
            self.summary.missing["rebalances"] = 1, sentence
            event = imported.EvidenceMissing(self.name, "rebalances", None, sentence)
            self.rows.add(self.first, Source.WORLD, event, Why([self.last], missing=True), -7)
        silent = sorted(client for client, has_topics in self.clients.items() if not has_topics)
        if silent and not self.is_connect and self.last is not None and self.view == "members":
            sentence = f"what {silent[0]} subscribes to is not logged: its log may say so at its start"
            self.is_missing(self.last, "subscriptions", None, sentence)

    def _see_unnamed(self, one: Round, named: int) -> None:
        """Whether the lines name all members of the round."""
        line = one.stabilized
        if line is None:
            return
        sentence = ""
        if one.count is None:
            if one.finished is None and "members" not in self.summary.missing:
                sentence = f"how many members generation {one.generation} has is not logged before Kafka 2.8"
        elif one.count > named and one.count - named != self._unnamed:
            sentence = (
                f"{one.count - named} of {one.count} members of generation {one.generation} are not named"
            )
        self._unnamed = max(0, (one.count or 0) - named)
        if sentence:
            self.is_missing(line, "members", one.generation, f"{sentence}: {ADD_MEMBERS}")

    def _add_unsaid(self, one: Round) -> None:
        """Before Kafka 4 no line of the coordinator says who joins a round that another member began."""
        line = one.stabilized
        for member_id, (joined, instance) in one.new.items():
            if line is None or member_id in self.members.ever:
                continue
            self.members.ever.add(member_id)
            cause = Cause.STATIC_MEMBER if instance else Cause.NEW_MEMBER
            name = one.clients.get(member_id) or self.members.name(member_id)
            event = events.MemberAdded(self.name, name, member_id, instance, one.generation - 1, str(cause))
            why = Why([line, joined], STARTED, None, line.time_us, inferred=True)
            self.emit(line, event, why, step=-4)

    def close_rounds(self) -> None:
        for one in [*self._rounds.values()]:
            self._close(one)
        self._rounds.clear()

    def _close(self, one: Round) -> None:
        ids = dict.fromkeys((*one.named, *filter(None, [one.leader]), *one.plan, *one.joined))
        for member_id in ids:
            self.all_ids.setdefault(member_id, False)
        names = {each: one.clients.get(each) or self.members.name(each) for each in ids}
        if not set(ids) <= set(one.joined) or (one.count or 0) > len(one.joined):
            self._members_tell_all = False
        self._see_unnamed(one, len(ids))
        if one.finished is not None:
            planned = {member_id: names[member_id] for member_id in one.planned}
            self.see_shared(planned, self.here(one.finished))
        self._add_unsaid(one)
        if not self.has_coordinator and not self.is_connect:
            for member_id, line in self.comings.round(one, names):
                self.tell_removal(member_id, line, "unknown")
        if not (rows := round_rows(self.name, one, names)):
            return
        for line, step, event, why in rows:
            self.emit(line, event, why, step=step)
        said = one.assigned or one.finished or one.stabilized or next(iter(one.joined.values()), None)
        if said is None:
            return
        if self.is_connect:
            self.summary.rounds_unknown += 1
            self.summary.missing["ownership"] = 1, NO_PARTITIONS
        elif one.is_known:
            self.summary.rounds_known += 1
            self.assigned(one.plan, one.protocol, said)
            self.emit(said, imported.OwnershipKnown(self.name, one.generation), None, Source.WORLD, -4)
        else:
            self.summary.rounds_unknown += 1
            self.summary.missing.setdefault("ownership", (0, OWNERS_UNKNOWN))
            what = f"who got which partition in generation {one.generation} is not known"
            self.is_missing(said, "ownership", one.generation, f"{what}: {ADD_ASSIGNMENTS}", -4)

    @property
    def view(self) -> str:
        """From whose rows ownership follows: members only if every one of them has a log."""
        told = self.all_ids and (self.is_modern or self._members_tell_all) and all(self.all_ids.values())
        return "members" if told else "coordinator"

    def summarized(self) -> GroupSummary:
        """The summary, when no more observations come."""
        summary = self.summary
        summary.view, summary.has_members = self.view, summary.has_members or bool(self.all_ids)
        # most groups miss the same
        summary.missing = {cause: (count, intern(said)) for cause, (count, said) in summary.missing.items()}
        return summary

    @property
    def is_told_by_members_alone(self) -> bool:
        """Whether nothing is there but the logs of all members: leaders have named them in every round."""
        told = self.view == "members" and not self.has_coordinator
        return told and self.summary.rounds_known > 0 and not self.summary.rounds_unknown
