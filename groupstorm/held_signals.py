"""The signals that stop a command, and how they are held back while a process starts.

They wait until the process that started the other one knows of it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

#: Ctrl-C, the request of a service manager, a closed terminal.
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heeded_stop_signals() -> list[signal.Signals]:
    """The stop signals that have an effect: `nohup` has a process ignore SIGHUP, and that stays so."""
    return [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def leave_stopping_to_parent() -> None:
    """Ignore the stop signals: terminals send them to the parent, too, which ends this process."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def stop_signals_held() -> Iterator[None]:
    """Hold the stop signals back for the block; a process that the block starts never receives them.

    Terminals and service managers send them to every process of a command. The first process decides what
    becomes of the others.
    """
    received: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    # The mask is this thread's alone: if a library has started another one, the signal reaches that, and
    # Python calls the handler in the middle of the block.
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, remember)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            # A signal that came before `remember` was there may have been handled since, and its handler
            # may have put another one in its place, which stays.
            if signal.getsignal(number) is remember:
                signal.signal(number, handler)
        for again in dict.fromkeys(received):
            signal.raise_signal(again)
