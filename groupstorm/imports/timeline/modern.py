"""Consumer groups (KIP-848), share groups and streams groups, from their coordinator's lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from groupstorm.history.unknown import WITHOUT_OWNERS
from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.imports.timeline.part import GroupPart, Handlers
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.schema import Source

#: The epoch of a static member that has left for a while.
_AWAY: Final = -2
EMPTY, ASSIGNING, RECONCILING, STABLE = "Empty", "Assigning", "Reconciling", "Stable"

_ASSIGNING = "state: the group epoch is above the epoch of the targets"
_RECONCILING = "state: the targets have the group epoch, and members are not there yet"
_MEMBER_THERE = "state: a member has the group epoch, so the targets have it, and others are not there yet"
_MEMBER_AWAY = "state: a static member has left for a while, so not every member is at the group epoch"
_NEW_GROUP = "previous_state: a group at its first epoch has had no members"
_STABLE = "state: every member is at the group epoch and STABLE"
_NOT_A_TARGET = "member: the targets name every member, and no longer this one; no line says how it went"
_TOMBSTONE = "cause: the record does not say how the member went"
_GROUP_TOMBSTONE = "cause: deleted, expired or converted, the record does not say which"
_BUMPED_UNSAID = "a streams group counts its epoch up when a member goes, and no line says so"
_EMPTY_AGAIN = "state: the last member has gone"
_ADD_DEBUG: Final = (
    "Kafka 4 logs assignments at DEBUG: set org.apache.kafka.coordinator.group.GroupMetadataManager to "
    "DEBUG, or add the members' own logs"
)
#: Kafka 4 bumps a new group to it.
_FIRST_EPOCH: Final = 2
_NO_STATES: Final = "when the group was Stable is not logged: Kafka 4 logs the states of members at DEBUG"
#: What a fence of the coordinator says, and the cause that a trace names.
_FENCES: Final[Mapping[str, str]] = {
    "the member session expired": Cause.SESSION_EXPIRED,
    "the classic member didn't join within the rebalance timeout": Cause.JOIN_TIMEOUT,
}


class ModernGroup(GroupPart):
    """Takes the coordinator's lines about one group of the new protocols, in the order of time."""

    def __init__(self, group: GroupRecord) -> None:
        super().__init__(group)
        self._epoch: int | None = None
        self._target: int | None = None
        #: Member id -> its epoch and state, as far as lines have said them.
        self._reached: dict[str, tuple[int, str]] = {}
        self._assignments_logged = False
        #: Member id -> the last assignment of a row, so that a log and a record of one change make one row.
        self._told: dict[str, events.MemberReconciled] = {}
        self._targets_written = 0
        #: Why nobody owns a partition in this group; "" in a consumer group.
        self._unowned = ""
        #: How many targets there are whose outcome no line of the coordinator says.
        self._unlogged = 0
        #: The line by which the first of these is over, and its epoch.
        self._first_unlogged: tuple[Observation, int | None] | None = None
        #: The first line about a target, and whether any line said that all members had reached theirs.
        self._first_target: Observation | None = None
        self._was_stable = False

    # -- members ---------------------------------------------------------------------------------

    def _joined(self, line: Observation) -> None:
        group, fields = self._group, line.fields
        member_id, instance = fields["member_id"], fields.get("instance")
        group.is_modern = True
        self._unowned = self._unowned or WITHOUT_OWNERS.get(fields.get("type", ""), "")
        group.is_streams = group.is_streams or fields.get("type") == "streams"
        if member_id in group.members.members:
            return
        event = group.added(member_id, instance, Cause.STATIC_MEMBER if instance else Cause.NEW_MEMBER)
        event = event._replace(generation=self._epoch)
        group.emit(line, event, self._named(line, member_id, instance))

    def _replaced(self, line: Observation) -> None:
        fields = line.fields
        old, new, instance = fields["old_member_id"], fields["member_id"], fields["instance"] or ""
        self._reached.pop(old, None)
        event = self._group.replaced(old, new, instance)._replace(generation=self._epoch)
        self._group.emit(line, event, self._named(line, new, instance))

    def _updated(self, line: Observation) -> None:
        """Its subscription, for instance: the next line bumps the epoch."""
        group, member_id = self._group, line.fields["member_id"]
        event = events.MemberUpdated(group.name, group.members.name(member_id), member_id, self._epoch)
        group.emit(line, event, self._named(line, member_id))

    def _gone(self, line: Observation) -> None:
        self._remove(line, str(Cause.LEFT if line.kind == "modern-left" else Cause.REBALANCE_TIMEOUT))

    def _away(self, line: Observation) -> None:
        """A static member that will be back keeps its partitions, and stays in the group, at no epoch."""
        member_id = line.fields["member_id"]
        if member_id in self._reached:
            self._reached[member_id] = _AWAY, self._reached[member_id][1]
            self._change(line, RECONCILING, _MEMBER_AWAY)

    def _fenced(self, line: Observation) -> None:
        reason = line.fields["reason"].rstrip(". ")
        cause = next((cause for text, cause in _FENCES.items() if reason.startswith(text)), UNKNOWN)
        self._remove(line, str(cause), "" if cause != UNKNOWN else f"cause: the line says {reason!r}")

    def _refused(self, line: Observation) -> None:
        """Another member has the id: no row says that this one comes, and its own log may not name the id."""
        group, fields = self._group, line.fields
        said = json.dumps({"group.instance.id": fields["instance"]})
        event = imported.MemberConfigured(group.name, group.members.name(fields["member_id"]), said)
        group.emit(line, event, self._named(line, fields["member_id"]), Source.WORLD)

    def _remove(self, line: Observation, cause: str, rule: str = "") -> None:
        group, member_id = self._group, line.fields["member_id"]
        group.is_modern = True
        is_known = member_id in group.members.members
        event = group.removed(member_id, cause, line.fields.get("instance"))._replace(generation=self._epoch)
        self._reached.pop(member_id, None)
        self._told.pop(member_id, None)
        group.emit(line, event, self._named(line, member_id, event.instance, rule))
        group.tell_removal(member_id, line, cause)
        count = group.members.count
        if group.is_streams and self._epoch is not None:
            self._epoch = group.generation = self._epoch + 1
            bumped = events.GroupEpochBumped(group.name, self._epoch)
            group.summary.epochs += 1
            group.emit(line, bumped, Why([line], _BUMPED_UNSAID, inferred=True))
            if group.members.members:
                self._change(line, ASSIGNING, _ASSIGNING, cause)
        if not group.members.members and (count == 0 or (count is None and is_known)):
            self._change(line, EMPTY, _EMPTY_AGAIN, Cause.NO_MEMBERS)

    # -- epochs and assignments ------------------------------------------------------------------

    def _bumped(self, line: Observation) -> None:
        self._group.is_modern = True
        if self._epoch == line.fields["epoch"]:
            return  # a log and a record say the same
        if self._target is not None and not self._assignments_logged:
            self._not_logged(line)
        before = self._epoch
        self._epoch = line.fields["epoch"]
        self._group.generation = self._epoch
        self._group.summary.epochs += 1
        self._group.emit(line, events.GroupEpochBumped(self._group.name, self._epoch))
        if self._group.state != EMPTY or self._group.members.members:
            rule = _ASSIGNING
            if before is None and self._epoch <= _FIRST_EPOCH and len(self._group.members.members) == 1:
                self._group.state, rule = EMPTY, f"{_NEW_GROUP}; {_ASSIGNING}"
            self._change(line, ASSIGNING, rule)

    def _targets(self, line: Observation) -> None:
        group, fields = self._group, line.fields
        group.is_modern = True
        self._target = self._epoch = group.generation = fields["epoch"]
        targets = fields.get("targets")
        group.protocol = fields["protocol"]
        event = events.TargetAssigned(group.name, fields["epoch"], None if targets is None else len(targets))
        group.emit(line, event)
        for member_id in targets or ():
            group.all_ids.setdefault(member_id, False)
            group.members.members.setdefault(member_id, None)
        if targets is not None:
            for gone in [one for one in group.members.members if one not in targets]:
                self._drop(line, gone)
        self._change(line, RECONCILING, _RECONCILING)

    def _drop(self, line: Observation, member_id: str) -> None:
        """The targets name every member of the group, and not this one."""
        group = self._group
        event = group.removed(member_id, UNKNOWN)._replace(instance=None, generation=self._epoch)
        self._reached.pop(member_id, None)
        group.emit(line, event, Why([line], _NOT_A_TARGET, inferred=True), step=-1)

    def _assignment(self, line: Observation) -> None:
        group, fields = self._group, line.fields
        group.is_modern = self._assignments_logged = True
        member_id, epoch = fields["member_id"], fields["epoch"]
        event = events.MemberReconciled(
            group.name, group.members.name(member_id), member_id, epoch, fields["state"],
            tuple(fields["partitions"]), tuple(fields.get("revoking") or ()),
        )  # fmt: skip
        before = self._told.get(member_id)
        if before == event:
            return
        had = set() if before is None else {*before.partitions}
        group.topics.given_up(had.difference(event.partitions), line)
        group.topics.taken(set(event.partitions) - had, line)
        self._told[member_id] = event
        group.members.members.setdefault(member_id, None)
        if not self._reached:
            group.emit(line, imported.OwnershipKnown(group.name, epoch), source=Source.WORLD)
            group.summary.rounds_known += 1
        self._reached[member_id] = epoch, fields["state"]
        group.emit(line, event, self._named(line, member_id))
        if self._is_stable():
            self._change(line, STABLE, _STABLE)
        elif group.state == ASSIGNING and epoch == self._epoch:  # targets that change nothing are not logged
            self._change(line, RECONCILING, _MEMBER_THERE)

    # -- records of the offsets topic ------------------------------------------------------------

    def _member_written(self, line: Observation) -> None:
        group, member_id = self._group, line.fields["member_id"]
        group.described(line)
        if member_id not in group.members.members:
            self._joined(line)
            return
        event = events.MemberUpdated(group.name, group.members.name(member_id), member_id, self._epoch)
        group.emit(line, event)

    def _member_tombstone(self, line: Observation) -> None:
        """A log may have said already how the member went."""
        if line.fields["member_id"] in self._group.members.members:
            self._remove(line, UNKNOWN, _TOMBSTONE)

    def _target_written(self, _line: Observation) -> None:
        self._targets_written += 1

    def _target_epoch_written(self, line: Observation) -> None:
        """The targets of the members that changed come before their epoch."""
        group, count = self._group, self._targets_written
        self._targets_written = 0
        group.is_modern = True
        if self._target == line.fields["epoch"]:
            return
        self._target = line.fields["epoch"]
        group.emit(line, events.TargetAssigned(group.name, self._target or 0, count))
        self._change(line, RECONCILING, _RECONCILING)

    def _epoch_tombstone(self, line: Observation) -> None:
        if self._epoch is not None:
            event = events.GroupDeleted(self._group.name, UNKNOWN)
            self._group.emit(line, event, Why([line], _GROUP_TOMBSTONE))
            self._group.is_modern = False
            self._forget()

    def _tasks(self, line: Observation) -> None:
        """A streams group: tasks are not partitions, so ownership stays unknown."""
        fields = line.fields
        self._group.is_modern = True
        self._unowned = WITHOUT_OWNERS["streams"]
        self._reached[fields["member_id"]] = fields["epoch"], fields["state"]
        if self._is_stable():
            self._change(line, STABLE, _STABLE)

    def _is_stable(self) -> bool:
        members = self._group.members.members
        there = [self._reached.get(member_id) for member_id in members]
        return bool(there) and all(one == (self._epoch, STABLE.upper()) for one in there)

    def _change(self, line: Observation, state: str, rule: str, cause: str = Cause.HEARTBEAT) -> None:
        group = self._group
        self._was_stable = self._was_stable or state == STABLE
        if state == STABLE:
            plan = {member_id: told.partitions for member_id, told in self._told.items()}
            group.assigned(plan, None, line)
        if state == RECONCILING and self._first_target is None:
            self._first_target = line
        if group.state == state:
            return
        event = events.GroupStateChanged(
            group.name, group.state, state, self._epoch or 0, str(cause), None, group.protocol, None,
            len(group.members.members) or None,
        )  # fmt: skip
        group.emit(line, event, Why([line], rule, inferred=True), step=1)
        group.state = state

    def _not_logged(self, line: Observation) -> None:
        """No line of the coordinator says what came of the last target."""
        self._unlogged += 1
        if self._first_unlogged is None:
            self._first_unlogged = line, self._target

    def finish(self) -> None:
        """No more lines come: now it is known whether the logs of all members are there instead."""
        group = self._group
        if self._target is not None and not self._assignments_logged and group.last is not None:
            self._not_logged(group.last)
        if self._first_target is not None and not self._was_stable:
            group.is_missing(self._first_target, "stability", None, _NO_STATES, step=-6)
        if self._first_unlogged is None:
            return
        if group.view == "members" and not self._unowned:
            group.summary.rounds_known += self._unlogged
            return
        line, target = self._first_unlogged
        group.summary.rounds_unknown += self._unlogged
        sentence = self._unowned or f"who owned which partition is not known: {_ADD_DEBUG}"
        group.summary.missing["ownership"] = self._unlogged, sentence
        group.add_missing(line, "ownership", target, sentence, 1)

    # -- the group's life ------------------------------------------------------------------------

    def _upgraded(self, line: Observation) -> None:
        self._convert(line, Cause.UPGRADED)
        self._group.is_modern = True
        self._epoch = self._target = self._group.generation

    def _downgraded(self, line: Observation) -> None:
        self._convert(line, Cause.DOWNGRADED)
        self._group.is_modern = False

    def _convert(self, line: Observation, cause: str) -> None:
        generation = self._group.generation
        event = events.GroupConverted(self._group.name, generation or 0, str(cause))
        rule = "" if generation is not None else "generation: no earlier line says it"
        self._group.emit(line, event, Why([line], rule))

    def _loaded(self, line: Observation) -> None:
        self._group.emit(line, events.GroupCreated(self._group.name, "loaded"))
        self._group.members.clear()
        self._group.members.count = line.fields["count"]
        self._group.is_modern = True

    def _unloaded(self, line: Observation) -> None:
        self._group.emit(line, events.GroupDeleted(self._group.name, str(Cause.UNLOADED)))
        self._forget()

    def _forget(self) -> None:
        self._group.members.clear()
        self._reached.clear()
        self._told.clear()
        self._group.state, self._epoch, self._target = UNKNOWN, None, None

    HANDLERS: ClassVar[Handlers] = {
        "modern-joined": _joined,
        "modern-replaced": _replaced,
        "modern-id-handed-out": GroupPart.id_handed_out,
        "modern-updated": _updated,
        "modern-left": _gone,
        "modern-away": _away,
        "modern-fenced": _fenced,
        "modern-refused": _refused,
        "modern-fenced-late": _gone,
        "epoch": _bumped,
        "target": _targets,
        "member-assignment": _assignment,
        "member-tasks": _tasks,
        "upgraded": _upgraded,
        "downgraded": _downgraded,
        "modern-loaded": _loaded,
        "modern-unloaded": _unloaded,
        "member-written": _member_written,
        "member-tombstone": _member_tombstone,
        "target-written": _target_written,
        "target-epoch-written": _target_epoch_written,
        "epoch-tombstone": _epoch_tombstone,
    }
