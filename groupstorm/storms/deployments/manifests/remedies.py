"""Changes that may end a rollout that never completes: each is tried, and said only if it helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from groupstorm.storms.deployments.manifests.plan import Plan
from groupstorm.storms.scenario.deployment_settings import DEPLOYMENT, POLLS


class Remedy(NamedTuple):
    """``change`` as a manifest has it; ``step``: the kind of the step that is the rollout."""

    name: str
    change: str
    step: str
    scenario: dict[str, Any]


def remedies_for(plan: Plan) -> Iterator[Remedy]:
    """In the order in which people would try them."""
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
