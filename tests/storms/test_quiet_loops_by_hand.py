"""A loop whose polls are surely alike is computed at once, and one that has to computes poll by poll."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.randomness import Stream
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.scenario import distributions
from groupstorm.storms.world.looks import PollSettings
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import RecordTimes
from tests.storms.test_poll_loop import SECOND, P

END = 600 * SECOND


class Asked:
    """Ordinary partitions. Their factor is asked for when records are polled."""

    def __init__(self) -> None:
        self.times = 0

    def factor(self, _: TopicPartition) -> int:
        self.times += 1
        return 1_000


def ordinary(asked: Asked, *steps: bool) -> PollLoop:
    """Half a record a millisecond arrives, of 1 ms each; polls are 100 ms apart."""
    times = RecordTimes(distributions.parse("process_ms", 1), 1, Stream(1, "records"), factors=asked)
    interval = distributions.parse("poll_interval_ms", 100)
    logs = RecordLogs(lambda _: ((0, 500_000),))
    ours = PollLoop(logs, PollSettings(500, 500, 1_000_000, interval, 60 * SECOND), times, *steps)
    ours.own((P[0],), (0,), 0)
    return ours


def test_ten_minutes_of_polls_that_are_alike_take_a_few_steps() -> None:
    asked = Asked()
    assert ordinary(asked).positions(END) == {P[0]: 299_950}
    assert asked.times < 10


def test_a_loop_that_is_told_to_goes_poll_by_poll() -> None:
    """6,000 polls, of which the first one brings nothing."""
    asked = Asked()
    assert ordinary(asked, True).positions(END) == {P[0]: 299_950}
    assert asked.times == 5_999
