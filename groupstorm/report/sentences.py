"""A sentence for every event of a trace, and which events a story tells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from groupstorm.wording import dollars, size

Row = Mapping[str, Any]

MANY = 6
"""More names than this are counted, not listed."""

_BILLION = 10**9
_MILLION = 10**6
_FOLLOW_UPS = {
    "probing": "to see whether warm-ups have caught up",
    "tasks-change-owner": "as tasks wait for their old owners to let go",
    "version-probing": "as members differ in the versions that they know",
    "watching": "when the standbys that it watches have caught up",
}
_PLACED = {
    "stable": "nothing is left to be moved",
    "probing": "warm-ups are under way",
    "follow-up": "tasks wait for their old owners to let go",
    "imbalanced": "standbys are to be watched",
    "version-probing": "members differ in the versions that they know",
}

_SOURCES = {"nothing": "nothing", "checkpoint": "its host's checkpoint", "standby": "its standby"}


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _some(partitions: Iterable[str] | None) -> str:
    listed = list(partitions or ())
    if not listed:
        return "no partitions"
    return " ".join(listed) if len(listed) <= MANY else count(len(listed), "partition")


def _settings(detail: str) -> str:
    return ", ".join(f"{name}={value}" for name, value in json.loads(detail).items())


def _who(row: Row) -> str:
    return str(row.get("member") or row.get("member_id") or "the group")


def _in_generation(row: Row) -> str:
    return f"in generation {row['generation']}" if row.get("generation", -1) >= 0 else "in no generation"


def _generation(row: Row) -> str:
    """The generation, if an imported trace knows it."""
    return f"generation {row['generation']}" if "generation" in row else "an unknown generation"


def _client(member_id: str) -> str:
    """The client's part of a member id: what stands before the UUID."""
    return re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "", member_id)


def _state_changed(row: Row) -> str:
    line = f"group      {row['previous_state']} -> {row['state']}: {row['cause']}"
    if row["state"] == "PreparingRebalance":
        return line + (f" ({_client(row['member_id'])})" if row.get("member_id") else "")
    if row["state"] == "CompletingRebalance":
        protocol = row.get("protocol", "unknown assignor")
        return f"{line}; {_generation(row)}, {protocol}, {members(row)}"
    return f"{line}; {_generation(row)}"


def members(row: Row) -> str:
    """The number of members, if an imported trace knows it."""
    return count(row["count"], "member") if "count" in row else "an unknown number of members"


def _callback(name: str) -> Callable[..., str]:
    def sentence(row: Row, partition: str | None = None) -> str:
        took = f", {row['duration_us'] / 1000:g} ms" if row.get("duration_us") else ""
        why = f" ({row['cause']})" if "cause" in row else ""
        return (
            f"{_who(row):10} {name} {partition or _some(row['partitions'])}{why}{took}, {_in_generation(row)}"
        )

    return sentence


def _rates(row: Row) -> str:
    """Records a second, of all partitions together: the columns count in 1,000 seconds."""
    return f"{sum(row['rates']) / 1000:,g}"


def _answer(request: str) -> Callable[[Row], str]:
    def sentence(row: Row) -> str:
        outcome = row.get("error") or _generation(row)
        return f"{_who(row):10} {request} answered: {outcome}"

    return sentence


def _on(row: Row) -> str:
    return f"{row['member']:10}"


def _seconds(duration_us: int) -> str:
    return f"{duration_us / _MILLION:,.3f} s"


def _scheduled(row: Row) -> str:
    when = f"in {_seconds(row['duration_us'])} " if row.get("duration_us") else ""
    return f"{_on(row)} will ask for a rebalance {when}{_FOLLOW_UPS.get(row['cause'], row['cause'])}"


def _placed(row: Row) -> str:
    warm_ups = f", {row['count']} warm-ups" if row["count"] else ""
    return f"{_on(row)} has placed the tasks{warm_ups}: {_PLACED.get(row['cause'], row['cause'])}"


def _traffic(row: Row) -> str:
    cost = dollars(row["cross_rack_bytes"] * row["price"] / _BILLION / _MILLION)
    return (
        f"traffic    {row['cause']}: {size(row['bytes'])}, {size(row['cross_rack_bytes'])} of it "
        f"between racks ({cost})"
    )


