"""Stop signals come behind the block that holds them, whichever thread the system gives them to."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from groupstorm.held_signals import STOP_SIGNALS, stop_signals_held
from tests.processes import run_process

DEADLINE_S = 60


class Stopped(SystemExit):
    pass


@contextmanager
def raising(number: signal.Signals) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(number, stop)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def noticed() -> Iterator[socket.socket]:
    """A socket that has a byte for each signal that Python knows of, whichever thread it came to."""
    ours, pythons = socket.socketpair()
    with ours, pythons:
        pythons.setblocking(False)
        ours.settimeout(DEADLINE_S)
        before = signal.set_wakeup_fd(pythons.fileno())
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(before)


def signal_in_block(
    number: signal.Signals, thread: int, known: socket.socket | None, steps: list[str]
) -> None:
    """Send it to the thread twice; with ``known``, Python knows of each of them before the next."""
    with stop_signals_held():
        for _ in range(2):
            signal.pthread_kill(thread, number)
            if known is not None:
                known.recv(1)
        steps.append("behind it")


@pytest.mark.parametrize("number", STOP_SIGNALS)
@pytest.mark.parametrize("to_other_thread", [False, True])
def test_a_signal_waits_until_the_block_ends(number: signal.Signals, to_other_thread: bool) -> None:
    done, steps = threading.Event(), list[str]()
    other = threading.Thread(target=done.wait, daemon=True)
    other.start()
    receiver = other.ident if to_other_thread else threading.get_ident()
    assert receiver is not None
    try:
        with noticed() as known, raising(number), pytest.raises(Stopped):
            signal_in_block(number, receiver, known if to_other_thread else None, steps)
    finally:
        done.set()
    assert steps == ["behind it"]


def test_a_handler_that_ran_before_the_block_held_anything_decides_what_comes_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread receives the signal while this one blocks its own; its handler ignores all others."""
    ignored: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, lambda again, _: ignored.append(again))
        raise Stopped

    def receive() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.raise_signal(signal.SIGINT)

    set_mask = signal.pthread_sigmask

    def set_mask_slowly(how: int, numbers: Iterable[int]) -> set[int]:
        before = set_mask(how, numbers)
        if numbers and threading.current_thread() is threading.main_thread() and not started:
            started.append(threading.Thread(target=receive))
            started[0].start()
            started[0].join()
        return before

    started: list[threading.Thread] = []
    previous = signal.signal(signal.SIGINT, stop)
    mask = set_mask(signal.SIG_BLOCK, ())
    monkeypatch.setattr(signal, "pthread_sigmask", set_mask_slowly)
    try:
        with pytest.raises(Stopped), stop_signals_held():
            pass
        signal.raise_signal(signal.SIGINT)
        assert ignored == [signal.SIGINT]
        assert set_mask(signal.SIG_BLOCK, ()) == mask
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGINT, previous)


def test_without_a_signal_everything_is_as_before() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_signals_held():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & {signal.SIGINT, signal.SIGTERM}


def test_a_process_of_the_block_never_receives_them() -> None:
    show = "import signal; print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))"
    with stop_signals_held():
        shown = run_process([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == str(sorted(map(int, STOP_SIGNALS)))
