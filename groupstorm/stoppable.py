"""Stop signals while asyncio runs: they cancel the main task, so that everything it opened is closed.

The command's handler raises an exception. Raised in the middle of an event loop, it would reach whichever
task runs: one that ends the loop while others are pending, or none, and a callback would be lost. So the
exception waits until the loop is closed. asyncio.Runner does that for Python's own SIGINT handler alone.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from groupstorm.held_signals import STOP_SIGNALS


def run_stoppable(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run ``main`` in a loop of its own, as asyncio.run does; a stop signal cancels it at its next await.

    What the signal's handler raised is raised when the loop is closed, also if ``main`` ended all the same.
    """
    stops: list[BaseException] = []
    tasks: list[asyncio.Task[Any]] = []

    def stop(raised: BaseException) -> None:
        stops.append(raised)
        for task in tasks:
            if not (loop := task.get_loop()).is_closed():
                loop.call_soon_threadsafe(task.cancel)

    async def until_stopped() -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        if not stops:
            await main()

    with _stop_signals_passed_to(stop):
        try:
            with asyncio.Runner() as runner:
                runner.run(until_stopped())
        except asyncio.CancelledError:
            if not stops:
                raise
    if stops:
        raise stops[0]


@contextmanager
def _stop_signals_passed_to(stop: Callable[[BaseException], None]) -> Iterator[None]:
    """For the block, ``stop`` gets the KeyboardInterrupt or SystemExit of a stop signal's handler."""
    if threading.current_thread() is not threading.main_thread():  # Python calls handlers in that one alone
        yield
        return
    handlers = {number: handler for number in STOP_SIGNALS if callable(handler := signal.getsignal(number))}

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handlers[signal.Signals(number)](number, frame)
        except (KeyboardInterrupt, SystemExit) as raised:
            stop(raised)

    for number in handlers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is handle:  # the handler may have installed another one
                signal.signal(number, handler)
