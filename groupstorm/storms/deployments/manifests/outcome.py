"""The outcome of a rollout, from the trace of its run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from groupstorm.storms.deployments.rollout import COMPLETE, STUCK
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.reader import read_rows


class Outcome(NamedTuple):
    """``seconds`` from the rollout's step until the last pod is available; None if it is stuck.

    ``stuck``: why, and when Kubernetes reports it, as a sentence; ``killed`` pods got SIGKILL.
    """

    seconds: float | None
    stuck: str | None
    rebalances: int
    killed: int


def read_outcome(trace: Path, step: str) -> Outcome:
    """The outcome of the one rollout in the trace, whose kind of step is ``step``."""
    begun_us: int | None = None
    seconds, stuck = None, None
    rebalances = killed = 0
    for row in read_rows(trace):
        event = row["event"]
        if event == "step_taken":
            if row["cause"] == step and begun_us is None:
                begun_us = row["time_us"]
            elif row["cause"] == COMPLETE and begun_us is not None:
                seconds, stuck = (row["time_us"] - begun_us) / 1e6, None
            elif row["cause"] == STUCK:
                stuck = row["detail"].partition(": ")[2]
            killed += row["cause"] == step and row["detail"].startswith("SIGKILL")
        elif begun_us is not None and event == "group_state_changed":
            rebalances += row["state"] == GroupState.PREPARING_REBALANCE
        elif begun_us is not None and event == "group_epoch_bumped":  # of a consumer group (KIP-848)
            rebalances += 1
    return Outcome(seconds, stuck, rebalances, killed)
