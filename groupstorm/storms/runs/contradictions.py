"""Settings of a scenario that cannot go well together, found by arithmetic, and the cost of unrest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from groupstorm.assignors.promises import BUILT_IN
from groupstorm.assignors.registry import get
from groupstorm.clients.adapters import is_cooperative
from groupstorm.clients.profiles import ALL_FETCHED, PROFILES, consumer_protocol_needs
from groupstorm.figures import Figures
from groupstorm.figures.table import lag_growth
from groupstorm.storms.deployments.rolling_update import limits_of
from groupstorm.storms.runs.load import MemberLoad, has_records, longest_work_us, member_load, record_ns
from groupstorm.storms.scenario.consistency import is_shared, of_protocol, stopping_ms
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.member_rules import STRATEGY, SlowRecord, SlowRecordList
from groupstorm.storms.scenario.setting_names import CLASSIC, NO_AUTOSCALER, STREAMS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import ROLLING_RESTART, Step
from groupstorm.wording import at_most, counted, listed, rate, seconds

_WORK = {
    "poll_interval_ms": "the application may call poll() only every",
    "process_ms": "one record may take",
    "slow_records": "a slow record{} takes",
}

#: Rolling updates, the durations of one replacement, and steps that do not know of rolling updates.
_ROLLING: Final = (ROLLING_RESTART, "canary")
_OF_A_REPLACEMENT: Final = ("stop_grace_ms", "drain_ms", "start_ms", "ready_ms")
_UNAWARE: Final = ("recreate", "blue-green", "drain-node", "autoscale")
#: Steps that send SIGTERM to processes.
_STOPPING: Final = frozenset({"stop", "restart", *_ROLLING, *_UNAWARE})
NO_STEPS: Final[Mapping[str, Sequence[Step]]] = {}

Name = TypeVar("Name")


class Contradiction(NamedTuple):
    """``rule``: the one that found it; with other settings the same rule says other numbers."""

    rule: str
    sentence: str


def found_in(settings: Iterable[tuple[Name, Settings, Sequence[Step]]]) -> dict[Contradiction, list[Name]]:
    """The contradictions, each with the names of the settings that have it."""
    found: dict[Contradiction, list[Name]] = {}
    for name, one, steps in settings:
        for contradiction in _of_one(one, steps):
            found.setdefault(contradiction, []).append(name)
    return found


def contradictions(
    variants: Mapping[str, Settings], steps: Mapping[str, Sequence[Step]] = NO_STEPS
) -> list[str]:
    """Sentences, each with the variants that it is about unless it is about all. ``steps``: of each."""
    found = found_in((name, one, steps.get(name, ())) for name, one in variants.items())
    sentences = []
    for sentence, names, alike in by_rule(found):
        likewise = f"; likewise, in other numbers, {listed(alike)}" if alike else ""
        about = "" if len(names) == len(variants) else f" ({listed(names)}{likewise})"
        sentences.append(f"{sentence}{about}.")
    return sentences


def by_rule(found: Mapping[Contradiction, list[Name]]) -> Iterator[tuple[str, list[Name], list[Name]]]:
    """One sentence for each rule, the names that it is true for, and those for which its numbers differ."""
    of_rules: dict[str, list[tuple[str, list[Name]]]] = {}
    for (rule, sentence), names in found.items():
        of_rules.setdefault(rule, []).append((sentence, names))
    for (sentence, names), *others in of_rules.values():
        yield sentence, names, list(dict.fromkeys(name for _, more in others for name in more))


def endless_work(settings: Settings) -> list[Contradiction]:
    """Find what keeps a group from coming to rest: work that outlasts a timeout, records that end readers."""
    found = dict.fromkeys(
        one for own in settings.of_profiles() for one in (*_polls(own), *_silent_rounds(own))
    )
    if has_fatal_record(settings) and not is_shared(settings):
        fatal = [_place(one) for one in _slow_records(settings) if one.crashes]
        sentence = f"a record {listed(fatal)} ends every process that reads it (slow_records, then: crash)"
        found[Contradiction("fatal record", f"{sentence}: no setting of the group gets it past that")] = None
    return [*found]


def has_fatal_record(settings: Settings) -> bool:
    """Whether a record ends every process that reads it."""
    return any(one.crashes for one in _slow_records(settings))


def _slow_records(settings: Settings) -> tuple[SlowRecord, ...]:
    return settings.of_type("slow_records", SlowRecordList).records


def _place(record: SlowRecord) -> str:
    return "" if record.every else f"of {record.topic}-{record.partition}"


def _slowest_record(settings: Settings) -> str:
    slowest = max(_slow_records(settings), key=lambda one: one.work_us, default=None)
    place = "" if slowest is None else _place(slowest)
    return f" {place}" if place else ""


def outlasts_polls(settings: Settings) -> bool:
    """Whether work may outlast max.poll.interval.ms between two calls of poll()."""
    if settings.choice("application") == STREAMS:
        return False
    return any(True for own in settings.of_profiles() for _ in _polls(own))


def growing_lag(settings: Settings, steps: Sequence[Step] = ()) -> list[str]:
    """Sentences on why the lag grows without end, whatever is deployed: too many records for the members."""
    rules = ("overload", "hot partition", "slow member")
    return [f"{one.sentence}." for one in _of_one(settings, steps) if one.rule in rules]


def contradict_themselves(settings: Settings, steps: Sequence[Step]) -> bool:
    """Whether no run can recommend these settings: work outlasts polls, the lag surely grows, or pods are
    replaced otherwise than they would be."""
    rules = {one.rule for one in _of_one(settings, steps)}
    return not rules.isdisjoint(("hot partition", "overload", "overlapped rollout")) or outlasts_polls(
        settings
    )


def _of_one(settings: Settings, steps: Sequence[Step]) -> Iterator[Contradiction]:
    autoscaler = settings.choice("autoscaler")
    if steps and all(step.do != "autoscale" for step in steps):
        if autoscaler != NO_AUTOSCALER:
            yield Contradiction(
                "idle autoscaler",
                f"autoscaler: {autoscaler} scales nothing here, because no step lets it work: add "
                "{at_ms: warm_up_ms, do: autoscale, for_ms: 1h} to the steps, or leave autoscaler out",
            )
        autoscaler = NO_AUTOSCALER
    load = member_load(settings, steps) if autoscaler == NO_AUTOSCALER else None
    if settings.choice("application") == STREAMS:
        yield from () if load is None else _of_load(settings, load)
        return
    yield from endless_work(settings)
    yield from _rollouts_overlapped(settings, steps)
    if is_shared(settings):
        yield from of_share_group(settings, steps)
        yield from () if load is None else _overload(load)
        return
    yield from _killed_while_closing(settings, steps)
    yield from () if load is None else _of_load(settings, load)


def _of_load(settings: Settings, load: MemberLoad) -> Iterator[Contradiction]:
    """Members without a partition, and more records than the members can do."""
    members, partitions = load.members, len(load.partitions)
    if load.threads and settings.flag("joins"):  # a task has a partition of each topic
        partitions = settings.integer("partitions")
    at_work = max(map(len, load.by_topic), default=partitions)  # range begins anew with each topic
    if members > at_work:
        idle = members - at_work
        each = load.threads or settings.integer("members_per_pod")
        pods = "instance" if load.threads else "pod"
        several = f" ({counted(members // each, pods)} with {each} each)" if each > 1 else ""
        on = counted(partitions, "task" if load.threads else "partition")
        on += ", which range deals out topic by topic" if at_work < partitions else ""
        sentence = f"{counted(members, load.name)}{several} on {on}: {idle:,} own nothing"
        yield Contradiction("idle members", sentence)
    yield from _overload(load)


def _overload(load: MemberLoad) -> Iterator[Contradiction]:
    """More than the quickest can do of a partition, all members together, or the slowest of its own ones."""
    enough, readers = load.enough_members(), load.readers_of_each(load.members)
    more = () if enough is None else (f"{enough:,} {load.name}s",)
    most = readers / load.quickest_s if load.quickest_s else None
    is_too_much = load.together is not None and load.arriving >= load.together
    if most is not None and load.busiest >= most and not (load.is_shared and is_too_much):
        which = "each" if load.partitions[-1] == load.busiest else "one"
        owner, whoever = ("reader", "") if load.is_shared else ("owner", ", whoever owns it")
        process = f"{owner} processes" if readers == 1 else f"{readers} {owner}s process"
        yield Contradiction(
            "hot partition",
            f"{which} partition gets {rate(load.busiest)} records a second, and its {process} at most "
            f"{rate(most)}: its lag grows{whoever}{_keeps_up(load, more if load.is_shared else ())}",
        )
        return
    if load.together is not None and is_too_much:
        members, process = counted(load.members, load.name), "process" if load.members > 1 else "processes"
        yield Contradiction(
            "overload",
            f"{rate(load.arriving)} records a second arrive, and {members} {process} "
            f"at most {rate(load.together)}: the lag grows{_keeps_up(load, more)}",
        )
        return
    share = 0.0 if load.is_shared else load.of_unluckiest(load.members)
    if load.is_uneven and load.per_member is not None and share >= load.per_member:
        yield Contradiction(
            "slow member",
            f"the slowest {load.name} processes at most {rate(load.per_member)} records a second, and "
            f"{rate(share)} may arrive in its partitions: their lag grows, however much time the others have",
        )


def _keeps_up(load: MemberLoad, ends_it: Sequence[str]) -> str:
    """The end of a sentence: with what the group would keep up, beside less work on a record."""
    record_ms = load.record_ms()
    less = () if record_ms is None else (f"less than {at_most(record_ms)} ms of {load.work_name}",)
    return f"; {' or '.join([*ends_it, *less])} would keep up" if ends_it or less else ""


def fitting_records(settings: Settings) -> int | None:
    """The records whose work fits into the locks of a share group, if fewer than max.poll.records."""
    lock_s, record_s = (
        settings.integer("group.share.record.lock.duration.ms") / 1000,
        record_ns(settings) / 1e9,
    )
    if not (is_shared(settings) and has_records(settings)) or _full_batch_s(settings) < lock_s:
        return None
    return int((lock_s - 0.001) // record_s)


def of_share_group(settings: Settings, steps: Sequence[Step]) -> Iterator[Contradiction]:
    """Batches that outlast the locks of their records, and locks that keep consumers without records."""
    most, fitting = settings.integer("max.poll.records"), fitting_records(settings)
    if fitting is not None:
        fits = f"{counted(fitting, 'record')} (max.poll.records) would fit"
        if not fitting:
            fits = "one that is longer than the work on a record would fit"
        lock_s = settings.integer("group.share.record.lock.duration.ms") / 1000
        yield Contradiction(
            "locks too short",
            f"{_full_batch(settings)}, and a record is locked for {seconds(lock_s)} "
            f"(group.share.record.lock.duration.ms): others get "
            f"{'the rest of the batch' if fitting else 'it'} meanwhile; {fits}",
        )
    load, locks = member_load(settings, steps), settings.integer("group.share.partition.max.record.locks")
    served = len(load.partitions) * -(-locks // most)
    if served < load.members:
        yield Contradiction(
            "locked by a few",
            f"a consumer takes up to {counted(most, 'record')} (max.poll.records), and a partition has "
            f"{counted(locks, 'lock')} (group.share.partition.max.record.locks): "
            f"{counted(served, 'consumer')} can lock everything, and {load.members - served} get "
            "nothing while there are many records",
        )


def _rollouts_overlapped(settings: Settings, steps: Sequence[Step]) -> Iterator[Contradiction]:
    """Steps of other kinds that may come into a rolling update: they act as if there were none."""
    limits = limits_of(settings, settings.processes)
    rounds = -(-settings.processes // max(1, limits.surge + limits.unavailable))
    each_us = sum(settings.distribution(name).largest_us for name in _OF_A_REPLACEMENT)
    longest_ms = rounds * (each_us // 1000 + stopping_ms(settings)[0] + settings.integer("min_ready_ms"))
    for rolling in (step for step in steps if step.do in _ROLLING):
        until_ms = rolling.at_ms + rolling.for_ms + longest_ms
        for other in (step for step in steps if step.do in _UNAWARE):
            if rolling.at_ms <= other.at_ms + other.for_ms and other.at_ms < until_ms:
                yield Contradiction(
                    "overlapped rollout",
                    f"{other.do} ({seconds(other.at_ms / 1000)} after the start) does not know of a rolling "
                    f"update under way, and {rolling.do} ({seconds(rolling.at_ms / 1000)}) may take up to "
                    f"{seconds((until_ms - rolling.at_ms) / 1000)}: pods are replaced otherwise than by "
                    "Kubernetes",
                )
                return


def closing_us(settings: Settings) -> int:
    """The longest time from SIGTERM until a process closes its consumer."""
    return sum(settings.distribution(name).largest_us for name in ("stop_grace_ms", "drain_ms"))


def _killed_while_closing(settings: Settings, steps: Sequence[Step]) -> Iterator[Contradiction]:
    """Work after SIGTERM that may outlast the time until SIGKILL."""
    is_static = settings.choice("group.instance.id") != "none"
    grace_ms = stopping_ms(settings)[1]
    us = closing_us(settings)
    if grace_ms is None or us < grace_ms * 1000 or _STOPPING.isdisjoint(step.do for step in steps):
        return
    if is_static and not has_records(settings):
        return
    yield Contradiction(
        "killed while closing",
        f"a process may need {seconds(us / 1e6)} from SIGTERM until it closes its consumer "
        f"(stop_grace_ms, drain_ms) and is killed after {seconds(grace_ms / 1000)} (termination_grace_ms): "
        f"it {price_of_kill(settings)}",
    )


def price_of_kill(settings: Settings) -> str:
    """The consequence for a process that is killed before it closes: a static one never sends LeaveGroup."""
    if settings.choice("group.instance.id") != "none":
        return "does not commit at its end then, and what it has done since its last commit is done again"
    session = of_protocol(settings, "session.timeout.ms")
    wait = seconds(settings.integer(session) / 1000)
    return f"sends no LeaveGroup then, and its partitions wait for {session} ({wait})"


def _polls(settings: Settings) -> Iterator[Contradiction]:
    """Work that outlasts max.poll.interval.ms between two calls of poll()."""
    interval_s = settings.integer("max.poll.interval.ms") / 1000
    is_said = False
    for setting, work_us in longest_work_us(settings).items():
        if work_us >= interval_s * 1_000_000:
            is_said = True
            subject = _WORK[setting].format(_slowest_record(settings))
            yield Contradiction(
                setting,
                f"{subject} {seconds(work_us / 1e6)} ({setting}), and max.poll.interval.ms is "
                f"{seconds(interval_s)}: the member leaves the group meanwhile",
            )
    batch_s = _full_batch_s(settings)
    if batch_s >= interval_s and not is_said:
        fitting = (settings.integer("max.poll.interval.ms") * 1_000_000 - 1) // record_ns(settings)
        yield Contradiction(
            "full batch",
            f"{_full_batch(settings)}, and max.poll.interval.ms is {seconds(interval_s)}: a member that has "
            f"fallen behind leaves the group; {counted(fitting, 'record')} (max.poll.records) would fit",
        )


def _full_batch_s(settings: Settings) -> float:
    """The work on max.poll.records in the mean; 0 for a client that hands out what it has fetched."""
    records = settings.integer("max.poll.records") if has_records(settings) else 0
    return records * record_ns(settings) / 1e9 if records < ALL_FETCHED else 0


def _full_batch(settings: Settings) -> str:
    records = counted(settings.integer("max.poll.records"), "record")
    return f"a full batch of {records} takes {seconds(_full_batch_s(settings))} in the mean"


def _silent_rounds(settings: Settings) -> Iterator[Contradiction]:
    """Work that outlasts session.timeout.ms, of members that are away from poll() while they rebalance.

    A cooperative Java consumer processes what it owns while its JoinGroup waits (KAFKA-8421). Only poll()
    reads the answer, and the heartbeat thread stands still until then; the coordinator's session runs from
    the answer on. `docs/truth.md` has such a group on Kafka.
    """
    profile = PROFILES[settings.names("client_profile")[0]]
    if settings.choice("group.protocol") != CLASSIC or not profile.rounds_wait_for_polls:
        return
    strategies = settings.names(STRATEGY)
    if not all(entry in BUILT_IN and is_cooperative(get(entry)) for entry in strategies):
        return
    session_s = settings.integer("session.timeout.ms") / 1000
    setting, longest_us = max(longest_work_us(settings).items(), key=lambda one: one[1])
    work = f"{_WORK[setting].format(_slowest_record(settings))} {seconds(longest_us / 1e6)} ({setting})"
    if longest_us < session_s * 1_000_000:
        if _full_batch_s(settings) < session_s:
            return
        work = _full_batch(settings)
    yield Contradiction(
        "silent rounds",
        f"{work}, and session.timeout.ms is {seconds(session_s)}: a cooperative Java consumer reads the "
        "answer of its JoinGroup at its next poll() and sends no heartbeat until then, so a rebalance throws "
        "it out; under group.protocol=consumer heartbeats go on "
        f"(it needs {consumer_protocol_needs([profile.name])})",
    )


#: The timeout that a finding names, by the rule that says why it was outlasted; of other rules the interval.
_TIMEOUTS: Final = {"silent rounds": "session.timeout.ms", "fatal record": ""}


def cause_of(scenario: ResolvedScenario, found: str) -> str:
    """The record or the setting that keeps the group from coming to rest.

    "" if no arithmetic says it, or if the finding ``found`` is about another timeout.
    """
    if scenario.settings.choice("application") == STREAMS:
        return ""
    return "; ".join(
        one.sentence
        for one in endless_work(scenario.settings)
        if _TIMEOUTS.get(one.rule, "max.poll.interval.ms") in found
    )


def cost_of(figures: Figures) -> str:
    """The cost of a group that does not come to rest, by the end of its run."""
    parts = []
    if figures.unowned_partition_seconds:
        parts.append(f"{seconds(figures.unowned_partition_seconds)} without an owner, over all partitions")
    if figures.dual_owner_seconds:
        parts.append(f"{seconds(figures.dual_owner_seconds)} with two owners")
    if figures.records_duplicated:
        parts.append(f"{counted(figures.records_duplicated, 'record')} processed again")
    if figures.staleness_max_seconds:
        oldest = seconds(figures.staleness_max_seconds)
        where = figures.staleness_worst_partition
        parts.append(f"a record{f' of {where}' if where else ''} that waited {oldest}")
    growth = lag_growth(figures)
    if growth is not None:
        parts.append(f"a lag that still grows by {rate(growth)} records a second")
    return f"it costs {listed(parts)}" if parts else "it costs nothing yet"
