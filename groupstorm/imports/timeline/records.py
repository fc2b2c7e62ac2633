"""Classic groups from the records of `__consumer_offsets`: one per generation, and the commits between.

A record has the members, their assignments, and when the join phase of its generation ended. It does not say
why the round began, nor when.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from groupstorm.imports.provenance import Why, between
from groupstorm.imports.source import TIME_RULE, Observation, TimeRule
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.imports.timeline.part import GroupPart, Handlers
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState

_SINCE: Final = "time: the record has the time at which the group came into its state; it has no cause"
_BEGAN: Final = "the round began after the last record of the group, and before its join phase ended"
_CAME: Final = "member: the record of the generation names it, and the one before does not"
_WENT: Final = "member: the record of the generation does not name it any more; no record says how it went"
_REPLACED: Final = "member: the record has the instance under a new member id"
_CREATED: Final = "cause: the record of generation 0 without members is the first one of a group"
_COMMITTER: Final = "member_id, generation: no record says who commits"
_WHEN_AT_LATEST: Final = TimeRule("latest", "time: the join phase ended before the record was written")


class WrittenGenerations(GroupPart):
    """Takes the records of one classic group in the order of time, between the lines of logs about it."""

    def __init__(self, group: GroupRecord, classic: GroupPart) -> None:
        super().__init__(group)
        self._classic = classic
        #: The last generation that has a record, and its line.
        self._generation: int | None = None
        self._last: Observation | None = None

    def _written(self, line: Observation) -> None:
        members, generation = line.fields["members"], line.fields["generation"]
        if generation == self._generation and members:
            self._change_members(line, members)  # a static member came back, and its group stays as it is
        elif members:
            self._round(line)
        elif generation == 0:
            self._created(line)
        elif self._group.state != GroupState.EMPTY or self._group.generation != generation:
            self._empty(line)
        self._generation, self._last = generation, line

    # -- a group with members --------------------------------------------------------------------

    def _round(self, line: Observation) -> None:
        group, fields = self._group, line.fields
        generation = fields["generation"]
        if group.generation is not None and generation > group.generation + 1:
            group.generations_missing(line, group.generation, generation)
        one = group.round(generation)
        ended = self._join_end(line)
        if one.assigned is not None:  # a log says when the leader's assignment came
            ended = ended._replace(time_us=min(ended.time_us, one.assigned.time_us))
        if one.stabilized is None:
            self._begin(ended, generation)
            self._change_members(ended, fields["members"])
            group.round_completing(ended, generation, UNKNOWN, _SINCE)
        else:
            self._change_members(line, fields["members"])
        if one.assigned is None:
            group.round_stable(line, generation, fields["leader"])
        one.written, one.protocol, one.leader = line, fields["protocol"], fields["leader"]
        one.count = len(fields["members"])
        one.named = tuple(member["member_id"] for member in fields["members"])
        one.clients.update(
            {member["member_id"]: member["client"] for member in fields["members"] if member["client"]}
        )
        group.members.count = one.count
        group.state, group.generation = GroupState.STABLE, generation
        group.leader, group.protocol = fields["leader"], fields["protocol"]

    def _join_end(self, line: Observation) -> Observation:
        """The record as a line about the end of the join phase: it has the time of that, too."""
        fields = {"count": len(line.fields["members"])}
        since_us = line.fields["since_us"]
        if since_us is None:
            return line._replace(fields={**fields, TIME_RULE: _WHEN_AT_LATEST})
        return line._replace(time_us=min(line.time_us, since_us), fields=fields)

    def _begin(self, ended: Observation, generation: int) -> None:
        """The beginning of a round that no line tells."""
        if self._group.state != GroupState.PREPARING_REBALANCE:
            earliest = None if self._last is None else self._last.time_us
            self._group.began_unsaid(ended, generation, _BEGAN, earliest)

    def _change_members(self, line: Observation, written: list[dict[str, Any]]) -> None:
        """Rows for the members that came and went since the last record, as far as no line told them."""
        group = self._group
        known = group.members.members
        now = {member["member_id"]: member for member in written}
        gone = [member_id for member_id in known if member_id not in now]
        instances = {known[member_id]: member_id for member_id in gone if known[member_id]}
        for member_id, member in now.items():
            group.described(line._replace(fields=_description(member)))
            if member_id in known:
                continue
            old = instances.get(member["instance"])
            if old is not None:
                gone.remove(old)
                replaced = group.replaced(old, member_id, member["instance"])
                group.emit(line, replaced, between(self._last, line, _REPLACED), step=-6)
            else:
                name = group.members.name(member_id)
                cause = Cause.STATIC_MEMBER if member["instance"] else UNKNOWN
                event = group.added(member_id, member["instance"], cause)
                group.emit(line, event._replace(member=name), between(self._last, line, _CAME), step=-6)
        for member_id in gone:
            group.emit(line, group.removed(member_id, UNKNOWN), between(self._last, line, _WENT), step=-7)
            group.tell_removal(member_id, line, UNKNOWN)

    # -- a group without members -----------------------------------------------------------------

    def _created(self, line: Observation) -> None:
        group = self._group
        if group.state == UNKNOWN:
            group.emit(line, events.GroupCreated(group.name, UNKNOWN), Why([line], _CREATED))
            group.state, group.generation = GroupState.EMPTY, 0
            group.members.count = 0

    def _empty(self, line: Observation) -> None:
        ended = self._join_end(line)
        self._begin(ended, line.fields["generation"])
        fields = {**ended.fields, "generation": line.fields["generation"]}
        self._classic.take(ended._replace(kind="empty", fields=fields))

    def _tombstone(self, line: Observation) -> None:
        """A log may have said already that the group is gone."""
        if self._group.generation is not None and not self._group.is_modern:
            self._classic.take(line._replace(kind="gone"))
        self._generation = None

    # -- offsets ---------------------------------------------------------------------------------

    def _committed(self, line: Observation) -> None:
        fields = line.fields
        event = events.OffsetsCommitted(
            self._group.name, None, None, tuple(fields["partitions"]), tuple(fields["positions"]), None
        )
        self._group.emit(line, event, Why([line], _COMMITTER))

    HANDLERS: ClassVar[Handlers] = {
        "generation-written": _written,
        "group-tombstone": _tombstone,
        "offsets-written": _committed,
    }


def _description(member: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a line that describes a member."""
    timeouts = {
        name: member[name]
        for name in ("session_timeout_ms", "rebalance_timeout_ms")
        if member[name] is not None and member[name] >= 0
    }
    return {"member_id": member["member_id"], "client": member["client"], **timeouts}
