"""Facts of a recording that a trace says: generations, causes, members, ownership, each as `Recovered`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from groupstorm.trace.events.group_states import Cause, GroupState
from tests.imports.real_logs import ImportedRecording, Row, recorded

#: A log's line and the harness' note of one instant are so far apart at most, on a machine that is busy.
_NEAR_MS: Final = 1_000
#: A member that is told to start has joined after so long at most, and one that crashed has been noticed.
_EFFECT_MS: Final = 20_000


class Recovered(NamedTuple):
    """``wrong``: what the trace says and the harness did not see, one sentence each."""

    found: int
    of: int
    wrong: Sequence[str] = ()

    def __add__(self, other: Any) -> Recovered:
        return Recovered(self.found + other.found, self.of + other.of, [*self.wrong, *other.wrong])

    def __str__(self) -> str:
        return f"{self.found} of {self.of}"


NOTHING: Final = Recovered(0, 0)


# -- generations ---------------------------------------------------------------------------------


def _generations(trace: ImportedRecording, group: str, saw: Mapping[str, Any]) -> Recovered:
    """The generations, or epochs, that the coordinator wrote: with its members' number and its time."""
    if trace.recording.is_consumer_group:
        return _epochs(trace, group, saw)
    written: dict[int, Mapping[str, Any]] = {}
    for record in saw["written"]:
        if record["generation"] > 0:  # generation 0 is a group that nobody has joined yet
            written.setdefault(record["generation"], record)
    found, wrong = set(), []
    for row in trace.of(group, "group_state_changed"):
        if row["state"] not in (GroupState.STABLE, GroupState.EMPTY):
            continue
        generation = row.get("generation")
        record = written.get(generation, {}) if generation is not None else {}
        count = row.get("count")
        if not record or bool(record["members"]) != (row["state"] == GroupState.STABLE):
            wrong.append(f"{group}: {row['state']} in generation {generation}")
        elif not _is_near(trace, row, record["time_ms"]):
            wrong.append(f"{group}: generation {generation} is {row['ms'] - record['time_ms']} ms off")
        elif count is not None and count != len(record["members"]):
            wrong.append(f"{group}: generation {generation} with {count} members")
        else:
            found.add(generation)
    return Recovered(len(found), len(written), wrong)


def _is_near(trace: ImportedRecording, row: Row, time_ms: int) -> bool:
    """Whether it happened at the row's time, or between the bounds that the row gives."""
    earliest_ms, latest_ms = trace.bounds(row)
    return earliest_ms - _NEAR_MS <= time_ms <= latest_ms + _NEAR_MS


def _epochs(trace: ImportedRecording, group: str, saw: Mapping[str, Any]) -> Recovered:
    written = {
        record["epoch"]: record["time_ms"] for record in reversed(saw["written"]) if record["kind"] == "epoch"
    }
    written.pop(0, None)
    found, wrong = set(), []
    for row in trace.of(group):
        epoch = row.get("generation")
        if epoch is None or epoch <= 0:
            continue
        if epoch not in written or row["ms"] < written[epoch] - _NEAR_MS:
            wrong.append(f"{group}: {row['event']} in epoch {epoch} at {row['ms']}")
        else:
            found.add(epoch)
    return Recovered(len(found), len(written), wrong)


# -- causes --------------------------------------------------------------------------------------


class Effect(NamedTuple):
    """The effect of an action of the harness on a member of the group, as the trace's events name it.

    ``until_ms``: when it has happened. ``rows``: (event, cause) of the rows that say it; cause None: any.
    """

    action: Mapping[str, Any]
    until_ms: int
    rows: Sequence[tuple[str, str | None]]


