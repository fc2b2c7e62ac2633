"""A group that is described at some times: what changed between them, and who has what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from groupstorm.imports.groups_command import DESCRIBED, LOG_ENDS, REBALANCING
from groupstorm.imports.provenance import Why, between
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.imports.timeline.part import GroupPart, Handlers
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.schema import Source

_CAME: Final = "member: it is in the group when the group is described; when it came is not known"
_WENT: Final = "member: it is not in the group any more when the group is described; how it went is not known"
_STATE: Final = "state: the group is in it when it is described; when it came into it is not known"
_TARGET_EPOCH: Final = "generation: the target assignment that members have is of it; since when is not known"
_HAS: Final = "partitions: the member has them when the group is described; since when is not known"
_COMMITTED: Final = (
    "positions: they are committed when the group is described; member_id, generation: unknown"
)
_REBALANCED: Final = (
    "state: the members or what they have differ between two descriptions, so the group has rebalanced; when "
    "is not known"
)
_NAMES_PARTITIONS: Final = "state: what members have is described only while a classic group is Stable"
_RATES: Final = "rates: what the logs have grown by until they were asked for again"
#: Rates count records in 1,000 seconds.
_RATE_PER_US: Final = 1_000 * 1_000_000
_MEMBER_STATE: Final = "state: STABLE if the member has its target, and is at its epoch"
_NO_TIME: Final = "when the output was printed is not known: --at TIME says it"
_NOT_PRINTED: Final = (
    "what the members have is not printed: describe the group with --members --verbose, or without options"
)
_REBALANCING: Final = (
    "the group was rebalancing, or nobody had anything, when it was described: what its members have is not "
    "printed then"
)


_TIME_UNKNOWN: Final = (
    "owners changed between two descriptions: for how long partitions had no owner is not known"
)


class DescribedGroup(GroupPart):
    """Takes the descriptions of one group in the order of time."""

    def __init__(self, group: GroupRecord) -> None:
        super().__init__(group)
        #: The last description, and the last one that lists the members.
        self._last: Observation | None = None
        self._listed: Observation | None = None
        #: Member id -> what it had when it was last described.
        self._had: dict[str, tuple[Any, ...]] = {}
        #: group.instance.id or member id -> what it had, as the last description has it.
        self._shares: dict[str, Sequence[str] | None] | None = None
        self._committed: dict[str, int] = {}
        self._known = False
        #: The last observation of the ends of logs.
        self._ends: Observation | None = None

    def _described(self, line: Observation) -> None:
        group, fields = self._group, line.fields
        group.summary.descriptions += 1
        if fields.get("is_timeless"):
            group.is_missing(line, "clock", None, _NO_TIME)
        members = fields["members"]
        if members is not None:
            differs = self._differs(line, members)
            self._change_members(line, members)
            if differs:
                self._changed_meanwhile(line, members)
        self._change_state(line)
        if members is not None:
            self._assignments(line, members)
        elif fields["state"] in REBALANCING:
            self._shares = None
            self._not_known(line, _REBALANCING)
        self._commits(line)
        self._last = line

    def _log_ends(self, line: Observation) -> None:
        """Between two of them the logs have grown by what lies between their ends."""
        first, self._ends = self._ends, line
        if first is None or first.time_us >= line.time_us:
            return
        started, ended = first.fields["ends"], line.fields["ends"]
        names = [name for name in started if ended.get(name, -1) >= started[name]]
        if not names:
            return
        passed_us = line.time_us - first.time_us
        rates = tuple((ended[name] - started[name]) * _RATE_PER_US // passed_us for name in names)
        event = scenario_events.RecordRatesChanged(
            self._group.name, tuple(names), tuple(started[name] for name in names), rates
        )
        self._group.emit(first, event, Why([first, line], _RATES), Source.WORLD, 2)

    def _change_members(self, line: Observation, members: Sequence[Mapping[str, Any]]) -> None:
        group, known = self._group, self._group.members.members
        now = {member["member_id"]: member for member in members}
        for member_id in [member_id for member_id in known if member_id not in now]:
            group.emit(line, group.removed(member_id, UNKNOWN), between(self._listed, line, _WENT), step=-4)
            self._had.pop(member_id, None)
        for member_id, member in now.items():
            group.all_ids.setdefault(member_id, False)
            group.members.learn(member_id, member["client"])
            if member_id in known:
                continue
            came = group.added(member_id, member["instance"], UNKNOWN)
            came = came._replace(member=group.members.name(member_id))
            group.emit(line, came, between(self._listed, line, _CAME), step=-3)
        group.members.count, self._listed = len(now), line
        if line.fields["state"] not in REBALANCING:  # a dead member may be in it beside its successor
            group.see_shared({one: group.members.name(one, now[one]["instance"]) for one in now}, line)

    def _differs(self, line: Observation, members: Sequence[Mapping[str, Any]]) -> bool:
        """Whether members or what they have differ from the last description, and no other source says why.

        A static member under a new id, with what it had, is the same one (KIP-345). A member of a consumer
        group that has nothing changes no owner.
        """
        before, self._shares = self._shares, None
        if line.fields["state"] in REBALANCING:
            return False  # the row of the state says it
        is_classic = self._is_classic(line, members)
        shares = {
            member["instance"] or member["member_id"]: member["partitions"]
            for member in members
            if is_classic or member["partitions"]
        }
        self._shares = shares
        if before is None or not self._group.summary.is_only_described:
            return False
        return before.keys() != shares.keys() or any(
            had is not None and has is not None and {*had} != {*has}
            for had, has in ((before[one], shares[one]) for one in shares)
        )

    def _is_classic(self, line: Observation, members: Sequence[Mapping[str, Any]]) -> bool:
        return (
            not self._group.is_modern
            and line.fields["epoch"] is None
            and all(member["epoch"] is None for member in members)
        )

    def _changed_meanwhile(self, line: Observation, members: Sequence[Mapping[str, Any]]) -> None:
        """Between the last description and this one. A classic group must have had another generation."""
        assert self._last is not None
        if self._is_classic(line, members):
            self._came_into(line, GroupState.PREPARING_REBALANCE, _REBALANCED)
        if self._known:
            self._known = False
            self._group.is_missing(self._last, "ownership", None, _TIME_UNKNOWN)

    def _change_state(self, line: Observation) -> None:
        group, state, rule = self._group, line.fields["state"], _STATE
        members = line.fields["members"]
        if state is None and members and self._is_classic(line, members) and _names_partitions(members):
            state, rule = GroupState.STABLE, _NAMES_PARTITIONS
        self._change_epoch(line)
        if state is not None and state != group.state:
            group.protocol = line.fields["protocol"] or group.protocol
            self._came_into(line, state, rule)

    def _came_into(self, line: Observation, state: str, rule: str) -> None:
        group = self._group
        generation: Any = group.generation  # null in the row if no source says it
        changed = events.GroupStateChanged(
            group.name, group.state, state, generation, UNKNOWN, None, group.protocol, None,
            group.members.count,
        )  # fmt: skip
        group.emit(line, changed, between(self._last, line, rule), step=-2)
        group.summary.rebalances_seen += state == GroupState.PREPARING_REBALANCE
        group.summary.has_members |= state not in (GroupState.EMPTY, "Dead")
        group.state = state

    def _change_epoch(self, line: Observation) -> None:
        """The group's, or without --state that of the newest target that members have."""
        group, epoch, rule = self._group, line.fields["epoch"], _STATE
        if epoch is None:
            targets = (member.get("target_epoch") for member in line.fields["members"] or ())
            epoch = max((target for target in targets if target is not None), default=None)
            rule = _TARGET_EPOCH
        if epoch is None or epoch == group.generation:
            return
        group.is_modern, group.generation = True, epoch
        if self._last is not None:
            group.emit(
                line, events.GroupEpochBumped(group.name, epoch), between(self._last, line, rule), step=-2
            )
            group.summary.rebalances_seen += 1

    def _assignments(self, line: Observation, members: Sequence[Mapping[str, Any]]) -> None:
        group = self._group
        is_classic = all(member["epoch"] is None for member in members)
        has_any = _names_partitions(members) or not members
        if is_classic and (line.fields["state"] in REBALANCING or not has_any):
            self._not_known(line, _REBALANCING)
        elif any(member["partitions"] is None for member in members):
            self._not_known(line, _NOT_PRINTED)
        else:
            for member in members:
                self._assignment(line, member)
            if not self._known:
                self._known = True
                known = imported.OwnershipKnown(group.name, group.generation)
                group.emit(line, known, source=Source.WORLD, step=-1)
                group.owners_described = True

    def _not_known(self, line: Observation, sentence: str) -> None:
        if self._known or self._last is None:
            self._group.is_missing(line, "ownership", None, sentence)
        self._known = False

    def _assignment(self, line: Observation, member: Mapping[str, Any]) -> None:
        group, member_id = self._group, member["member_id"]
        has = member["epoch"], tuple(member["partitions"])
        if self._had.get(member_id) == has:
            return
        self._had[member_id] = has
        name, why = group.members.name(member_id), between(self._last, line, _HAS)
        if member["epoch"] is None:
            answered = events.SyncAnswered(group.name, name, member_id, group.generation, None, has[1])
            group.emit(line, answered, why)
            return
        is_stable = member["epoch"] == member["target_epoch"] and {*has[1]} == {*member["target"]}
        group.is_modern = True
        revoking = tuple(member.get("revoking") or ())
        event = events.MemberReconciled(
            group.name, name, member_id, member["epoch"], "STABLE" if is_stable else UNKNOWN, has[1], revoking
        )
        group.emit(line, event, why._replace(rule=f"{why.rule}; {_MEMBER_STATE}"))

    def _commits(self, line: Observation) -> None:
        moved = {
            partition: offset
            for partition, offset in line.fields["committed"].items()
            if self._committed.get(partition) != offset
        }
        if moved:
            self._committed.update(moved)
            event = events.OffsetsCommitted(
                self._group.name, None, None, tuple(moved), tuple(moved.values()), None
            )
            self._group.emit(line, event, between(self._last, line, _COMMITTED), step=1)

    HANDLERS: ClassVar[Handlers] = {DESCRIBED: _described, LOG_ENDS: _log_ends}


def _names_partitions(members: Sequence[Mapping[str, Any]]) -> bool:
    return any(member["partitions"] for member in members)
