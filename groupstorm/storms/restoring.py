"""The state that a process keeps of what it owns: joins, aggregates (`restore_ms`)."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition


class State:
    """A process has the state of the partitions of its last assignment, even while it gives them up for
    a moment, as eager members do; what was somewhere else in between has to be rebuilt."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: tuple[TopicPartition, ...] = ()

    def assigned(self, owned: tuple[TopicPartition, ...]) -> int:
        """All that the process owns from now on; of how many partitions the state is to be rebuilt."""
        before, self._of = self._of, owned
        return 0 if owned is before else len(set(owned).difference(before))
