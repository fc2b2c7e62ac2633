"""When a run is over: all steps done, the group settled, the lag gone; or patience at an end."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.storms.plan import Plan
from groupstorm.storms.stage import Stage

#: Called now and then with the time so far (microseconds) and what is going on.
Progress = Callable[[int, str], None]


class Ending:
    """Asked at intervals of the stage's time by whoever lets that pass, virtual or real."""

    def __init__(self, stage: Stage, plan: Plan, progress: Progress | None) -> None:
        self._stage = stage
        self._plan = plan
        self._progress = progress
        self._patience_us = stage.settings.integer("settle_timeout_ms") * 1000
        self._least_us = stage.settings.integer("least_duration_ms") * 1000
        self._plan_done_us: int | None = None
        #: Quiet time to let pass once it `is_reached`.
        self.tail_us = stage.settings.integer("tail_ms") * 1000

    def is_reached(self) -> bool:
        stage, now_us = self._stage, self._stage.clock.now_us
        if self._progress is not None:
            self._progress(now_us, "steps" if self._plan.pending else "settling")
        if self._plan.pending:
            self._plan_done_us = None
            return False
        if self._plan_done_us is None:
            self._plan_done_us = now_us
        if now_us < self._least_us:
            return False
        at_rest = (
            not stage.follow_ups and stage.settled and (stage.records.record_rate == 0 or stage.lag() == 0)
        )
        return at_rest or now_us - self._plan_done_us >= self._patience_us