_CAME: Final = tuple(
    ("member_added", cause) for cause in (Cause.NEW_MEMBER, Cause.PENDING_MEMBER, Cause.STATIC_MEMBER)
)
_CLOSED: Final = (("member_removed", Cause.LEFT), ("member_closed", Cause.LEFT))
_CRASHED: Final = (("member_removed", Cause.SESSION_EXPIRED), ("member_crashed", None))
_TOO_SLOW: Final = (
    ("member_removed", Cause.LEFT),
    ("rejoin_requested", "poll-timeout"),
    ("partitions_lost", "poll-timeout"),
)
_MOVED: Final = (("group_created", "loaded"),)
_STARTED: Final = (("member_started", None),)
#: Of two processes with one static id the second takes the first one's place, or is refused.
_TWIN: Final = (("member_replaced", None), ("member_failed", None), ("request_refused", None))


def _effects(saw: Mapping[str, Any]) -> Iterator[Effect]:
    """A static member that is closed is still in the group: it is replaced, or its session expires."""
    seen: set[str] = set()
    actions = saw["actions"]
    static = {one["member"]: one["instance"] for one in actions if one.get("instance")}
    for number, action in enumerate(actions):
        member = action["member"]
        later = [one for one in actions[number + 1 :] if one["member"] == member]
        until_ms = (later[0] if later else actions[-1])["time_ms"] + _EFFECT_MS
        is_static, is_back = member in static, member in seen
        if action.get("of"):
            yield Effect(action, until_ms, _TWIN)
        elif action["do"] == "start":
            is_replaced = is_static and is_back and not _expires(saw, static[member], actions, number)
            came = (("member_replaced", None),) if is_replaced else _CAME
            yield Effect(action, until_ms, (*came, *_STARTED))
            seen.add(member)
        elif action["do"] == "kill":
            yield Effect(action, until_ms, _CRASHED)
        elif action["do"] == "busy":
            yield Effect(action, until_ms, _TOO_SLOW)
        elif action["do"] == "fail-over":
            yield Effect(action, until_ms, _MOVED)
        elif not is_static:
            yield Effect(action, until_ms, _CLOSED)
        elif not later or _expires(saw, static[member], actions, number + 1):
            yield Effect(action, until_ms, _CRASHED[:1])


def _expires(saw: Mapping[str, Any], instance: str, actions: Sequence[Mapping[str, Any]], start: int) -> bool:
    """Whether the coordinator wrote the group without the instance around the start of its new process: the
    process came too late."""
    stopped_ms = actions[start - 1]["time_ms"]
    for record in saw["written"]:
        if record["time_ms"] < stopped_ms:
            continue
        if record["kind"] == "generation-written":
            return instance not in {one["instance"] for one in record["members"]}
        if record["kind"] == "epoch":
            return True
        if record["kind"] == "member-written" and record["instance"] == instance:
            return False
    return False


def _causes(trace: ImportedRecording, group: str, saw: Mapping[str, Any]) -> Recovered:
    """Why members came and went: what the harness did to each."""
    effects = [*_effects(saw)]
    names, twins = _names(saw), _twins(saw)
    found = 0
    for effect in effects:
        at_ms = effect.action["time_ms"]
        found += any(
            (row["event"], cause) in effect.rows
            and _member(row, names, twins) == twins.get(effect.action["member"], effect.action["member"])
            and at_ms - _NEAR_MS <= row["ms"] <= effect.until_ms
            for row in trace.of(group)
            for cause in (row.get("cause"), None)
        )
    return Recovered(found, len(effects), [*_wrong_removals(trace, group, saw), *_wrong_rounds(trace, group)])


def _member(row: Row, names: Mapping[str, str], twins: Mapping[str, str]) -> str:
    """The client id of the row's member: by its member id, or else as the row has it."""
    said = row.get("member") or ""
    return names.get(row.get("member_id") or "", twins.get(said, said))


def _twins(saw: Mapping[str, Any]) -> dict[str, str]:
    """A process with the static id of another one -> the other: the coordinator keeps its client id."""
    return {one["member"]: one["of"] for one in saw["actions"] if "of" in one}


def _names(saw: Mapping[str, Any]) -> dict[str, str]:
    """Member id -> client id, as the coordinator wrote them."""
    members = [one for record in saw["written"] for one in record.get("members", [record])]
    return {one["member_id"]: one["client"] for one in members if one.get("client")}


