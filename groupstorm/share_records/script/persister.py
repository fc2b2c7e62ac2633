"""The share coordinator and the dead letter queue of a script: calls are answered, held, delayed or fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.coordinator import ShareCoordinator
from groupstorm.share_records.ports import (
    DeadLetter,
    ReadAnswer,
    SharePartitionKey,
    StateBatch,
    WriteState,
)
from groupstorm.share_records.timers import Timers

OK, HOLD, EXCEPTION = "ok", "hold", "exception"

Emit = Callable[..., None]
#: Does a call that was put off; with an error: answers it with that instead.
HeldCall = Callable[[Error | None], None]
Answer = TypeVar("Answer")


class _Way:
    """The way in which calls of one kind are answered: for good, or for the next few calls."""

    def __init__(self) -> None:
        self.mode = OK
        self._next: deque[str] = deque()

    def set(self, mode: str, count: int | None) -> None:
        if count is None:
            self.mode = mode
            self._next.clear()
        else:
            self._next = deque([mode] * count)

    def take(self) -> str:
        return self._next.popleft() if self._next else self.mode


class ScriptPersister:
    """Both the way to the share coordinator and the dead letter queue. ``emit`` prints an event."""

    def __init__(self, coordinator: ShareCoordinator, timers: Timers, delay_ms: int, emit: Emit) -> None:
        self.ways = {kind: _Way() for kind in ("write", "read", "dlq")}
        self._coordinator = coordinator
        self._timers = timers
        self._delay_ms = delay_ms
        self._emit = emit
        self._held: deque[HeldCall] = deque()

    def restart(self, timers: Timers) -> None:
        """The broker is gone, and its calls with it."""
        self._timers = timers
        self._held.clear()

    def release(self, count: int | None, error: Error | None) -> None:
        """Work on the calls that are held now, the oldest first."""
        held = len(self._held)
        for _ in range(held if count is None else min(count, held)):
            self._held.popleft()(error)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[ReadAnswer | None], None]
    ) -> None:
        def work(error: Error | None) -> tuple[ReadAnswer, dict[str, Any]]:
            coordinator = self._coordinator
            answer, record = (
                coordinator.read(key, leader_epoch) if error is None else (ReadAnswer(error), None)
            )
            return answer, {"answer": answer.error.name, "record": record, **print_read(answer)}

        self._call("read", key, {"leader_epoch": leader_epoch}, work, done)

    def write(self, request: WriteState, done: Callable[[Error | None], None]) -> None:
        def work(error: Error | None) -> tuple[Error, dict[str, Any]]:
            found, record = self._coordinator.write(request) if error is None else (error, None)
            return found, {"answer": found.name, "record": record}

        batches = [print_batch(batch) for batch in request.batches]
        asked = {"leader_epoch": request.leader_epoch, **request._asdict(), "batches": batches}
        self._call("write", asked.pop("key"), asked, work, done)

    def enqueue(self, letter: DeadLetter, done: Callable[[], None]) -> None:
        key, first, last, count, cause = letter
        where = {"first": first, "last": last}
        show = partial(self._emit, "dlq", key, **where, count=count, cause=cause)
        mode = self.ways["dlq"].take()

        def finish(_error: Error | None) -> None:
            self._emit("dlq_done", key, **where)
            done()

        if mode == HOLD:
            show(answer="HELD")
            self._held.append(finish)
        else:
            show(answer="NONE" if mode == OK else "ERROR")
            done()

    def _call(
        self,
        kind: str,
        key: SharePartitionKey,
        asked: dict[str, Any],
        work: Callable[[Error | None], tuple[Answer, dict[str, Any]]],
        done: Callable[[Answer | None], None],
    ) -> None:
        """Answer a call as its way says. ``work`` gives the answer, and what is shown of it."""

        def answer(show: Emit, error: Error | None) -> None:
            found, fields = work(error)
            show(**fields)
            done(found)

        show = partial(self._emit, kind, key, **asked)
        later = partial(answer, partial(self._emit, f"{kind}_done", key))
        mode = self.ways[kind].take()
        if mode == HOLD:
            show(answer="HELD")
            self._held.append(later)
        elif mode == EXCEPTION:
            show(answer="EXCEPTION")
            done(None)
        elif mode != OK:
            answer(show, Error[mode])
        elif self._delay_ms:
            show(answer="LATER")
            self._timers.schedule(self._delay_ms, partial(later, None))
        else:
            answer(show, None)


def print_read(answer: ReadAnswer) -> dict[str, Any]:
    """The fields behind the error; an answer with an error has none."""
    if answer.error is not Error.NONE:
        return {}
    batches = [print_batch(batch) for batch in answer.batches]
    return {"start": answer.start, "state_epoch": answer.state_epoch, "batches": batches}


def print_batch(batch: StateBatch) -> list[Any]:
    return [batch.first_offset, batch.last_offset, batch.state.name, batch.delivery_count]


def read_way(value: Any) -> tuple[str, int | None]:
    """A mode, and the number of calls for which it holds. Raises ValueError."""
    count = None
    if isinstance(value, Mapping):
        value, count = value.get("mode"), value.get("count")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"{count!r} is no number of calls")
    mode = str(value)
    if mode not in (OK, HOLD, EXCEPTION) and mode not in Error.__members__:
        raise ValueError(f"{value!r} is none of ok, hold, exception, and no error's name")
    return mode, count
