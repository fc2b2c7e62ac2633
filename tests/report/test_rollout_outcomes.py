"""The answer on a rollout with several seeds: most of them decide whether it never completes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from groupstorm.figures import Figures
from groupstorm.report.rollout import Rollouts, rollout_answer
from groupstorm.storms.deployments.alternatives import Outcome, alternatives_to, read_outcome, remedies_for
from groupstorm.storms.runs.run import Run
from groupstorm.storms.scenario.settings import Settings
from groupstorm.trace.events.member import MemberCrashed
from groupstorm.trace.events.scenario import StepTaken
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import open_writer
from tests.storms.manifests.manifest_files import plan_of, workload
from tests.storms.storms_in_memory import scenario
from tests.verdicts.test_recommendation import runs

COMPLETE = Outcome(300.0, None, 4, 0)
LATE = COMPLETE._replace(late_s=70.0)
STUCK = Outcome(None, "no progress for 60 s: member-0-v2 is not ready", 0, 0, 70.0)
RESOLVED = scenario(
    [{"at_ms": 0, "do": "start"}], deployment="deployment", progress_deadline_ms=60_000
).resolve(None, 0, {})


def rollouts(*outcomes: Outcome, figures: Figures | None = None) -> Rollouts:
    [figures] = runs(9) if figures is None else [figures]
    run = Run(RESOLVED, figures, Path(), Path(), 0, 0.0)
    return Rollouts([run] * len(outcomes), outcomes)


@pytest.mark.parametrize(
    ("outcomes", "stuck"),
    [
        ([STUCK], STUCK.stuck),
        ([STUCK, COMPLETE], None),
        ([STUCK, COMPLETE, STUCK], f"{STUCK.stuck} (2 of 3 seeds)"),
        ([LATE, LATE, LATE], None),
    ],
)
def test_most_seeds_decide(outcomes: list[Outcome], stuck: str | None) -> None:
    assert rollouts(*outcomes).stuck == stuck


def test_a_full_group_is_named() -> None:
    [figures] = runs(9)
    full = replace(figures, consumers_failed={"GROUP_MAX_SIZE_REACHED": 4})
    assert rollouts(STUCK, figures=full).stuck == (
        f"{STUCK.stuck}; consumers ended with GROUP_MAX_SIZE_REACHED (the group is full, see group.max.size "
        "or group.consumer.max.size)"
    )


def test_a_deadline_that_passes_does_not_end_a_rollout() -> None:
    said = rollout_answer(plan_of(workload()), RESOLVED.settings, rollouts(LATE, COMPLETE, STUCK))
    assert "With some seeds it never completes: no progress for 60 s" in said
    assert (
        "progressDeadlineSeconds (60.0 s) pass without progress with 2 of 3 seeds, first after 70.0 s: from "
        "then on `kubectl rollout status` reports a failure, but the rollout goes on."
    ) in said


def test_the_outcome_of_a_trace_names_the_deadline_and_the_end(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, "trace", "jsonl")
    causes = {10: "rolling-restart", 80: "rollout-stuck", 200: "rollout-stuck", 310: "rollout-complete"}
    for at_s, cause in causes.items():
        writer.add(at_s * 1_000_000, Source.WORLD, StepTaken("group", None, cause, "rolling-restart: why"))
    writer.close()
    assert read_outcome(writer.path, "rolling-restart") == Outcome(300.0, None, 0, 0, 70.0)


def test_a_pod_that_a_full_group_refuses_starts_again() -> None:
    plan = plan_of(workload(), **{"group.max.size": 4})
    assert plan.settings["restart_failed"] is True
    assert next(remedies_for(plan)).change == "maxSurge: 0, maxUnavailable: 1"


@pytest.mark.parametrize(("member_id", "killed"), [("member-0-a", 1), ("", 0)])
def test_a_pod_that_had_sent_its_leave_group_is_not_missed(
    tmp_path: Path, member_id: str, killed: int
) -> None:
    writer = open_writer(tmp_path, "trace", "jsonl")
    begins = StepTaken("group", None, "rolling-restart", "1 processes are replaced, ordinal")
    writer.add(1_000_000, Source.WORLD, begins)
    writer.add(31_000_000, Source.WORLD, begins._replace(member="member-0", detail="SIGKILL 30000 ms after"))
    writer.add(31_000_000, Source.MEMBER, MemberCrashed("group", "member-0", member_id, 1, (), (), ()))
    writer.close()
    assert read_outcome(writer.path, "rolling-restart").killed == killed


@pytest.mark.parametrize(
    ("drain_s", "said"),
    [
        (0, "(30.0 s; a rebalance or a batch holds them up, else they may need 500 ms): a pod"),
        (40, "(30.0 s; they may need 40.5 s): a pod"),
    ],
)
def test_the_reason_why_pods_are_killed(drain_s: int, said: str) -> None:
    killing = scenario(
        [{"at_ms": 0, "do": "start"}],
        termination_grace_ms=30_000, stop_grace_ms={"exactly": 500}, drain_ms={"exactly": 1000 * drain_s},
    )  # fmt: skip
    settings = killing.resolve(None, 0, {}).settings
    assert said in rollout_answer(plan_of(workload()), settings, rollouts(COMPLETE._replace(killed=2)))


@pytest.mark.parametrize(("replicas", "are_side_by_side"), [(1, False), (2, True)])
def test_one_pod_without_surge_has_no_other_beside_it(replicas: int, are_side_by_side: bool) -> None:
    plan = plan_of(workload(replicas=replicas, strategy={"type": "Recreate"}))
    prices = {one.name: one.price for one in alternatives_to(plan, Settings(("", plan.settings)))}
    assert prices["static-members"].startswith("old and new pods run side by side") is are_side_by_side
    assert prices["kip-848"].startswith("old and new pods run side by side")
