"""The rounds of a classic group, from its coordinator's lines: states, generations, members, causes."""

from __future__ import annotations

from typing import ClassVar, Final

from groupstorm.history.unknown import GENERATIONS
from groupstorm.imports.details import member_ids, optional
from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.imports.templates import Catalogue, table
from groupstorm.imports.timeline.ends import EmptiedGroup
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.imports.timeline.part import GroupPart, Handlers
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.schema import Source

#: A join phase that takes less did not wait for group.initial.rebalance.delay.ms.
_AT_ONCE_US: Final = 100_000
#: A leader answers sooner, or its session ends: after so long the line about its assignment may be lost.
_LOST_US: Final = 60_000_000
_REASONS: Final = Catalogue(table("broker_reasons"))

#: The words that stand in the place of a reason that a client did not give.
_NO_REASONS: Final = frozenset({None, "", "not provided"})

_NEW_GROUP = "previous_state: a group at generation 0 has had no members"
_BEFORE_UNKNOWN = "previous_state: no earlier line says it"
_HAS_ASSIGNMENT = "previous_state: members have the assignment of the generation"
_BEGAN = "no line says when the round began, nor why: it was after the join phase of the one before it"
_BEGAN_BY = "no line says that the round began: a member came or went then, as its coordinator's line says"
_ALL_JOINED = "cause: the join phase ended without removing members, so all have joined"
_INITIAL_DELAY = "cause: a round of an empty group waits for group.initial.rebalance.delay.ms"
_NOT_REJOINED = "cause: the join phase ended by removing members that had not joined"
_FROM_REASON = "member: the reason of the round names it"
_COUNT_FITS = "member: it was told its id, and the count of the round says that all who were have joined"
#: Kinds of lines by which other than new dynamic members come -> the cause.
_COMES: Final = {"static-created": Cause.STATIC_MEMBER, "pending-joins": Cause.PENDING_MEMBER}
#: Kinds of lines that say how a member of the empty group went.
_SAY_HOW: Final = frozenset({"failed", "left", "left-described"})