def _wrong_removals(trace: ImportedRecording, group: str, saw: Mapping[str, Any]) -> list[str]:
    """Members that the trace removes for a cause, and the harness did not: or did so less often."""
    names, twins = _names(saw), _twins(saw)
    allowed: Counter[tuple[str, str]] = Counter()
    for effect in _effects(saw):
        for event, cause in effect.rows:
            if event == "member_removed" and cause is not None:
                member = effect.action["member"]
                allowed[twins.get(member, member), cause] += 1
    told = Counter(
        (_member(row, names, twins), row["cause"])
        for row in trace.of(group, "member_removed")
        if row["cause"] != "unknown"
    )
    return [f"{group}: {member} removed: {cause}" for member, cause in told - allowed]


def _wrong_rounds(trace: ImportedRecording, group: str) -> list[str]:
    """A round whose cause is a member that came or went has that member's row beside it."""
    known = {Cause.LEFT: "member_removed", Cause.SESSION_EXPIRED: "member_removed"}
    wrong = []
    for row in trace.of(group, "group_state_changed"):
        event = known.get(row["cause"])
        if event is not None and not any(
            one["cause"] == row["cause"] and abs(one["ms"] - row["ms"]) <= _NEAR_MS
            for one in trace.of(group, event)
        ):
            wrong.append(f"{group}: a round because of {row['cause']} at {row['ms']}")
    return wrong


# -- members -------------------------------------------------------------------------------------


def _members(trace: ImportedRecording, group: str, saw: Mapping[str, Any]) -> Recovered:
    """The member ids that the coordinator wrote, with their client ids and static ids."""
    names, twins = _names(saw), _twins(saw)
    everybody = [one for record in saw["written"] for one in record.get("members", [record])]
    instances = {one["member_id"]: one.get("instance") for one in everybody if one.get("client")}
    named: dict[str, set[str]] = {}
    static: dict[str, set[str]] = {}
    of_client: dict[str, set[str]] = {}
    wrong = []
    for row in trace.of(group):
        member_id, said = row.get("member_id"), str(row.get("member") or "")
        member = twins.get(said, said)
        if row.get("instance") and member:
            of_client.setdefault(member, set()).add(row["instance"])
        if not member_id:
            continue
        if member:
            named.setdefault(member_id, set()).add(member)
        if row.get("instance"):
            static.setdefault(member_id, set()).add(row["instance"])
    for member_id, found in named.items():
        if member_id not in names and member_id not in _handed_out(trace, group):
            wrong.append(f"{group}: no member {member_id}")
        unknown = {member_id, instances.get(member_id)}
        if member_id in names and found - unknown - {names[member_id]}:
            wrong.append(f"{group}: {member_id} named {sorted(found)}")
    for member_id, given in static.items():
        if member_id in names and given != {instances.get(member_id)}:
            wrong.append(f"{group}: {member_id} with the instance {sorted(given)}")
    recovered = [
        member_id
        for member_id, client in names.items()
        if named.get(member_id) == {client}
        and (
            not instances[member_id] or static.get(member_id, of_client.get(client)) == {instances[member_id]}
        )
    ]
    return Recovered(len(recovered), len(names), wrong)


def _handed_out(trace: ImportedRecording, group: str) -> set[str]:
    """Member ids that were given out or chosen, and that never joined a generation."""
    pending = ("member_pending", "pending_member_removed")
    rows = trace.of(group, *pending, "member_added", "member_replaced", "member_failed")
    return {row["member_id"] for row in rows if row.get("member_id")}


# -- ownership -----------------------------------------------------------------------------------

_GIVEN_UP: Final = ("revoked", "lost")
_RELEASES: Final = ("partitions_revoked", "partitions_lost", "member_crashed")


class Interval(NamedTuple):
    """A member has a partition from ``from_ms`` on, until ``to_ms``; at most until ``latest_ms``."""

    member: str
    partition: str
    from_ms: int
    to_ms: int
    latest_ms: int


