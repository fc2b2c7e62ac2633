"""Work on groups that may take many turns. Other groups are served in between; what comes to the same group
waits, so nobody sees a group that is half changed."""

from __future__ import annotations

from collections import deque

from groupstorm.coordinator.consumer.regexes import resolve
from groupstorm.coordinator.consumer.subscriptions import write_resolved
from groupstorm.coordinator.effects import Effects, Unwritten, Write
from groupstorm.coordinator.failures import broken_off
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.writes import submit
from groupstorm.turns import Turns, at_once

#: Work that is no longer than this is carried out at once.
_WORK_AT_ONCE = 300


class LongWork:
    """The unfinished work by group, in the order in which it came. Kafka does all of it at once."""

    def __init__(self, shard: Shard, may_pause: bool) -> None:
        self._shard = shard
        self._may_pause = may_pause
        self._by_group: dict[str, deque[Turns[None]]] = {}
        #: The unwritten changes of the first work of each group, which other groups' writes do not end.
        self._unwritten: dict[str, list[Unwritten]] = {}
        self._new: list[str] = []
        #: The groups whose regular expressions are being resolved.
        self._resolving: set[str] = set()
        shard.carry_out = lambda group, turns: self.carry_out(group, self._submitted(group, turns))

    def carry_out(self, group: str, turns: Turns[None]) -> None:
        """Carry out the work; if it is long, or the group is at work, only a part of it or nothing."""
        if not self._may_pause:
            at_once(turns)
            return
        if group in self._by_group:
            self._by_group[group].append(turns)
            return
        unwritten, left = len(self._shard.since_written), _WORK_AT_ONCE
        for work in turns:
            left -= work
            if left < 0:
                self._by_group[group] = deque([turns])
                self._unwritten[group] = self._shard.since_written[unwritten:]
                del self._shard.since_written[unwritten:]
                self._new.append(group)
                return

    def take_new(self) -> list[Turns[Effects]]:
        """The work that has become long since the last call. The caller carries it out."""
        new, self._new = self._new, []
        long = [self._go_on(group) for group in new]
        return [*long, self.resolve()] if self._shard.background else long

    def finish(self, *groups: str) -> None:
        """Carry out all that is left of the work on these groups, by default of all, because something else
        is about to look at them."""
        for group in groups or tuple(self._by_group):
            while group in self._by_group:
                self._step(group)

    def _go_on(self, group: str) -> Turns[Effects]:
        while group in self._by_group:
            yield self._step(group)
        return self._shard.take_effects()

    def resolve(self) -> Turns[Effects]:
        """Resolve regular expressions, group by group, and then write them. Kafka leaves out a group that is
        being resolved."""
        shard = self._shard
        while shard.background:
            group, regexes, may_match = shard.background.pop(0)
            if group in self._resolving:
                continue
            self._resolving.add(group)
            resolved = yield from resolve(shard.topics, regexes, shard.now_ms, may_match)
            self._resolving.discard(group)
            shard.carry_out(group, write_resolved(shard, group, resolved))
        return shard.take_effects()

    def _submitted(self, group: str, turns: Turns[Write | None]) -> Turns[None]:
        try:
            write = yield from turns
        except Exception as problem:  # noqa: BLE001  # `broken_off` says why
            write = broken_off(self._shard, group, None, problem)
        if write is not None:
            submit(self._shard, write)

    def _step(self, group: str) -> int:
        shard, waiting = self._shard, self._by_group[group]
        others, shard.since_written = shard.since_written, self._unwritten[group]
        try:
            return next(waiting[0])
        except StopIteration:
            waiting.popleft()
            if not waiting:
                del self._by_group[group], self._unwritten[group]
            return 0
        finally:
            others += [] if group in self._by_group else shard.since_written
            shard.since_written = others

    def __bool__(self) -> bool:
        return bool(self._by_group)

    def __contains__(self, group: str) -> bool:
        return group in self._by_group
