"""Patterns of refused requests, of partitions without an offset, and of Connect workers that ask again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History
from groupstorm.explain.incidents import (
    COMMIT,
    COORDINATOR_ERRORS,
    FENCED,
    HEARTBEAT,
    INCONSISTENT,
    JOIN,
    NOT_AUTHORIZED,
    REBALANCING,
    UNRELEASED,
    ZOMBIE_ERRORS,
    Refusal,
)
from groupstorm.explain.patterns.selecting import begins_after, unique
from groupstorm.history.phases import SLOW_US
from groupstorm.trace.events.imported import SIMPLE_COMMIT
from groupstorm.wording import counted, lasting, listed

#: A member that is refused so often, and comes into no generation, turns in circles.
TRIED_MIN: Final = 3
#: So many members or partitions are named.
NAMED_MAX: Final = 3
#: Generations and epochs with which a group begins.
_NEW_GROUP: Final = (0, 1, 2)
#: Errors that other patterns are about.
_OF_OTHERS: Final = COORDINATOR_ERRORS | {FENCED, INCONSISTENT, UNRELEASED}


def never_rejoined(history: History) -> Match | None:
    """A member's heartbeats were refused for 10 s or more because the group was rebalancing, and the log
    has no generation of it after that: it did not call poll(), with which it would have joined again."""
    return _told(history, _never_rejoined)


def join_refused(history: History) -> Match | None:
    """A member tried three times or more to join, was refused each time, and got no generation by the end
    of its log; or it may not read the group. (A coordinator that moved, a fenced static member and assignors
    that do not fit are other patterns.)"""
    return _told(history, _join_refused)


def commit_in_rebalance(history: History) -> Match | None:
    """A commit was refused because the group was rebalancing: the member has to poll() first, and may have
    lost the partitions by then."""
    return _told(history, lambda one: one.api == COMMIT and one.error == REBALANCING)


def assigned_by_hand(history: History) -> Match | None:
    """Commits were refused of a client that assigns its partitions by hand (Flink's source, Spark): while a
    group has members, its coordinator takes commits of those alone."""
    return _told(history, lambda one: one.api == SIMPLE_COMMIT and one.error in ZOMBIE_ERRORS)


def _never_rejoined(one: Refusal) -> bool:
    return one.api == HEARTBEAT and one.error == REBALANCING and not one.is_over and one.lasted_us >= SLOW_US


def _join_refused(one: Refusal) -> bool:
    is_join = one.api == JOIN and one.count >= TRIED_MIN and one.error not in _OF_OTHERS
    return not one.is_over and (is_join or one.error == NOT_AUTHORIZED)


def _told(history: History, is_meant: Callable[[Refusal], bool]) -> Match | None:
    found = [one for one in history.refusals if is_meant(one)]
    if not found:
        return None
    sentences = [one.sentence for one in found[:NAMED_MAX]]
    if len(found) > NAMED_MAX:
        sentences.append(f"And {len(found) - NAMED_MAX:,} more like it.")
    rows = [row for one in found for row in (one.first, one.last)]
    unknown = "why: add the log of the group's coordinator" if history.has_member_rows else ""
    unknown = "" if all(one.error == NOT_AUTHORIZED for one in found) else unknown
    return Match(" ".join(sentences), unique(one.member for one in found), (), (), rows, unknown)


def no_offset(history: History) -> Match | None:
    """A member found no committed offset, or one that the partition does not have any more, and began
    where auto.offset.reset says. (Not of a group whose first generation is in the log: it is new.)"""
    resets = history.of_kind("offset-reset")
    first = history.rebalances[0].rounds[0].begun.get("generation") if history.rebalances else None
    by_cause: dict[str, list[str]] = {}
    began: dict[str, int] = {}
    for one in resets:
        by_cause.setdefault(str(one.row["cause"]), []).extend(one.row["partitions"])
        for partition, position in zip(one.row["partitions"], one.row.get("positions") or (), strict=False):
            began[partition] = position
    missing, out = by_cause.get("no-committed-offset", []), by_cause.get("out-of-range", [])
    if (first in _NEW_GROUP or not missing) and not out:
        return None
    sentences = [
        f"{counted(len({*names}), 'partition')} {what}: {_named([*dict.fromkeys(names)], began)}."
        for names, what in ((missing, "had no committed offset"), (out, "had a position out of range"))
        if names
    ]
    members = unique(one.member for one in resets)
    return Match(" ".join(sentences), members, (), (), [one.row for one in resets])


def _named(partitions: Sequence[str], began: dict[str, int]) -> str:
    named = [f"{one} (began at {began[one]:,})" if one in began else one for one in partitions[:NAMED_MAX]]
    more = len(partitions) - len(named)
    return listed([*named, f"{more:,} more"]) if more else listed(named)


def config_behind(history: History) -> Match | None:
    """A worker of Kafka Connect joined three times or more only because it had not read the configuration by
    which the leader assigns (config.storage.topic) to its end, or has another one."""
    found = history.of_kind("config-behind")
    times = Counter(one.member for one in found)
    asked = [one for one in found if times[one.member] >= TRIED_MIN]
    if not asked:
        return None
    members = unique(one.member for one in asked)
    lasted = lasting(asked[-1].time_us - asked[0].time_us)
    named = [f"{one} {counted(times[one], 'time')}" for one in members[:NAMED_MAX]]
    sentence = (
        f"Within {lasted} workers asked for another rebalance, as they had another configuration than the "
        f"one by which the leader assigns: {listed(named)}."
    )
    rebalances = [
        each for each in history.rebalances if any(begins_after(each, one.time_us) for one in asked)
    ]
    return Match(sentence, members, rebalances, (), [one.row for one in asked])
