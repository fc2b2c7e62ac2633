"""A stop signal ends what asyncio runs in an orderly way, wherever in the loop it arrives."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from groupstorm.held_signals import STOP_SIGNALS
from groupstorm.stoppable import run_stoppable
from tests.test_held_signals import Stopped, raising

NUMBERS = list(STOP_SIGNALS)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


class Work:
    """A main task with a task group inside a task group; each task notes how it ended."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self.interrupt = interrupt
        self.ended: list[str] = []

    async def task(self, name: str, begin: Callable[[], None]) -> None:
        try:
            begin()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # closing takes a turn of the loop
            self.ended.append(name)

    async def nested(self) -> None:
        try:
            async with asyncio.TaskGroup() as inner:
                inner.create_task(self.task("innermost", self.interrupt))
                await asyncio.Event().wait()
        finally:
            self.ended.append("inner")

    async def main(self) -> None:
        try:
            async with asyncio.TaskGroup() as outer:
                outer.create_task(self.task("other", lambda: None))
                outer.create_task(self.nested())
                await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            self.ended.append("main")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_in_a_nested_task_lets_every_task_close(number: signal.Signals) -> None:
    work = Work(lambda: send(number))
    with raising(number), pytest.raises(Stopped):
        run_stoppable(work.main)
    assert sorted(work.ended) == ["inner", "innermost", "main", "other"]
    assert work.ended[-1] == "main"


def test_a_signal_in_a_callback_of_the_loop_is_no_error_of_the_loop() -> None:
    def interrupt() -> None:
        asyncio.get_running_loop().call_soon(send, signal.SIGINT)

    work = Work(interrupt)
    with raising(signal.SIGINT), pytest.raises(Stopped):
        run_stoppable(work.main)
    assert work.ended[-1] == "main"


@pytest.mark.timeout(30)
def test_a_signal_while_the_loop_waits_wakes_it() -> None:
    """Nothing else is due: only the signal itself can end the wait."""
    timer = threading.Timer(0.05, send, [signal.SIGINT])
    work = Work(timer.start)
    with raising(signal.SIGINT), pytest.raises(Stopped):
        run_stoppable(work.main)
    timer.join()
    assert work.ended[-1] == "main"


def test_a_second_signal_does_not_stop_the_closing() -> None:
    def twice() -> None:
        send(signal.SIGINT)
        asyncio.get_running_loop().call_soon(send, signal.SIGINT)

    def first_only(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
        raise Stopped

    work = Work(twice)
    before = signal.signal(signal.SIGINT, first_only)
    try:
        with pytest.raises(Stopped):
            run_stoppable(work.main)
    finally:
        signal.signal(signal.SIGINT, before)
    assert work.ended[-1] == "main"


def test_a_signal_in_the_last_step_is_raised_all_the_same() -> None:
    async def main() -> None:
        send(signal.SIGTERM)

    with raising(signal.SIGTERM), pytest.raises(Stopped):
        run_stoppable(main)


def test_after_a_signal_before_the_loop_nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def runner() -> asyncio.Runner:
        send(signal.SIGINT)
        return runner_type()

    runner_type = asyncio.Runner
    monkeypatch.setattr(asyncio, "Runner", runner)
    work = Work(lambda: None)
    with raising(signal.SIGINT), pytest.raises(Stopped):
        run_stoppable(work.main)
    assert work.ended == []


async def failing() -> None:
    raise ValueError("its own")


async def cancelled() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(("main", "error"), [(failing, ValueError), (cancelled, asyncio.CancelledError)])
def test_without_a_signal_it_is_asyncio_run(
    main: Callable[[], Coroutine[Any, Any, None]], error: type[BaseException]
) -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]
    with pytest.raises(error):
        run_stoppable(main)
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_in_another_thread_than_the_main_one() -> None:
    done: list[str] = []

    async def main() -> None:
        done.append("main")

    thread = threading.Thread(target=run_stoppable, args=[main])
    thread.start()
    thread.join()
    assert done == ["main"]
