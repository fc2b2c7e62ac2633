"""How far draws reach, and which of them decide on the order of a rollout."""

from __future__ import annotations

from groupstorm.storms.randomness import DRAW_SPAN, Stream
from groupstorm.storms.scenario.steps import Step
from tests.storms.test_steps_by_hand import running


def test_draws_reach_from_one_end_of_their_span_to_the_other() -> None:
    """Of 1,000 even draws the largest and the least are within a hundredth of the ends, but for one run in
    more than 10,000."""
    stream = Stream(3, "even")
    draws = [stream.at(k) for k in range(1_000)]
    assert min(draws) * 100 < DRAW_SPAN
    assert max(draws) * 100 > 99 * DRAW_SPAN


def test_a_rollout_in_random_order_draws_once_for_each_process() -> None:
    """Each start of three processes takes a draw, so the rollout begins with the fourth one: who has the
    least is replaced first."""
    plan = Stream(1, "plan")
    drawn = {f"member-{n}": plan.at(4 + n) for n in range(3)}
    host = running(Step(60_000, "rolling-restart"), order="random", count=3, ready_ms=0)
    stopped = [line.split()[3].rstrip(":") for line in host.until(400) if "SIGTERM" in line]
    assert stopped == sorted(drawn, key=lambda name: drawn[name])
