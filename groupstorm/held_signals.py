"""SIGINT and SIGTERM while a process starts: they are held back until the one that started it knows of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_signals_held() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back for the block; a process that the block starts never receives them.

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
        handlers = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
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
