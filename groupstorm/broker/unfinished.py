"""The requests that take more than a turn. The broker carries out a turn of each, one after the other."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from groupstorm.broker.apis.api import Done, Encoded, KioMessage, Outcome, milliseconds
from groupstorm.protocol.codec import CodecError, encode_in_turns, release_in_turns
from groupstorm.turns import Turns

#: The work of a turn: some milliseconds.
WORK_PER_TURN = 300


class Turn(NamedTuple):
    """The end of a turn. The last turn of a request has its outcome, or the reason to close the connection.

    ``connection``: whose request it is, None: nobody waits for it.
    """

    connection: int | None
    outcome: Outcome | None = None
    problem: CodecError | None = None


class _Work:
    """The turns that are left."""

    __slots__ = ("connection", "is_long", "turns")

    def __init__(self, connection: int | None) -> None:
        self.connection = connection
        #: It has taken more than a turn.
        self.is_long = False
        self.turns: Turns[Outcome | None]


class Unfinished:
    """The unfinished requests, in the order in which their turns come."""

    def __init__(self) -> None:
        self._waiting: deque[_Work] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, connection: int | None, turns: Turns[Outcome | None]) -> Turn:
        """Carry out the first turn of a request."""
        work = _Work(connection)
        work.turns = self._with_response(work, turns)
        return self._turn(work)

    def next_turn(self) -> Turn:
        return self._turn(self._waiting.popleft())

    def release(self, message: KioMessage) -> None:
        """Nobody uses this long message any more."""
        work = _Work(None)
        work.turns = release_in_turns(message)
        self._waiting.append(work)

    def _turn(self, work: _Work) -> Turn:
        left = WORK_PER_TURN
        try:
            while left > 0:
                left -= next(work.turns)
        except StopIteration as end:
            return Turn(work.connection, end.value)
        except CodecError as problem:
            return Turn(work.connection, problem=problem)
        work.is_long = True
        self._waiting.append(work)
        return Turn(work.connection)

    def _with_response(self, work: _Work, turns: Turns[Outcome | None]) -> Turns[Outcome | None]:
        """The outcome of the turns. The response to a long request is long, too: it is encoded in turns."""
        outcome = yield from turns
        if not work.is_long or not isinstance(outcome, Done):
            return outcome
        body = yield from encode_in_turns(outcome.response)
        self.release(outcome.response)
        return Encoded(body, mute_ms(outcome.response))


def mute_ms(response: KioMessage) -> int:
    """For how long the client's quota mutes its connection."""
    throttle = getattr(response, "throttle_time", None)
    return milliseconds(throttle) if throttle else 0
