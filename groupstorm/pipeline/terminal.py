"""What an analysis shows in a terminal, beside the figures: slow handovers with their reason, rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from groupstorm.pipeline.analysis import RoundsByCause, SlowHandover
from groupstorm.storms.figures.wording import seconds

#: How an owner came to own no more: (event, cause) or the event alone -> a clause about ``old``.
_ENDINGS: Mapping[tuple[str, str | None], str] = {
    ("partitions_revoked", "rebalance"): "{old} gave up everything to join again",
    ("partitions_revoked", "assignment"): "{old} was not assigned it any more",
    ("partitions_revoked", "subscription"): "{old} dropped the topic",
    ("partitions_revoked", "close"): "{old} closed",
    ("partitions_lost", None): "{old} was out of the group ({cause})",
    ("member_crashed", None): "{old} crashed",
    ("partitions_created", None): "it was created",
    ("member_removed", None): "{old} was removed ({cause})",
    ("member_replaced", None): "{old} came back under a new id",
    ("join_parked", None): "{old} joined again",
    ("join_answered", None): "{old} joined again",
    ("sync_answered", None): "{old} was not assigned it any more",
}


def why(handover: SlowHandover) -> str:
    """What ended the old ownership, how long nobody noticed, and who came after how many generations."""
    ending = _ENDINGS.get((handover.ended_by, handover.cause)) or _ENDINGS[handover.ended_by, None]
    clauses = [ending.format(old=handover.old_owner, cause=handover.cause)]
    if handover.round_us is not None and handover.round_us > handover.from_us:
        waited = seconds((handover.round_us - handover.from_us) / 1_000_000)
        clauses.append(f"the next round began {waited} later ({handover.rebalance_cause})")
    elif handover.round_us is not None:
        clauses.append(f"in a round because of {handover.rebalance_cause}")
    if handover.new_owner is None:
        clauses.append("nobody took it until the end")
    elif handover.new_owner == handover.old_owner:
        clauses.append(f"{handover.new_owner} got it back")
    else:
        clauses.append(f"{handover.new_owner} took it")
    if handover.generations is not None and handover.generations > 1:
        clauses[-1] += f" {handover.generations} generations later"
    return "; ".join(clauses)


def handovers_table(run: str, handovers: Sequence[SlowHandover]) -> Table:
    """The slowest handovers of one run."""
    table = Table(title=f"Slowest handovers: {run}", title_justify="left", header_style="bold")
    table.add_column("partition", overflow="fold")
    for name in ("at s", "gap"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", ratio=1)
    for handover in handovers:
        more = f" and {handover.partitions - 1} more" if handover.partitions > 1 else ""
        table.add_row(
            handover.partition + more,
            f"{handover.from_us / 1_000_000:,.3f}",
            seconds(handover.gap_us / 1_000_000),
            why(handover),
        )
    return table


def rounds_table(rounds: Sequence[RoundsByCause]) -> Table:
    """What made groups rebalance, run by run."""
    table = Table(title="Rounds by cause", title_justify="left", header_style="bold")
    table.add_column("run", overflow="fold")
    table.add_column("cause", no_wrap=True)
    for name in ("rounds", "stable", "members", "mean latency", "max latency"):
        table.add_column(name, justify="right")
    for one in rounds:
        table.add_row(
            one.run,
            one.cause,
            f"{one.rounds:,}",
            f"{one.stable:,}",
            "-" if one.members is None else f"{one.members:,}",
            *(
                "-" if us is None else seconds(us / 1_000_000)
                for us in (one.latency_avg_us, one.latency_max_us)
            ),
        )
    return table