def _ownership(trace: ImportedRecording, group: str, saw: Mapping[str, Any]) -> Recovered:
    """The intervals in which a member had a partition, by its own callbacks."""
    wanted = [*_recorded_intervals(saw)]
    told = [*_told_intervals(trace, group)]
    left = [*told]
    found = 0
    for interval in wanted:
        match = next((one for one in left if _is_same(interval, one)), None)
        if match is not None:
            left.remove(match)
            found += 1
    fenced = {one["of"]: one["time_ms"] for one in saw["actions"] if "of" in one}
    # not every library tells its application that it is fenced
    wrong = [f"{group}: {one}" for one in left if one.to_ms < fenced.get(one.member, one.to_ms + 1)]
    return Recovered(found, len(wanted), [*wrong, *_wrong_assignments(trace, group, saw)])


def _is_same(seen: Interval, told: Interval) -> bool:
    return (
        seen[:2] == told[:2]
        and abs(seen.from_ms - told.from_ms) <= _NEAR_MS
        and told.to_ms - _NEAR_MS <= seen.to_ms <= told.latest_ms + _NEAR_MS
    )


def _recorded_intervals(saw: Mapping[str, Any]) -> Iterator[Interval]:
    """By the callbacks; a member that was killed had its partitions until then."""
    ends = [
        {"time_ms": one["time_ms"], "member": one["member"], "event": "killed"}
        for one in saw["actions"]
        if one["do"] == "kill"
    ]
    has: dict[tuple[str, str], int] = {}
    for report in sorted([*saw["reports"], *ends], key=lambda one: one["time_ms"]):
        member, event = report["member"], report["event"]
        if event == "assigned":
            has.update({(member, partition): report["time_ms"] for partition in report["partitions"]})
            continue
        gone = report.get("partitions", [])
        if event in ("killed", "closed"):
            gone = [partition for owner, partition in has if owner == member]
        for partition in gone if event in (*_GIVEN_UP, "killed", "closed") else ():
            from_ms = has.pop((member, partition), None)
            if from_ms is not None:
                yield Interval(member, partition, from_ms, report["time_ms"], report["time_ms"])


def _told_intervals(trace: ImportedRecording, group: str) -> Iterator[Interval]:
    """By the rows of members. A row whose time is not exact has bounds."""
    has: dict[tuple[str, str], int] = {}
    for row in trace.of(group, "partitions_assigned", "member_closed", *_RELEASES):
        member, partitions = row["member"], row.get("partitions", [])
        if row["event"] == "partitions_assigned":
            for partition in partitions:
                has.setdefault((member, partition), row["ms"])
            continue
        to_ms, latest_ms = trace.bounds(row)
        if row["event"] == "member_closed":
            partitions = [partition for owner, partition in has if owner == member]
        for partition in partitions:
            from_ms = has.pop((member, partition), None)
            if from_ms is not None:
                yield Interval(member, partition, from_ms, to_ms, latest_ms)


def _wrong_assignments(trace: ImportedRecording, group: str, saw: Mapping[str, Any]) -> Iterator[str]:
    """Assignments of the coordinator's rows that it did not write."""
    if trace.recording.is_consumer_group:
        return
    written = {
        (record["generation"], member["member_id"]): sorted(member["partitions"])
        for record in saw["written"]
        for member in record["members"]
    }
    for row in trace.of(group, "sync_answered"):
        given = written.get((row["generation"], row["member_id"]))
        if row.get("partitions") is not None and sorted(row["partitions"]) != given:
            yield f"{group}: generation {row['generation']} gives {row['member_id']} {row['partitions']}"


#: Column of the table -> how it is computed of one group.
COLUMNS: Final = {
    "generations": _generations,
    "causes": _causes,
    "members": _members,
    "ownership": _ownership,
}


def recovered(trace: ImportedRecording, column: str) -> Recovered:
    """A column's facts, of all groups of a recording."""
    groups = recorded(trace.recording).items()
    return sum((COLUMNS[column](trace, group, saw) for group, saw in groups), NOTHING)


def wrong(trace: ImportedRecording) -> list[str]:
    return [sentence for column in COLUMNS for sentence in recovered(trace, column).wrong]