#: Event -> its sentence. The sentences about partitions take one partition, which is then the only one named.
SENTENCES: Mapping[str, Callable[..., str]] = {
    "group_imported": lambda row: (
        f"import     {row['group']} from logs that begin at {_begun(json.loads(row['detail']))}"
    ),
    "evidence_missing": lambda row: f"missing    {row['detail']}",
    "ownership_known": lambda row: f"import     every owner is known from {_generation(row)} on",
    "client_reason": lambda row: f"{_who(row):10} says why: {row['detail']}",
    "member_configured": lambda row: f"{_who(row):10} is configured: {_settings(row['detail'])}",
    "broker_configured": lambda row: f"broker     is configured: {_settings(row['detail'])}",
    "scenario_started": lambda row: f"scenario   begins with {count(len(row['partitions']), 'partition')}",
    "step_taken": lambda row: " ".join(
        ["scenario  ", row["cause"], *([row["member"]] if "member" in row else []), f"({row['detail']})"]
    ),
    "partitions_created": lambda row: f"scenario   new partitions: {_some(row['partitions'])}",
    "partitions_deleted": lambda row: f"scenario   deleted partitions: {_some(row['partitions'])}",
    "scenario_ended": lambda row: "scenario   ends",
    "invariant_checked": lambda row: f"invariant  {row['cause']}: {row['detail']}",
    "group_created": lambda row: f"group      {row['group']} is created",
    "group_deleted": lambda row: f"group      {row['group']} no longer exists: {row['cause']}",
    "work_assigned": lambda row: (
        f"{_who(row):10} runs {' '.join(row['tasks']) or 'nothing'}"
        + (f", {row['error']}" if "error" in row else "")
    ),
    "request_refused": lambda row: f"{_who(row):10} has a refused {row['api']}: {row['error']}",
    "offset_reset": lambda row: (
        f"{_who(row):10} has no offset for {_some(row['partitions'])}: {row['cause']}"
    ),
    "append_refused": lambda row: f"group      {row['cause']} takes no records: {row['detail']}",
    "members_gone": lambda row: f"group      {row['group']} has no members",
    "members_back": lambda row: f"group      {row['group']} has members again",
    "group_state_changed": _state_changed,
    "group_converted": lambda row: f"group      is {row['cause']} with its live members",
    "group_epoch_bumped": lambda row: f"group      has epoch {row['generation']}",
    "target_assigned": lambda row: (
        f"group      has new targets for {members(row)}, of epoch {row['generation']}"
    ),
    "initial_delay_extended": lambda row: f"group      waits {row['duration_us'] / 1e6:g} s more for members",
    "append_failed": lambda row: f"group      an append failed: {row['error']} ({row['cause']})",
    "member_pending": lambda row: f"{_who(row):10} is told its member id: {row['member_id']}",
    "pending_member_removed": lambda row: (
        f"group      forgets the unused id {row['member_id']}: {row['cause']}"
    ),
    "member_added": lambda row: f"{_who(row):10} is added to the group: {row['cause']}",
    "member_replaced": lambda row: f"{_who(row):10} is back as {row['instance']} under a new id",
    "member_updated": lambda row: f"{_who(row):10} has joined with other metadata",
    "member_reconciled": lambda row: (
        f"{_who(row):10} is at epoch {row['generation']} ({row['state']}): "
        f"has {_some(row.get('partitions'))}"
        + (f", has to give up {_some(row['revoking'])}" if row.get("revoking") else "")
    ),
    "member_removed": lambda row: f"{_who(row):10} is removed from the group: {row['cause']}",
    "join_parked": lambda row: f"{_who(row):10} waits in JoinGroup",
    "join_answered": _answer("JoinGroup"),
    "sync_parked": lambda row: f"{_who(row):10} waits in SyncGroup",
    "sync_answered": _answer("SyncGroup"),
    "offsets_committed": lambda row: (
        f"{_who(row):10} commits {_some(row['partitions'])}: {row.get('error', 'accepted')}"
    ),
    "member_started": lambda row: f"{_who(row):10} polls for the first time",
    "rejoin_requested": lambda row: f"{_who(row):10} has to join: {row['cause']}",
    "assignment_computed": lambda row: (
        f"{_who(row):10} leads: {row.get('protocol', 'its assignor')} for {members(row)}"
        + (f" took {row['duration_us'] / 1000:g} ms" if "duration_us" in row else "")
    ),
    "partitions_revoked": _callback("gives up"),
    "partitions_lost": _callback("has lost"),
    "partitions_assigned": _callback("fetches"),
    "member_crashed": lambda row, partition=None: (
        f"{_who(row):10} crashed, holding {partition or _some(row['partitions'])}"
    ),
    "member_paused": lambda row: (
        f"{_who(row):10} stands still ({row['cause']}), {row['duration_us'] / 1e6:g} s"
    ),
    "member_resumed": lambda row: f"{_who(row):10} goes on with {_some(row['partitions'])}",
    "partitions_paused": lambda row: (
        f"{_who(row):10} fetches nothing from {_some(row['partitions'])} for now"
    ),
    "partitions_resumed": lambda row: f"{_who(row):10} fetches again from {_some(row['partitions'])}",
    "processing_rates_changed": lambda row: (
        f"{_who(row):10} now processes {_rates(row)} records a second of {_some(row['partitions'])}"
    ),
    "record_rates_changed": lambda row: (
        f"scenario   from now on {_rates(row)} records a second arrive in {_some(row['partitions'])}"
    ),
    "member_closed": lambda row: f"{_who(row):10} has closed: {row['cause']}",
    "member_failed": lambda row: f"{_who(row):10} failed: {row['error']}",
    # threads of a Kafka Streams application
    "tasks_created": lambda row: f"scenario   the application has {len(row['tasks'])} tasks",
    "traffic_counted": _traffic,
    "instance_started": lambda row: (
        f"{row['process']:10} starts with {row['count']} threads"
        + (f" in {row['rack']}" if "rack" in row else "")
        + f", SubscriptionInfo {row['version']}"
    ),
    "instance_gone": lambda row: f"{row['process']:10} is gone: {row['cause']}",
    "tasks_placed": _placed,
    "warm_up_placed": lambda row: f"{row['process']:10} is to warm up {row['task']}",
    "task_restoring": lambda row: (
        f"{_on(row)} restores {row['task']} from {_SOURCES[row['cause']]}"
        + (f": {size(row['bytes'])}" if "bytes" in row else "")
    ),
    "task_restored": lambda row: (
        f"{_on(row)} has restored {row['task']}: {size(row['bytes'])} in {_seconds(row['duration_us'])}"
    ),
    "task_running": lambda row: f"{_on(row)} runs {row['task']}",
    "task_suspended": lambda row: f"{_on(row)} suspends {row['task']}: {row['cause']}",
    "task_closed": lambda row: f"{_on(row)} closes {row['task']} ({row['cause']})",
    "standby_started": lambda row: f"{_on(row)} follows {row['task']}, {row['lag']:,} records behind",
    "standby_caught_up": lambda row: (
        f"{_on(row)} has caught up with {row['task']}: {size(row['bytes'])} in {_seconds(row['duration_us'])}"
    ),
    "follow_up_scheduled": _scheduled,
    "follow_up_due": lambda row: f"{_on(row)} asks for a rebalance: {row['cause']}",
    "subscription_version_changed": lambda row: (
        f"{_on(row)} will speak SubscriptionInfo {row['version']}: {row['cause']}"
    ),
}

