"""The outcome of a rollout, and remedies for one that never completes: changes of the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from groupstorm.figures.rounds import is_rebalance
from groupstorm.storms.deployments.manifests.plan import Plan
from groupstorm.storms.deployments.rollout import COMPLETE, STUCK
from groupstorm.storms.scenario.deployment_settings import DEPLOYMENT, POLLS
from groupstorm.trace.reader import read_entries


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
    for row, entry in read_entries(trace):
        if row["event"] == "step_taken":
            if row["cause"] == step and begun_us is None:
                begun_us = row["time_us"]
            elif row["cause"] == COMPLETE and begun_us is not None:
                seconds, stuck = (row["time_us"] - begun_us) / 1e6, None
            elif row["cause"] == STUCK:
                stuck = row["detail"].partition(": ")[2]
            killed += row["cause"] == step and row["detail"].startswith("SIGKILL")
        elif begun_us is not None and entry is not None:
            rebalances += is_rebalance(entry[2])
    return Outcome(seconds, stuck, rebalances, killed)


class Remedy(NamedTuple):
    """``change`` as a manifest has it; ``step``: the kind of the step that is the rollout."""

    name: str
    change: str
    step: str
    scenario: dict[str, Any]


def remedies_for(plan: Plan) -> Iterator[Remedy]:
    """Changes that may end a rollout that never completes, in the order in which people would try them."""
    is_deployment = plan.settings["deployment"] == DEPLOYMENT
    if is_deployment and plan.step == "rolling-restart":
        yield _with(plan, "max-unavailable", "maxUnavailable: 1", max_unavailable=1)
        recreated = replace(plan, step="recreate")
        yield Remedy("recreate", "strategy: Recreate", "recreate", recreated.scenario())
    if plan.settings["ready_when"] != POLLS:
        yield _with(plan, "ready-when-polls", "a readiness probe that needs no partition", ready_when=POLLS)


def _with(plan: Plan, name: str, change: str, **settings: Any) -> Remedy:
    changed = replace(plan, settings={**plan.settings, **settings})
    return Remedy(name, change, plan.step, changed.scenario())
