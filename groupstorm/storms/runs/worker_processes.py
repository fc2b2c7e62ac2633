"""Calls of one function in parallel processes, which never outlive the process that started them.

multiprocessing is imported where processes start: a browser has none, and a single run needs none.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from groupstorm.held_signals import stop_signals_held
from groupstorm.problems import ExpectedError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def map_in_processes(
    function: Callable[[Argument], Result], arguments: Sequence[Argument], processes: int
) -> Generator[Result]:
    """``function`` of each argument, in their order, computed by ``processes`` processes.

    An error of `groupstorm.problems` in one of them is raised here. However the iteration ends, the
    processes are gone when it has ended.
    """
    results: dict[int, Result] = {}
    following = 0
    with closing(results_as_they_come(function, arguments, processes)) as coming:
        for number, result in coming:
            results[number] = result
            while following in results:
                yield results.pop(following)
                following += 1


def results_as_they_come(
    function: Callable[[Argument], Result], arguments: Sequence[Argument], processes: int
) -> Generator[tuple[int, Result], None, None]:
    """As `map_in_processes`, but each result with its argument's place, as soon as it is there."""
    waiting = iter(range(len(arguments)))
    with _workers(function, min(processes, len(arguments))) as connections:
        working = {connection: _give(connection, waiting, arguments) for connection in connections}
        for _ in range(len(arguments)):  # an iteration would ask for an end that need not come
            connection = _first_answer([one for one, place in working.items() if place is not None])
            place, result = working[connection], _received(connection)
            assert place is not None
            working[connection] = _give(connection, waiting, arguments)
            yield place, result


def _first_answer(busy: Sequence[Connection]) -> Connection:
    """A process that has answered."""
    from multiprocessing.connection import Connection, wait

    connection = wait(busy)[0]
    assert isinstance(connection, Connection)
    return connection


def _give(connection: Connection, waiting: Iterator[int], arguments: Sequence[Any]) -> int | None:
    """Send the next argument and return its number; None if there is no next one."""
    number = next(waiting, None)
    if number is not None:
        connection.send(arguments[number])
    return number


def _received(connection: Connection) -> Any:
    try:
        result, problem = connection.recv()
    except EOFError:
        raise RuntimeError("a worker process has ended in the middle of a run") from None
    if problem is not None:
        raise problem
    return result


@contextmanager
def _workers(function: Callable[[Any], Any], count: int) -> Iterator[list[Connection]]:
    """``count`` processes that answer arguments with results, killed and gone behind the block."""
    from multiprocessing import get_context, resource_tracker

    context = get_context("spawn")
    # Its start unblocks SIGINT and SIGTERM, which must not happen while they are held for the first worker.
    resource_tracker.ensure_running()
    workers = []
    try:
        for _ in range(count):
            with stop_signals_held(), _nameless_script():  # between its start and our list, too
                ours, theirs = context.Pipe()
                worker = context.Process(target=_work, args=(function, theirs), daemon=True)
                worker.start()
                workers.append((worker, ours))
            theirs.close()
        yield [connection for _, connection in workers]
    finally:
        for worker, connection in workers:
            worker.kill()
            connection.close()
        for worker, _ in workers:
            worker.join()


@contextmanager
def _nameless_script() -> Iterator[None]:
    """Keep a process that starts in the block from importing the user's script, which would start it again.

    It runs functions of this package. multiprocessing finds the script by the module `__main__`.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _work(function: Callable[[Any], Any], orders: Connection) -> None:
    """In the worker: compute until nobody asks any more."""
    end_with_parent()
    with suppress(EOFError, BrokenPipeError):
        while True:
            argument = orders.recv()
            try:
                orders.send((function(argument), None))
            except ExpectedError as problem:
                orders.send((None, problem))


def end_with_parent() -> None:
    """From here on this process ends when its parent does, which cannot end it if it is killed itself."""
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
