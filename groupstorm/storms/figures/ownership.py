"""Who owns and who processes each partition: gaps, pauses, dual owners, and what follows from them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from groupstorm.storms.figures.lag import LagCurve
from groupstorm.storms.figures.percentiles import percentile
from groupstorm.storms.figures.records import RecordModel, RecordSums


@dataclass(slots=True, eq=False)
class _Owner:
    """One owner interval that is open; positions are of records, None where the trace has none."""

    member: str
    first_position: int
    position: int
    processing_from_us: int
    paused: bool = False


@dataclass(slots=True, eq=False)
class Partition:
    """What is known of one partition while the rows pass by."""

    name: str
    accounted_us: int
    owners: list[_Owner] = field(default_factory=list)  # in the order in which they were assigned
    processing: int = 0
    gap_from_us: int | None = None
    gap_member: str | None = None
    gap_callback_us: int = 0
    #: Members that gave it up since it was assigned last.
    revoked_from: list[str] = field(default_factory=list)

    @property
    def owner(self) -> str | None:
        """The owner; of two, the one that was assigned last."""
        return self.owners[-1].member if self.owners else None


class Ownership:
    """Follows owner intervals. All calls come in the order of time; partitions go by name.

    ``positions`` are the records at which processing starts or stops; they count only if a `RecordModel`
    was given (`follow_records`). An assignment to a member that owns the partition already, and the end
    or pause of an interval that is not open, change nothing.
    """

    def __init__(self) -> None:
        self.partitions: dict[str, Partition] = {}
        self.complete_us: int | None = None
        self.last_change_us: int | None = None
        self.revoked_and_returned = 0
        self.dual_us = 0
        self.paused_us = 0
        self.nobody_us = 0
        self.gaps_us = array("q")
        #: Partitions that changed hands since whoever reads this cleared it.
        self.touched: set[Partition] = set()
        self.records: RecordSums | None = None
        self.lag: LagCurve | None = None
        self._model: RecordModel | None = None
        self._owned = 0
        self._processing = 0
        self._nobody_from_us: int | None = None

    def follow_records(self, model: RecordModel) -> None:
        """Positions are told from now on: count records and lag."""
        self._model, self.records, self.lag = model, RecordSums(), LagCurve(model)

    def create(self, names: Iterable[str], now_us: int) -> None:
        """Partitions exist from now on."""
        for name in names:
            if name in self.partitions:
                continue
            partition = self.partitions[name] = Partition(name, now_us)
            if self.complete_us is not None:
                partition.gap_from_us = now_us
            if self.lag is not None:
                self.lag.create(name, now_us)

    def assign(
        self,
        member: str,
        names: Sequence[str],
        positions: Sequence[int] | None,
        callback_us: int,
        now_us: int,
    ) -> None:
        """``member`` fetches them from now on; its callback took ``callback_us``."""
        for index, name in enumerate(names):
            partition = self.partitions.get(name)
            if partition is None:
                self.create((name,), now_us)
                partition = self.partitions[name]
            if self._find(partition, member) is None:
                position = positions[index] if positions is not None else 0
                self._begin(partition, member, position, callback_us, now_us)
        if self.complete_us is None and self._owned == len(self.partitions) > 0:
            self._complete(now_us)

    def end(
        self,
        member: str,
        names: Sequence[str],
        positions: Sequence[int] | None,
        now_us: int,
        callback_us: int = 0,
        *,
        revoked: bool = False,
    ) -> None:
        """``member`` has stopped processing them; a callback of ``callback_us`` begins.

        ``revoked``: it gave them up for the group's sake, so that getting them back would be a waste.
        """
        for partition, owner, position in self._open(member, names, positions):
            if revoked:
                partition.revoked_from.append(member)
            self._end(partition, owner, position, callback_us, now_us)

    def pause(self, member: str, names: Sequence[str], positions: Sequence[int] | None, now_us: int) -> None:
        """``member`` stands still, owning them."""
        for partition, owner, position in self._open(member, names, positions):
            if not owner.paused:
                self._account(partition, now_us)
                self._stop(partition, owner, position, now_us)
                owner.paused = True

    def resume(self, member: str, names: Sequence[str], positions: Sequence[int] | None, now_us: int) -> None:
        """``member`` goes on."""
        for partition, owner, position in self._open(member, names, positions):
            if owner.paused:
                self._account(partition, now_us)
                self._start(partition, owner, position, now_us)
                owner.paused = False

    def finish(self, end_us: int) -> None:
        """The trace ends: what is open is open until now."""
        for partition in self.partitions.values():
            self._account(partition, end_us)
            self._close_gap(partition, None, 0, end_us)
            if self.records is None or self._model is None:
                continue
            for owner in partition.owners:
                position = owner.position
                if not owner.paused:
                    position = self._model.position(owner.position, owner.processing_from_us, end_us)
                self.records.end(partition.name, owner.first_position, position)
        if self._nobody_from_us is not None:
            self.nobody_us += end_us - self._nobody_from_us

    def unowned(self) -> tuple[int, int, int, int] | None:
        """Over single gaps, in microseconds: sum, longest, median, 95th percentile."""
        if self.complete_us is None:
            return None
        gaps = sorted(self.gaps_us)
        return sum(gaps), gaps[-1] if gaps else 0, percentile(gaps, 50), percentile(gaps, 95)

    def _open(
        self, member: str, names: Sequence[str], positions: Sequence[int] | None
    ) -> Iterator[tuple[Partition, _Owner, int]]:
        """The intervals of ``member`` that are open among ``names``, each with its position."""
        for index, name in enumerate(names):
            partition = self.partitions.get(name)
            owner = None if partition is None else self._find(partition, member)
            if partition is not None and owner is not None:
                yield partition, owner, positions[index] if positions is not None else 0

    @staticmethod
    def _find(partition: Partition, member: str) -> _Owner | None:
        for owner in partition.owners:
            if owner.member == member:
                return owner
        return None

    def _begin(self, partition: Partition, member: str, position: int, callback_us: int, now_us: int) -> None:
        self._account(partition, now_us)
        self._close_gap(partition, member, callback_us, now_us)
        if partition.revoked_from:
            self.revoked_and_returned += partition.revoked_from.count(member)
            partition.revoked_from.clear()
        if not partition.owners:
            self._owned += 1
        owner = _Owner(member, position, position, now_us)
        partition.owners.append(owner)
        if self.records is not None:
            self.records.begin(partition.name, position)
        self._start(partition, owner, position, now_us)
        self.touched.add(partition)
        self.last_change_us = now_us

    def _end(self, partition: Partition, owner: _Owner, position: int, callback_us: int, now_us: int) -> None:
        self._account(partition, now_us)
        if not owner.paused:
            self._stop(partition, owner, position, now_us)
        if self.records is not None:
            self.records.end(partition.name, owner.first_position, position)
        partition.owners.remove(owner)
        self.touched.add(partition)
        self.last_change_us = now_us
        if partition.owners:
            return
        self._owned -= 1
        if self.complete_us is not None:
            partition.gap_from_us = now_us
            partition.gap_member = owner.member
            partition.gap_callback_us = callback_us

    def _start(self, partition: Partition, owner: _Owner, position: int, now_us: int) -> None:
        owner.position, owner.processing_from_us = position, now_us
        partition.processing += 1
        self._processing += 1
        if self._nobody_from_us is not None:
            self.nobody_us += now_us - self._nobody_from_us
            self._nobody_from_us = None
        if self.lag is not None:
            self.lag.start(partition.name, now_us, position)

    def _stop(self, partition: Partition, owner: _Owner, position: int, now_us: int) -> None:
        if self.lag is not None:
            self.lag.stop(partition.name, now_us, (owner.position, owner.processing_from_us), position)
        owner.position = position
        partition.processing -= 1
        self._processing -= 1
        if self._processing == 0 and self.complete_us is not None:
            self._nobody_from_us = now_us

    def _complete(self, now_us: int) -> None:
        """Every partition has an owner for the first time: gaps and pauses count from here."""
        for partition in self.partitions.values():
            self._account(partition, now_us)
        self.complete_us = now_us
        if self._processing == 0:
            self._nobody_from_us = now_us
        if self.lag is not None:
            self.lag.begin_peak()

    def _account(self, partition: Partition, now_us: int) -> None:
        """Book the time since the partition's last change."""
        passed_us = now_us - partition.accounted_us
        partition.accounted_us = now_us
        if partition.processing > 1:
            self.dual_us += passed_us
        elif partition.owners and not partition.processing and self.complete_us is not None:
            self.paused_us += passed_us

    def _close_gap(self, partition: Partition, member: str | None, callback_us: int, now_us: int) -> None:
        """A gap ends with the new owner ``member``, or None at the end of the trace."""
        if partition.gap_from_us is None:
            return
        gap_us = now_us - partition.gap_from_us
        partition.gap_from_us = None
        if gap_us == 0:
            return
        self.gaps_us.append(gap_us)
        if member is not None and member == partition.gap_member:
            self.paused_us += gap_us
            return
        revoking_us = min(gap_us, partition.gap_callback_us)
        self.paused_us += revoking_us + min(gap_us - revoking_us, callback_us)
