"""Which process starts under which name, and the back-off of those that fail, to the microsecond."""

from __future__ import annotations

from groupstorm.storms.scenario.steps import Step
from tests.storms.test_steps_by_hand import SECOND, Host, running


def test_without_a_start_the_first_process_that_is_added_is_the_first_one() -> None:
    host = Host(Step(0, "add", count=2))
    host.until(20)
    assert [what for _, what in host.said[1:]] == ["member-0 starts", "member-1 starts"]


def test_a_name_that_two_steps_start_again_gets_one_process() -> None:
    """The first step's SIGTERM comes at 60 s, the second one kills the process at 60.2 s: both starts come at
    70.2 s."""
    host = running(Step(60_000, "restart", members=(1,)), Step(60_200, "crash-restart", members=(1,)))
    starts = [line for line in host.until(100) if line.endswith("starts")]
    assert starts == ["70.2 member-1 starts"]
    assert host.runner.pending == 0


def test_a_process_that_has_died_does_not_keep_its_name() -> None:
    host = running()
    host.processes["member-1"].alive = False
    host.runner.spawn(1, "member-1", SECOND)
    assert host.until(70) == ["60 member-1 starts"]


def test_the_back_off_of_a_process_is_kept_for_ten_minutes_and_no_longer() -> None:
    def second_back_off(after_us: int) -> str:
        host = running(restart_failed=True)
        host.processes["member-1"].exit()
        host.until(59 + after_us / SECOND)
        host.processes["member-1"].exit()
        return host.said[-1][1]

    assert second_back_off(600 * SECOND).endswith("in 20 s")
    assert second_back_off(600 * SECOND + 1).endswith("in 10 s")
