"""The log of one member alone: its own part in the rebalances, and for how long it had nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from groupstorm.history.rebalances import Row
from groupstorm.wording import counted, listed, seconds

#: Causes of `rejoin_requested` that are no wish of the member's own to join again.
_TOLD, _UNSAID = "group-rebalancing", "unknown"
_NOT_AGAIN: Final = frozenset({_TOLD, _UNSAID, "first-join", "left-group"})
_GIVES_UP: Final = frozenset({"partitions_revoked", "partitions_lost"})
_NOT_KNOWN: Final = (
    "Who began the other rounds, who else came and went, and for how long other partitions had no owner, its "
    "log does not say: add the log of the group's coordinator, or of its leaders, which name all members."
)


class Alone(NamedTuple):
    """``told``: how often the member was told that the group rebalances; ``own``: why it joined again itself,
    and how often; ``unsaid``: how often no line says why. ``without_us``: each time that it had no partitions
    between two generations."""

    member: str
    told: int
    own: Mapping[str, int]
    unsaid: int
    without_us: tuple[int, ...]

    @property
    def sentence(self) -> str:
        times = counted(sum(self.own.values()), "time") if self.own else "never"
        causes = f" ({listed(list(self.own))})" if self.own else ""
        unsaid = f", and {counted(self.unsaid, 'time')} for a reason that no line says" if self.unsaid else ""
        text = (
            f"Only {self.member} is heard: it was told {counted(self.told, 'time')} that the group "
            f"rebalances, and joined again {times} of itself{causes}{unsaid}. "
        )
        if self.without_us:
            text += (
                f"It was without partitions {counted(len(self.without_us), 'time')}, for "
                f"{seconds(sum(self.without_us) / 1e6)} in all, {seconds(max(self.without_us) / 1e6)} at the "
                "longest. "
            )
        return text + _NOT_KNOWN


class OneMember:
    """Takes the rows of one group, in their order."""

    def __init__(self) -> None:
        self._logs: set[str] = set()
        self._members: set[str] = set()
        self._causes: Counter[str] = Counter()
        self._owned: set[str] = set()
        self._since_us: int | None = None
        self._without_us: list[int] = []

    def add(self, row: Row) -> None:
        self._logs.update(place.rpartition(":")[0] for place in row.get("evidence") or ())
        event = row["event"]
        if row["source"] != "member" or "member" not in row:
            return
        self._members.add(row["member"])
        if event == "rejoin_requested":
            self._causes[row.get("cause") or _UNSAID] += 1
        elif event in ("member_started", "member_closed", "member_crashed"):
            self._owned.clear()
            self._since_us = None
        elif event == "partitions_assigned":
            self._owned.update(row["partitions"])
            if self._owned and self._since_us is not None:
                self._without_us.append(row["time_us"] - self._since_us)
                self._since_us = None
        elif event in _GIVES_UP and self._owned:
            self._owned.difference_update(row["partitions"])
            if not self._owned and row.get("cause") != "close":
                self._since_us = row["time_us"]

    def found(self) -> Alone | None:
        """None if more logs than one tell of the group, or other members than one."""
        if len(self._logs) != 1 or len(self._members) != 1:
            return None
        own = {cause: count for cause, count in self._causes.items() if cause not in _NOT_AGAIN}
        if not own and not self._causes[_TOLD]:
            return None
        [member] = self._members
        return Alone(member, self._causes[_TOLD], own, self._causes[_UNSAID], tuple(self._without_us))
