"""Sentences of `groupstorm rollout` on alternatives whose runs are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from groupstorm.cli.rollout_text import Answer
from groupstorm.figures import Figures
from groupstorm.report.rollout import Rollouts
from groupstorm.storms.deployments.alternatives import Outcome
from groupstorm.storms.runs.run import Run
from groupstorm.verdicts.alternatives import AS_IT_IS, Alternative
from tests.storms.manifests.manifest_files import plan_of, workload
from tests.storms.storms_in_memory import START, scenario
from tests.verdicts.test_recommendation import runs


def test_an_alternative_that_is_not_ranked_is_not_named_for_its_shorter_rollout(tmp_path: Path) -> None:
    resolved = scenario([START]).resolve(None, 0, {})

    def rollouts(figures: Sequence[Figures], seconds: float) -> Rollouts:
        made = [Run(resolved, one, tmp_path, tmp_path, 0, 0.0) for one in figures]
        return Rollouts(made, [Outcome(seconds, None, 1, 0)] * len(made))

    def said(quick: Sequence[Figures]) -> str:
        found = {AS_IT_IS: rollouts(runs(900, 910), 600), "quick": rollouts(quick, 100)}
        quickly = Alternative("quick", 1, "more pods", {})
        answer = Answer(plan_of(workload()), resolved.settings, [quickly], found, "", tmp_path)
        advice = answer.advice()
        assert advice is not None
        return " ".join(advice.sentences)

    assert "The rollout itself takes 100 s with quick" in said(runs(905, 915))
    dead = [replace(one, consumers_failed={"FENCED_INSTANCE_ID": 1}) for one in runs(905, 915)]
    assert "Not ranked is quick" in said(dead)
    assert "takes 100 s with quick" not in said(dead)