class ClassicRounds(GroupPart):
    """Takes the coordinator's lines about one classic group, in the order of time."""

    def __init__(self, group: GroupRecord) -> None:
        super().__init__(group)
        self._dropped = False
        self._prepared: Observation | None = None
        self._from_empty = False
        self._completing_us = 0
        #: The first line since the last round by which a member came or went, how and which.
        self._change: tuple[Observation, str, str] | None = None
        self._loaded: dict[str, Observation] = {}
        #: The member that came last, and how.
        self._added = "", ""
        #: Members that the reason of a round removed. The line about it may come after it: before Kafka 4, or
        #: if a collector has sorted the lines by milliseconds.
        self._gone_by_reason: list[str] = []
        #: Members that have gone since the last round ended: a reason that names one again adds nothing.
        self._went: set[str] = set()
        self._emptied = EmptiedGroup(group)

    def finish(self) -> None:
        self._emptied.settle()

    def take(self, line: Observation) -> None:
        if line.kind not in _SAY_HOW:
            self._emptied.settle()
        super().take(line)

    # -- rounds ----------------------------------------------------------------------------------

    def _preparing(self, line: Observation) -> None:
        group, old = self._group, line.fields["old_generation"]
        cause, member_id = self._cause(line)
        rules = [] if group.state != UNKNOWN else [_BEFORE_UNKNOWN]
        if group.state == UNKNOWN and old == 0:
            group.state, rules = GroupState.EMPTY, [_NEW_GROUP]
        if old == 0 and group.generation and group.state == GroupState.EMPTY:
            group.begin_again()
        if group.generation is not None and old != group.generation:
            group.generations_missing(line, group.generation, old)
            if group.state != GroupState.STABLE:
                group.state, rules = UNKNOWN, [_BEFORE_UNKNOWN]
        group.generation = old
        if group.state == GroupState.PREPARING_REBALANCE:
            return
        if group.state == GroupState.COMPLETING_REBALANCE:
            rules = self._see_assigned(line, old, cause, rules)
        group.emit(line, group.begins(old + 1, cause, member_id), Why([line], "; ".join(rules)))
        self._client_reason(line, line.fields.get("client_reason"), member_id)
        if cause == Cause.APPEND_FAILED and group.append_refused is not None:
            said = group.append_refused.fields
            partition, why = f"__consumer_offsets-{said['partition']}", Why([line, group.append_refused])
            detail = f"in sync: {said['isr']}, needed: {said['needed']}"
            refused = imported.AppendRefused(group.name, "NOT_ENOUGH_REPLICAS", partition, detail)
            group.emit(line, refused, why, step=1)
        self._from_empty = group.state == GroupState.EMPTY
        group.state, self._prepared, self._dropped = GroupState.PREPARING_REBALANCE, line, False
        group.prepared_us, self._change = line.time_us, None

    def _see_assigned(self, line: Observation, generation: int, cause: str, rules: list[str]) -> list[str]:
        """Whether the generation had its assignment, of which no line of the coordinator says anything."""
        group, completing_us = self._group, self._completing_us
        if group.is_assigned(generation):
            group.state = GroupState.STABLE
            return [_HAS_ASSIGNMENT]
        if cause == Cause.SYNC_TIMEOUT or line.time_us - completing_us <= _LOST_US:
            return rules
        self._assignment_missing(line, generation)
        group.state = UNKNOWN
        return [_BEFORE_UNKNOWN]

    def _assignment_missing(self, line: Observation, generation: int | None) -> None:
        sentence = (
            f"whether generation {generation} had an assignment, and when: lines may be missing before the "
            "next round"
        )
        self._group.is_missing(line, GENERATIONS, generation, sentence)

    def _cause(self, line: Observation) -> tuple[str, str | None]:
        """The cause of a round and the member that caused it; members that only the reason names come and
        go."""
        reason = line.fields.get("reason")
        found = None if reason is None else _REASONS.find(reason)
        if found is None:
            if reason is not None:
                sentence = f"the reason {reason!r} is not one that groupstorm knows"
                self._group.is_missing(line, "reasons", None, sentence)
            return UNKNOWN, None
        member_id, instance = found.fields.get("member_id"), found.fields.get("instance")
        cause = found.kind
        if cause == Cause.NEW_MEMBER and member_id is not None:
            cause = self._join_by_reason(line, member_id, optional(instance))
        if cause in (Cause.LEADER_REJOINED, Cause.MEMBER_UPDATED, Cause.APPEND_FAILED) and member_id:
            self._group.members.members.setdefault(member_id, optional(instance))
        gone = [member_id] if member_id else member_ids(found.fields.get("member_ids", ""))
        if cause in (Cause.LEFT, Cause.SESSION_EXPIRED, Cause.SYNC_TIMEOUT):
            for one in gone:
                if one not in self._went:
                    self._remove(line, one, cause, _FROM_REASON)
                    self._gone_by_reason.append(one)
        return cause, member_id or (gone[0] if len(gone) == 1 else None)

    def _join_by_reason(self, line: Observation, member_id: str, instance: str | None) -> str:
        members = self._group.members
        if member_id == self._added[0]:
            return self._added[1]
        cause = Cause.STATIC_MEMBER if instance else Cause.NEW_MEMBER
        if member_id not in members.members:
            cause = Cause.PENDING_MEMBER if member_id in members.pending else cause
            self._add(line, member_id, instance, cause, _FROM_REASON)
        return str(cause)

    def _begin_unsaid(self, line: Observation, generation: int) -> None:
        """A round whose beginning is not in the logs: the first member that came or went began it."""
        group = self._group
        if group.generation is None and generation == 1 and self._change is not None:
            group.generation = 0
        if group.generation is None or generation <= group.generation:
            return
        if generation > group.generation + 1:
            group.generations_missing(line, group.generation, generation)
        if self._change is None:
            group.began_unsaid(line, generation, _BEGAN, self._completing_us)
            return
        change, cause, member_id = self._change
        event = group.begins(generation, cause, member_id)
        why = Why([change, line], _BEGAN_BY, inferred=True)
        group.emit(change, event, why, step=1)

    def _stabilized(self, line: Observation) -> None:
        group, generation = self._group, line.fields["generation"]
        if group.state != GroupState.PREPARING_REBALANCE:
            self._begin_unsaid(line, generation)
        group.generation = generation
        if "count" in line.fields:
            group.members.count = line.fields["count"]
            self._join_pending(line)
            members = group.members
            if members.count == len(members.members):  # each has joined this generation
                named = {one: members.name(one, instance) for one, instance in members.members.items()}
                group.see_shared(named, line)
        cause, rule = Cause.ALL_JOINED, _ALL_JOINED
        if self._dropped:
            cause, rule = Cause.REBALANCE_TIMEOUT, _NOT_REJOINED
        elif self._from_empty and self._prepared and line.time_us - self._prepared.time_us >= _AT_ONCE_US:
            cause, rule = Cause.INITIAL_DELAY, _INITIAL_DELAY
        group.state, group.protocol, group.leader = GroupState.COMPLETING_REBALANCE, None, None
        self._completing_us, self._change = line.time_us, None
        group.round_completing(line, generation, str(cause), rule)
        self._prepared, self._from_empty = None, False
        self._went.clear()

    def _join_pending(self, line: Observation) -> None:
        """Before Kafka 4 no line says that a member joins with its id in a round that is open already."""
        members = self._group.members
        if members.unnamed != len(members.pending):
            return
        for member_id in [*members.pending]:
            members.count = None  # it counts them already
            self._add(line, member_id, None, Cause.PENDING_MEMBER, _COUNT_FITS)
        members.count = line.fields["count"]

    def _assignment(self, line: Observation) -> None:
        group, fields = self._group, line.fields
        group.generation = fields["generation"]
        if "count" in fields:
            group.members.count = fields["count"]
        group.leader = fields.get("leader")
        if group.leader:
            group.members.members.setdefault(group.leader, None)
        group.state, self._change = GroupState.STABLE, None
        group.round_stable(line, fields["generation"], group.leader)

    def _empty(self, line: Observation) -> None:
        group, generation = self._group, line.fields["generation"]
        for member_id in [*group.members.members]:
            self._emptied.took(member_id, group.members.remove(member_id), line)
        event = events.GroupStateChanged(
            group.name, GroupState.PREPARING_REBALANCE, GroupState.EMPTY, generation, Cause.NO_MEMBERS, None,
            None, None, 0,
        )  # fmt: skip
        group.emit(line, event)
        group.members.clear()
        group.members.count = 0
        group.state, group.generation, self._prepared = GroupState.EMPTY, generation, None

    # -- members ---------------------------------------------------------------------------------

    def _see_state(self, line: Observation) -> None:
        """The first line of a group may say that it was empty until then, a later one that it is Stable."""
        group = self._group
        if group.state == GroupState.COMPLETING_REBALANCE and line.fields.get("state") == GroupState.STABLE:
            group.state = GroupState.STABLE
            if not group.is_assigned(group.generation or 0):
                self._assignment_missing(line, group.generation)
        if group.state == UNKNOWN and line.fields.get("state") == GroupState.EMPTY:
            group.state = GroupState.EMPTY
            group.members.count = 0

    def _id_handed_out(self, line: Observation) -> None:
        self._see_state(line)
        self._group.members.pending[line.fields["member_id"]] = None
        self.id_handed_out(line)

    def _created(self, line: Observation) -> None:
        self._see_state(line)
        member_id = line.fields["member_id"]
        if member_id not in self._group.members.members:
            cause = _COMES.get(line.kind, Cause.NEW_MEMBER)
            self._add(line, member_id, line.fields.get("instance"), cause)

    def _static_replacing(self, line: Observation) -> None:
        """The new id is in a later line, if in any."""
        self._group.returning.returned(line, self._group.generation)

    def _static_replaced(self, line: Observation) -> None:
        new, instance = line.fields["member_id"], line.fields["instance"]
        event = self._group.replaced(line.fields["old_member_id"], new, instance)
        self._group.emit(line, event, self._named(line, new, instance))

    def _fenced(self, line: Observation) -> None:
        member_id = line.fields["member_id"]
        words = line.fields.get("operation", UNKNOWN).split("-")
        api = UNKNOWN if words == [UNKNOWN] else "".join(map(str.capitalize, words))
        name = self._group.members.name(member_id, line.fields["instance"])
        refused = imported.RequestRefused(self._group.name, name, member_id, None, api, "FENCED_INSTANCE_ID")
        self._group.emit(line, refused)

    def _failed(self, line: Observation) -> None:
        self._gone(line, line.fields["member_id"], Cause.SESSION_EXPIRED)

    def _left(self, line: Observation) -> None:
        member_id = line.fields.get("member_id")
        if member_id is None:
            return
        self._group.described(line)
        self._client_reason(line, line.fields.get("reason"), member_id)
        self._gone(line, member_id, Cause.LEFT)

    def _gone(self, line: Observation, member_id: str, cause: str) -> None:
        if member_id in self._gone_by_reason:
            self._gone_by_reason.remove(member_id)
        elif not self._emptied.said(member_id, line, cause):
            self._remove(line, member_id, cause)

    def _client_reason(self, line: Observation, reason: str | None, member_id: str | None) -> None:
        if member_id is None or reason in _NO_REASONS:
            return
        name = self._group.members.name(member_id)
        event = events.ClientReason(self._group.name, name, self._group.generation, str(reason))
        self._group.emit(line, event, self._named(line, member_id), Source.WORLD, step=1)

    def _not_rejoined(self, line: Observation) -> None:
        self._dropped = True
        for member_id in line.fields["member_ids"]:
            self._remove(line, member_id, Cause.REBALANCE_TIMEOUT)

    def _pending_gone(self, line: Observation) -> None:
        member_id = line.fields["member_id"]
        cause = Cause.LEFT if line.kind == "pending-left" else Cause.SESSION_EXPIRED
        self._group.members.pending.pop(member_id, None)
        self._group.emit(line, events.PendingMemberRemoved(self._group.name, member_id, str(cause)))

    def _add(
        self, line: Observation, member_id: str, instance: str | None, cause: str, rule: str = ""
    ) -> None:
        self._added = member_id, str(cause)
        self._change = self._change or (line, str(cause), member_id)
        event = self._group.added(member_id, instance, cause)
        self._group.emit(line, event, self._named(line, member_id, instance, rule, bool(rule)))

    def _remove(self, line: Observation, member_id: str, cause: str, rule: str = "") -> None:
        self._went.add(member_id)
        self._change = self._change or (line, str(cause), member_id)
        event = self._group.removed(member_id, cause, line.fields.get("instance"))
        self._group.emit(line, event, self._named(line, member_id, event.instance, rule, bool(rule)))
        self._group.tell_removal(member_id, line, str(cause))

    # -- the group's life ------------------------------------------------------------------------

    def _loaded_member(self, line: Observation) -> None:
        """On its start a broker logs every generation that it reads; the last one is the group's."""
        member_id = line.fields.get("member_id")
        if member_id is None:
            return
        generation = line.fields.get("generation")
        loaded = self._loaded.items()
        self._loaded = {one: seen for one, seen in loaded if seen.fields.get("generation") == generation}
        self._loaded[member_id] = line
        self._group.described(line)

    def _loading(self, line: Observation) -> None:
        group = self._group
        generation = line.fields.get("generation")
        group.members.clear()
        group.members.count = line.fields.get("count")
        group.emit(line, events.GroupCreated(group.name, "loaded"))
        group.generation = generation
        loaded = [
            seen
            for seen in self._loaded.values()
            if generation is None or seen.fields.get("generation") in (None, generation)
        ]
        for seen in loaded:
            member_id, instance = seen.fields["member_id"], seen.fields.get("instance")
            group.members.ever.add(member_id)
            group.members.members[member_id] = instance
            name = group.members.name(member_id)
            event = events.MemberAdded(group.name, name, member_id, instance, generation, "loaded")
            group.emit(line, event, Why([seen, line], "member: loaded with the group", inferred=True))
        if loaded and group.members.count is None:
            group.members.count = len(loaded)
        group.state = GroupState.STABLE if loaded else UNKNOWN
        self._loaded = {}

    def _end(self, line: Observation) -> None:
        group, cause = self._group, Cause.UNLOADED if line.kind == "unloaded" else UNKNOWN
        rule = "" if cause != UNKNOWN else "cause: deleted or expired, the line does not say which"
        group.emit(line, events.GroupDeleted(group.name, str(cause)), Why([line], rule))
        group.members.clear()
        group.state, group.generation, self._prepared = UNKNOWN, None, None

    def _append_failed(self, line: Observation) -> None:
        error = line.fields.get("error", UNKNOWN)
        self._group.emit(line, events.AppendFailed(self._group.name, error, UNKNOWN))

    HANDLERS: ClassVar[Handlers] = {
        "preparing": _preparing,
        "stabilized": _stabilized,
        "assignment": _assignment,
        "empty": _empty,
        "gone": _end,
        "id-handed-out": _id_handed_out,
        "created": _created,
        "pending-joins": _created,
        "static-created": _created,
        "static-replacing": _static_replacing,
        "static-replaced": _static_replaced,
        "static-replaced-anywhere": _static_replaced,
        "fenced": _fenced,
        "failed": _failed,
        "left": _left,
        "left-described": _left,
        "pending-left": _pending_gone,
        "pending-expired": _pending_gone,
        "not-rejoined": _not_rejoined,
        "loading": _loading,
        "loaded": _loading,
        "loaded-member": _loaded_member,
        "loaded-id": _loaded_member,
        "unloaded": _end,
        "append-failed": _append_failed,
    }
