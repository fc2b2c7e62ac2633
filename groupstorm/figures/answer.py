"""One run's figures as one sentence for people."""

from __future__ import annotations

from groupstorm.figures.table import (
    HELD,
    OWNED_AT_END,
    Figures,
    finding,
    lag_growth,
    overload_sentence,
    records_left,
    verdict_on,
)
from groupstorm.wording import counted, dollars, seconds, size


def answer(
    figures: Figures,
    unknown_times: str | None = None,
    unowned_is_least: bool = False,
    unknown_moves: bool = False,
    generations_are_least: bool = False,
    without_members_s: float = 0,
    unknown_pauses: bool = False,
    at_end: str = "",
) -> str:
    """The run in one sentence, made from its figures alone.

    ``unknown_times``: of a trace that does not say who owned what, or how long owners were away, the sentence
    that says so.
    ``unowned_is_least``: it knows of owners that were away only what their coordinator does, or not when
    processes died.
    ``unknown_moves``: it does not say when the group had settled, or who owned what.
    ``generations_are_least``: it knows the group at some times only. ``without_members_s``: so long it says
    that the group had no members. ``unknown_pauses``: it does not say when members stood still, owning
    partitions. ``at_end``: what is not over when it ends.
    """
    if figures.delivery_counts is not None:
        return _shared(figures, at_end)
    unowned = unknown_times or _unowned(figures, unowned_is_least)
    generations = counted(figures.generations, "generation")
    parts = [f"at least {generations}" if generations_are_least else generations, unowned]
    if without_members_s:
        parts.append(f"besides, the group had no members for {seconds(without_members_s)}")
    if figures.nobody_consuming_seconds:
        least = "at least " if unknown_pauses or unowned_is_least else ""
        parts.append(f"for {least}{seconds(figures.nobody_consuming_seconds)} nobody consumed anything")
    if figures.dual_owner_seconds:
        both = f"{'at most ' if unknown_pauses else ''}{seconds(figures.dual_owner_seconds)}"
        parts.append(f"two members worked on one partition for {both} in all")
    verdicts = figures.invariants or {}
    moved = "" if unknown_moves else _moved(figures)
    overload = _overload(figures)
    # partitions without an owner, or a member that stands still, say nothing of the others' pace
    if at_end or verdicts.get(OWNED_AT_END, HELD) != HELD:
        overload = overload.partition(":")[0]
    left = records_left(figures)
    at_end = at_end or (f"at the end {counted(left, 'record')} still waited" if left else "")
    parts += [part for part in (moved, _records(figures), at_end, overload) if part]
    parts += _tasks(figures)
    broken = [name for name, verdict in verdicts.items() if verdict != HELD]
    if (restless := finding(verdicts)) is not None:
        parts.append(f"this configuration {verdict_on(restless)} ({restless})")
    elif broken:
        parts.append(f"violated: {', '.join(broken)}")
    return "; ".join(parts) + "."


#: Why records of a share group were delivered again, for people.
_TAKEN_BACK = {
    "released": "given back",
    "closed": "not acknowledged before their consumer closed",
    "connection-closed": "with a consumer whose connection closed",
    "lock-expired": "with a consumer whose locks expired",
}


def _shared(figures: Figures, at_end: str) -> str:
    """The sentence on a share group."""
    done = figures.records_processed or 0
    pace = "" if figures.records_per_second is None else f", {figures.records_per_second:,.0f} a second"
    parts = [f"{counted(done, 'record')} done{pace}"]
    busy, causes = figures.busy_consumers_percent, figures.redeliveries_by_cause or {}
    if busy is not None:
        longer = ", and worked on longer where their locks ended" if causes.get("lock-expired") else ""
        parts.append(f"consumers had records {busy:.0f} % of their time{longer}")
    if figures.consumers_without_records:
        parts.append(f"{counted(figures.consumers_without_records, 'consumer')} never got any")
    again = figures.records_duplicated or 0
    if again:
        why = ", ".join(f"{number:,} {_TAKEN_BACK[cause]}" for cause, number in causes.items())
        taken = sum(causes.values())  # some of them still wait, or were given up
        of = f", of {taken:,} taken back" if taken > again else ""
        parts.append(f"{counted(again, 'record')} delivered again{of} ({why})")
    else:
        parts.append("every record was delivered once")
    if figures.lock_seconds_lost:
        parts.append(f"locks kept records from others for {seconds(figures.lock_seconds_lost)} in all")
    if figures.records_archived:
        dead = figures.records_dead_lettered
        queue = f", {dead:,} of them to the dead letter queue" if dead else ""
        parts.append(f"{counted(figures.records_archived, 'record')} archived{queue}")
    if figures.records_out_of_order:
        parts.append(f"{counted(figures.records_out_of_order, 'record')} done out of order")
    parts += [part for part in (at_end, _overload(figures)) if part]
    broken = [name for name, verdict in (figures.invariants or {}).items() if verdict != HELD]
    if broken:
        parts.append(f"violated: {', '.join(broken)}")
    return "; ".join(parts) + "."


