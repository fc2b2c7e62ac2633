"""Conditions that tests wait for, looked at on the loop on which things happen."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.testing.waiting import WaitFuture


class Conditions:
    """Whoever changes something calls `look_again`."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], WaitFuture]] = []

    def when(self, is_so: Callable[[], bool]) -> WaitFuture:
        """Is done as soon as the condition holds; with its error if it raises one."""
        done = WaitFuture()
        self._waiting.append((is_so, done))
        self.look_again()
        return done

    def look_again(self) -> None:
        still = []
        for is_so, done in self._waiting:
            if done.cancelled():
                continue
            try:
                is_met = is_so()
            except Exception as problem:  # noqa: BLE001  # a test's own condition: the test gets its error
                if done.set_running_or_notify_cancel():
                    done.set_exception(problem)
                continue
            if not is_met:
                still.append((is_so, done))
            elif done.set_running_or_notify_cancel():
                done.set_result(None)
        self._waiting = still