#: Events of the group and the scenario: in every story.
GROUP_EVENTS = frozenset({"group_state_changed", "step_taken", "scenario_started", "scenario_ended"})
#: Events by which a partition changes hands.
OWNERSHIP_EVENTS = frozenset(
    {"partitions_assigned", "partitions_revoked", "partitions_lost", "member_crashed"}
)
#: Events that a story of the whole group has besides.
OVERVIEW_EVENTS = frozenset(
    {
        "group_imported",
        "group_created",
        "group_converted",
        "members_gone",
        "members_back",
        "work_assigned",
        "request_refused",
        "append_refused",
        "partitions_created",
        "partitions_deleted",
        "initial_delay_extended",
        "append_failed",
        "pending_member_removed",
        "member_added",
        "member_replaced",
        "member_removed",
        "assignment_computed",
        "partitions_lost",
        "member_crashed",
        "member_paused",
        "member_resumed",
        "member_failed",
        "invariant_checked",
        "tasks_created",
        "traffic_counted",
        "instance_started",
        "instance_gone",
        "tasks_placed",
        "warm_up_placed",
        "task_restoring",
        "task_running",
        "task_suspended",
        "standby_caught_up",
        "follow_up_due",
        "subscription_version_changed",
    }
)


def _begun(detail: Mapping[str, Any]) -> str:
    began = detail.get("began")
    return f"{began} UTC" if began else f"{detail['clock']}, with no date that any line says"