def _unowned(figures: Figures, is_least: bool) -> str:
    total, longest = figures.unowned_partition_seconds, figures.unowned_max_seconds
    if total is None or longest is None:
        return "at no time did every partition have an owner"
    if not total:
        return f"{'as far as the trace knows, ' if is_least else ''}no partition was ever un-owned"
    least = "at least " if is_least else ""
    times = f"{least}{seconds(total)} in all, {least}{seconds(longest)} at the longest"
    return f"partitions were un-owned for {times}"


def _moved(figures: Figures) -> str:
    if figures.moves is None:
        return "the group never settled"
    if not figures.moves:
        return "nothing moved for good"
    moved = f"{counted(figures.moves, 'partition')} moved"
    if figures.moves_wasted is None:
        return moved
    if figures.moves_wasted > 0:
        return f"{moved}, {figures.moves_wasted:,} of them needlessly"
    return f"{moved}, as few as a balanced group can do with"


def _records(figures: Figures) -> str:
    parts = []
    if figures.records_duplicated:
        parts.append(f"{counted(figures.records_duplicated, 'record')} processed again")
    if figures.records_skipped:
        parts.append(f"{counted(figures.records_skipped, 'record')} skipped{skipped_words(figures)}")
    return " and ".join(parts)


def skipped_words(figures: Figures) -> str:
    """Words that follow the number of skipped records: of which partition, when, and what reads them."""
    skipped, at_start = figures.records_skipped or 0, figures.records_skipped_at_start or 0
    worst = figures.skipped_worst_partition
    is_one = skipped == 1
    text = f", {'' if is_one else 'most of them '}in {worst}" if worst else ""
    if at_start:
        how_many = "all" if at_start == skipped else f"{at_start:,}"
        text += f", {'' if is_one else f'{how_many} of them '}as the group began without a commit"
    return f"{text} (auto.offset.reset=earliest reads {'it' if is_one else 'them'})"


def _overload(figures: Figures) -> str:
    """Tell what the members do not get to: a group that has settled is not one that keeps up."""
    growth = lag_growth(figures)
    return "" if growth is None else overload_sentence(growth)


def _tasks(figures: Figures) -> list[str]:
    """The sentence on a Kafka Streams application: task downtime, restored bytes, whether it settled."""
    if figures.probing_rebalances is None:
        return []
    parts = [_down(figures)]
    if figures.restored_bytes:
        parts.append(f"{size(figures.restored_bytes)} were restored before tasks could run")
    probing = counted(figures.probing_rebalances, "probing rebalance")
    if figures.converged_after_seconds is not None:
        after = seconds(figures.converged_after_seconds)
        parts.append(f"a stable assignment came {after} and {probing} after the first change")
    else:
        parts.append(f"no stable assignment came before the end (settle_timeout_ms), in {probing}")
    if figures.cross_rack_bytes is not None and figures.cross_rack_usd is not None:
        parts.append(
            f"{size(figures.cross_rack_bytes)} went from rack to rack ({dollars(figures.cross_rack_usd)})"
        )
    return parts


def _down(figures: Figures) -> str:
    total, longest = figures.task_downtime_seconds, figures.task_downtime_max_seconds
    if total is None or longest is None:
        return "at no time did every task run"
    if not total:
        return "no task was ever down"
    return f"tasks were down for {seconds(total)} in all, {seconds(longest)} at the longest"
