"""Workloads: the moves that a random script is mostly made of.

With all moves in one mixture, groups would end before a second round: refused, fenced or frozen. Each
workload therefore adds a few disturbing moves to those that keep a group going.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Values of group.initial.rebalance.delay.ms.
_NO_DELAY = (0,)
_DELAYS_MS = (0, 0, 1_000, 3_000, 5_000)


@dataclass(frozen=True)
class Workload:
    """``weight``: how often; ranges are (least, most); shares are between 0 and 1; times are in ms."""

    name: str
    weight: int
    #: Moves (see `moves.MOVES`) and their weights.
    moves: Mapping[str, int]
    clients: tuple[int, int] = (1, 6)
    moves_count: tuple[int, int] = (6, 22)
    static_share: float = 0.3
    delays_ms: tuple[int, ...] = _DELAYS_MS
    max_sizes: tuple[int | None, ...] = (None,)
    sessions_ms: tuple[int, ...] = (6_000, 10_000, 10_000, 30_000)
    rebalances_ms: tuple[int, ...] = (6_000, 20_000, 60_000, 60_000)
    #: How often the records of a request cannot be appended.
    append_error_share: float = 0.0
    #: How often metadata is something that the consumer protocol cannot read.
    garbage_share: float = 0.02
    #: Which protocols clients draw theirs from, and how many at most.
    protocols: tuple[str, ...] = ("range", "roundrobin", "sticky", "cooperative-sticky")
    protocols_count: int = 2
    #: How often requests leave the way that a well-behaved client goes.
    stray_share: float = 0.05
    #: How often a script has a second group.
    second_group_share: float = 0.1


#: The moves that keep a group going; every workload has them.
_BASIC_MOVES = {"arrive": 10, "settle": 12, "beat": 8, "wait": 6}


def _with(**moves: int) -> Mapping[str, int]:
    return {**_BASIC_MOVES, **moves}


_OTHER_MOVES = (
    *("abandon", "commit", "describe", "double", "fail", "fetch", "impostor", "inconsistent", "late"),
    *("leave", "leave_by_instance", "leave_many", "odd", "outside", "overwrite", "rejoin", "restart"),
    *("stray", "topics", "unsynced"),
)

WORKLOADS: tuple[Workload, ...] = (
    Workload("steady", 10, _with(commit=6, fetch=2, describe=2, rejoin=3, leave=2, restart=2),
             stray_share=0.02),
    Workload("churn", 12,
             _with(rejoin=10, leave=8, leave_many=4, late=4, double=3, commit=2, describe=1, unsynced=2),
             clients=(2, 12), moves_count=(10, 30)),
    Workload("static members", 12,
             _with(restart=12, impostor=6, leave_by_instance=4, leave_many=3, rejoin=5, double=2, commit=2),
             static_share=0.9),
    Workload("crowded", 8, _with(arrive=14, rejoin=4, leave=4, restart=2, late=3), clients=(3, 12),
             max_sizes=(1, 2, 2, 3, 4)),
    Workload("first round", 10, _with(arrive=14, late=8, leave=4, wait=8, rejoin=3, leave_many=2),
             delays_ms=(1_000, 3_000, 3_000, 5_000, 20_000, 400_000),
             rebalances_ms=(1_000, 4_000, 6_000, 8_000, 60_000)),
    Workload("time-outs", 12, _with(wait=20, late=4, abandon=6, rejoin=4, leave=2, unsynced=8),
             sessions_ms=(6_000, 6_001, 10_000, 30_000, 30_000, 290_000),
             rebalances_ms=(500, 6_000, 10_000, 10_000, 20_000, 300_000, 310_000), stray_share=0.1),
    Workload("failed appends", 12,
             _with(rejoin=5, restart=6, leave=4, commit=8, fetch=6, double=2, fail=16, arrive=14,
                   overwrite=2), append_error_share=0.08, static_share=0.5, delays_ms=_NO_DELAY),
    Workload("strangers", 10, _with(stray=12, impostor=5, commit=3, leave_many=3), stray_share=0.3),
    Workload("votes", 8, _with(rejoin=10, inconsistent=6, leave=4, restart=4, describe=2),
             protocols=("range", "roundrobin", "sticky", "Aa", "BB", "AaAa", "BBBB", "AaBB"),
             protocols_count=5, clients=(2, 8), static_share=0.5),
    Workload("garbage", 6, _with(rejoin=6, leave=4, restart=3, describe=2, late=2), garbage_share=0.4),
    Workload("offsets", 8,
             _with(commit=18, fetch=10, topics=4, leave=3, rejoin=3, outside=6, fail=5, overwrite=4),
             append_error_share=0.05, second_group_share=0.4),
    Workload("everything", 10, _with(**dict.fromkeys(_OTHER_MOVES, 3)), clients=(1, 12), moves_count=(10, 35),
             append_error_share=0.05, garbage_share=0.08, stray_share=0.1, max_sizes=(None, None, None, 3),
             second_group_share=0.3),
)  # fmt: skip
