"""The owner and the processing members of each partition: gaps, pauses, dual owners, and their sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from groupstorm.history.causes import Origin
from groupstorm.history.frontier import Frontier
from groupstorm.history.gaps import ClosedGap, Gaps, GapSums, OwnershipListener, Partition
from groupstorm.history.lag import LagCurve
from groupstorm.history.records import Line, Owner, RecordModel, RecordSums

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_OTHER: Final = Origin.OTHER


class Ownership:
    """Follows owner intervals. All calls come in the order of time; partitions go by name.

    A gap begins when the interval of the last owner ends, or the partition is created. It ends when a member
    is assigned the partition, the partition is deleted, or the trace ends. Gaps count from `begin` on.

    ``positions`` are the records at which processing starts or stops; they count from the first row on that
    says that there are records. An assignment to a member that owns the partition already, and the end
    or pause of an interval that is not open, change nothing.
    """

    def __init__(self, listener: OwnershipListener | None = None) -> None:
        self._listener = listener
        self.partitions: dict[str, Partition] = {}
        self.begun_us: int | None = None
        self.last_change_us: int | None = None
        self.revoked_and_returned = 0
        self.dual_us = 0
        self.paused_us = 0
        self.nobody_us = 0
        #: Partitions that changed hands since a reader of the set cleared it.
        self.touched: set[Partition] = set()
        self.records: RecordSums | None = None
        self.lag: LagCurve | None = None
        self.model = RecordModel(0, 0)
        self._gaps = GapSums()
        self._owned = 0
        self._processing = 0
        self._nobody_from_us: int | None = None
        #: Partitions that were deleted: one that is created again goes on counting its gaps.
        self._gone: dict[str, Partition] = {}
        #: Since when the group does not exist: it was deleted, or its coordinator has ended.
        self._deleted_us: int | None = None

    def begin_scenario(self, record_rate: int, process_rate: int, now_us: int) -> None:
        """The rates of the trace's first row, in records per partition and second."""
        self.model = RecordModel(record_rate, process_rate)
        if record_rate:
            self._follow_records(now_us)

    def create(self, names: Iterable[str], now_us: int) -> None:
        """Partitions exist from now on."""
        for name in names:
            if name in self.partitions:
                continue
            partition = self._gone.pop(name) if name in self._gone else Partition(name, now_us)
            self.partitions[name] = partition
            partition.accounted_us, partition.gap_origin = now_us, _OTHER
            if self.begun_us is not None:
                partition.gap_from_us = partition.gap_since_us = now_us
                partition.gap_member = None
                partition.gap_callback_us = 0
            if self.lag is not None:
                partition.frontier = self.lag.create(name, now_us, self.model.log(name))

    def delete(self, names: Iterable[str], now_us: int) -> None:
        """Partitions exist no more: intervals and gaps of theirs end, and they need no owner."""
        for name in names:
            partition = self.partitions.get(name)
            if partition is None:
                continue
            for owner in [*partition.owners]:
                if self._listener is not None:
                    self._listener.interval_ended(name, owner.member, None)
                position = self._position(partition, owner, now_us)
                self._end(partition, owner, position, 0, now_us)
                if not owner.paused:
                    self._stop([partition], [owner], [position], now_us)
            if partition.gap_from_us is not None:
                self._close_gap(partition, partition.gap_from_us, None, 0, now_us)
            partition.revoked_from.clear()
            self._gone[name] = self.partitions.pop(name)
            self.model.forget_log(name)
            if self.records is not None and self.lag is not None:
                self.records.forget(name)
                self.lag.delete(name, now_us)
                partition.frontier, partition.has_records = None, False
        self._see_completion(now_us)

    def assign(
        self,
        member: str,
        names: Sequence[str],
        positions: Sequence[int] | None,
        callback_us: int,
        now_us: int,
    ) -> None:
        """``member`` fetches them from now on; its callback took ``callback_us``."""
        begun: list[Owner] = []
        taken: list[Partition] = []
        partitions, records, listener, touched = self.partitions, self.records, self._listener, self.touched
        process_rate = self.model.process_rate
        for index, name in enumerate(names):
            if name not in partitions:
                self.create((name,), now_us)
            partition = partitions[name]
            owners = partition.owners
            if owners:
                if _owner(partition, member) is not None:
                    continue
                self._account(partition, now_us)
            else:
                partition.accounted_us = now_us
                self._owned += 1
            position = positions[index] if positions is not None else 0
            if records is not None and partition.frontier is not None and not partition.has_records:
                partition.has_records = True
                first = partition.frontier.first_counted(position, now_us)
                records.begin(name, position, first, begins_group=self._waits_since_start(partition))
            if partition.gap_from_us is not None:
                self._close_gap(partition, partition.gap_from_us, member, callback_us, now_us)
            if partition.revoked_from:
                self.revoked_and_returned += partition.revoked_from.count(member)
                partition.revoked_from.clear()
            owner = Owner(member, position, position, now_us, process_rate)
            owners.append(owner)
            begun.append(owner)
            taken.append(partition)
            partition.processing += 1
            touched.add(partition)
            if listener is not None:
                listener.interval_begun(name, member, position if positions is not None else None)
        if begun:
            self.last_change_us = now_us
            self._start(taken, begun, now_us)
        self._see_completion(now_us)

    def end(
        self,
        member: str,
        names: Sequence[str],
        positions: Sequence[int] | None,
        now_us: int,
        callback_us: int = 0,
        *,
        revoked: bool = False,
        origin: Origin = _OTHER,
    ) -> None:
        """``member`` has stopped processing them; a callback of ``callback_us`` begins.

        ``revoked``: it gave them up for the group's sake, so that getting them back would be a waste.
        ``origin``: what began the time without an owner, if one begins now.
        """
        partitions, listener = self.partitions, self._listener
        left: list[Partition] = []
        stopped: list[Owner] = []
        reached: list[int] = []
        for index, name in enumerate(names):
            if name not in partitions:
                continue
            partition = partitions[name]
            owner = _owner(partition, member)
            if owner is None:
                continue
            if revoked:
                partition.revoked_from.append(member)
            partition.gap_origin = origin
            position = positions[index] if positions is not None else 0
            if listener is not None:
                listener.interval_ended(name, member, position if positions is not None else None)
            if not owner.paused:
                left.append(partition)
                stopped.append(owner)
                reached.append(position)
            self._end(partition, owner, position, callback_us, now_us)
        if stopped:
            self._stop(left, stopped, reached, now_us)

    def owns(self, member: str, names: Iterable[str]) -> bool:
        """Whether the member owns all of these partitions."""
        for name in names:
            partition = self.partitions.get(name)
            if partition is None or _owner(partition, member) is None:
                return False
        return True

    def pause(
        self, member: str, names: Sequence[str], positions: Sequence[int] | None, now_us: int, on: bool = True
    ) -> None:
        """``member`` stands still, owning them, or (``on`` False) goes on."""
        for index, name in enumerate(names):
            partition = self.partitions.get(name)
            owner = None if partition is None else _owner(partition, member)
            if partition is None or owner is None or owner.paused is on:
                continue
            position = positions[index] if positions is not None else 0
            self._account(partition, now_us)
            owner.paused = on
            if on:
                partition.processing -= 1
                self._stop([partition], [owner], [position], now_us)
                owner.go_on(position, now_us, owner.rate)
            else:
                partition.processing += 1
                owner.go_on(position, now_us, owner.rate)
                self._start([partition], [owner], now_us)

    def change_processing(
        self,
        member: str,
        names: Sequence[str],
        positions: Sequence[int],
        rates: Sequence[int],
        now_us: int,
    ) -> None:
        """``member`` goes on from ``positions`` at ``rates`` if it processes the partitions."""
        partitions = self.partitions
        changed: list[Partition] = []
        lines: list[tuple[Owner, int, int]] = []
        for name, position, rate in zip(names, positions, rates, strict=True):
            if name not in partitions:
                continue
            partition = partitions[name]
            owner = _owner(partition, member)
            if owner is None or owner.paused:
                continue
            changed.append(partition)
            lines.append((owner, position, rate))
        if self.lag is not None and changed:
            self.lag.reach(now_us, _frontiers(changed), [position for _, position, _ in lines])
        for owner, position, rate in lines:
            owner.go_on(position, now_us, rate)

    def change_logs(
        self, names: Sequence[str], positions: Sequence[int], rates: Sequence[int], now_us: int
    ) -> None:
        """The logs of the partitions end at ``positions`` and grow by ``rates``."""
        if self.lag is None and any(rates):
            self._follow_records(now_us)
        for name, position, rate in zip(names, positions, rates, strict=True):
            log = Line(position, now_us, rate)
            self.model.change_log(name, log)
            if self.lag is not None and name in self.partitions:
                self.lag.change_log(name, log)

    def group_deleted(self, now_us: int) -> None:
        """The group does not exist from now on: its partitions are no longer un-owned."""
        if self._deleted_us is None:
            self._deleted_us = now_us

    def group_created(self, now_us: int) -> None:
        """The group exists (again): gaps that are open go on."""
        deleted_us, self._deleted_us = self._deleted_us, None
        if deleted_us is None:
            return
        for partition in self.partitions.values():
            if partition.gap_from_us is not None:
                partition.gap_from_us += now_us - max(deleted_us, partition.gap_from_us)
        if self._nobody_from_us is not None:
            self._nobody_from_us += now_us - max(deleted_us, self._nobody_from_us)

    def begin_window(self, from_us: int) -> None:
        """Drop all sums so far; gaps and pauses that last are counted from ``from_us`` on."""
        for partition in self.partitions.values():
            self._account(partition, from_us)
            if partition.gap_from_us is not None:
                passed_us = from_us - partition.gap_from_us
                partition.gap_callback_us = max(0, partition.gap_callback_us - passed_us)
                partition.gap_from_us = from_us
            partition.longest_gap_us = 0
        for partition in self._gone.values():
            partition.longest_gap_us = 0
        self.revoked_and_returned = self.dual_us = self.paused_us = self.nobody_us = 0
        self._gaps = GapSums()
        self.last_change_us = None
        if self._nobody_from_us is not None:
            self._nobody_from_us = from_us
        if self.lag is None or self.records is None:
            return
        self.lag.begin_window(from_us)
        for partition in self.partitions.values():
            for owner in partition.owners:
                owner.counted_from = self._position(partition, owner, from_us)
        self.records.begin_window()

    def finish(self, end_us: int) -> None:
        """The trace ends: open intervals and gaps last until now."""
        for partition in self.partitions.values():
            self._account(partition, end_us)
            if partition.gap_from_us is not None:
                self._close_gap(partition, partition.gap_from_us, None, 0, end_us)
            if self._listener is not None:
                for owner in partition.owners:
                    reached = self._position(partition, owner, end_us)
                    self._listener.interval_ended(partition.name, owner.member, reached)
            if self.records is None:
                continue
            for owner in partition.owners:
                reached = self._position(partition, owner, end_us)
                self.records.end(partition.name, owner.first_position, reached, owner.counted_from)
        if self._nobody_from_us is not None:
            self.nobody_us += self._existing_until(end_us, self._nobody_from_us) - self._nobody_from_us

    def _follow_records(self, now_us: int) -> None:
        """There are records from now on: count them and their lag. Until now nobody has processed any."""
        self.records, self.lag = RecordSums(), LagCurve()
        for partition in self.partitions.values():
            partition.frontier = self.lag.create(partition.name, now_us, self.model.log(partition.name))
            for owner in partition.owners:
                position = owner.first_position
                partition.has_records = True
                self.records.begin(partition.name, position, position, begins_group=False)
                if not owner.paused:
                    owner.from_us = now_us
                    self.lag.start(now_us, [partition.frontier], [owner])
        if self.begun_us is not None:
            self.lag.begin_peak(now_us)

    def _position(self, partition: Partition, owner: Owner, now_us: int) -> int:
        """Where an owner stands by the model."""
        if owner.paused:
            return owner.position
        return self.model.position(partition.name, owner, now_us)

    def _existing_until(self, now_us: int, from_us: int) -> int:
        """The end of a time that began at ``from_us``: now, or when the group was deleted."""
        return now_us if self._deleted_us is None else min(now_us, max(self._deleted_us, from_us))

    @property
    def unowned_count(self) -> int | None:
        """The number of partitions without an owner at the present row.

        None before they count, and while the group does not exist.
        """
        if self.begun_us is None or self._deleted_us is not None:
            return None
        return len(self.partitions) - self._owned

    def unowned(self) -> Gaps | None:
        """The gaps; None if they never began to count."""
        if self.begun_us is None:
            return None
        return self._gaps.figures((*self._gone.values(), *self.partitions.values()))

    def unowned_now(self, now_us: int) -> dict[str, int] | None:
        """Partition -> since when it has had no owner; None if they never began to count."""
        if self.begun_us is None:
            return None
        if self._deleted_us is not None and self._deleted_us <= now_us:
            return {}
        return {
            name: partition.gap_from_us
            for name, partition in self.partitions.items()
            if partition.gap_from_us is not None
        }

    def _end(self, partition: Partition, owner: Owner, position: int, callback_us: int, now_us: int) -> None:
        if partition.processing == 1:
            partition.accounted_us = now_us
        else:
            self._account(partition, now_us)
        if not owner.paused:
            partition.processing -= 1
        if self.records is not None:
            self.records.end(partition.name, owner.first_position, position, owner.counted_from)
        partition.owners.remove(owner)
        self.touched.add(partition)
        self.last_change_us = now_us
        if partition.owners:
            return
        self._owned -= 1
        if self.begun_us is not None:
            partition.gap_from_us = partition.gap_since_us = now_us
            partition.gap_member = owner.member
            partition.gap_callback_us = callback_us

    def _start(self, partitions: list[Partition], owners: list[Owner], now_us: int) -> None:
        """Owners begin, or go on, to process these partitions."""
        self._processing += len(owners)
        if self._nobody_from_us is not None:
            self.nobody_us += self._existing_until(now_us, self._nobody_from_us) - self._nobody_from_us
            self._nobody_from_us = None
        if self.lag is not None:
            self.lag.start(now_us, _frontiers(partitions), owners)

    def _stop(
        self, partitions: list[Partition], owners: list[Owner], reached: list[int], now_us: int
    ) -> None:
        """Owners that processed these partitions have stopped, each at a position."""
        if self.lag is not None:
            self.lag.stop(now_us, _frontiers(partitions), owners, reached)
        self._processing -= len(owners)
        if self._processing == 0 and self.begun_us is not None:
            self._nobody_from_us = now_us

    def _see_completion(self, now_us: int) -> None:
        """If every partition has an owner, begin."""
        if self.begun_us is None and self._owned == len(self.partitions) > 0:
            self.begin(now_us)

    def begin(self, now_us: int) -> None:
        """Gaps, pauses and lag count from now on, unless they do already."""
        if self.begun_us is not None:
            return
        for partition in self.partitions.values():
            self._account(partition, now_us)
            if not partition.owners:
                partition.gap_from_us = partition.gap_since_us = now_us
        self.begun_us = now_us
        if self._processing == 0:
            self._nobody_from_us = now_us
        if self.lag is not None:
            self.lag.begin_peak(now_us)

    def _account(self, partition: Partition, now_us: int) -> None:
        """Book the time since the partition's last change."""
        passed_us = now_us - partition.accounted_us
        partition.accounted_us = now_us
        if partition.processing > 1:
            self.dual_us += passed_us
        elif partition.owners and not partition.processing and self.begun_us is not None:
            self.paused_us += passed_us

    def _waits_since_start(self, partition: Partition) -> bool:
        """Whether nobody has had the partition since the group began."""
        return partition.gap_member is None and partition.gap_since_us == self.begun_us

    def _close_gap(
        self, partition: Partition, from_us: int, member: str | None, callback_us: int, now_us: int
    ) -> None:
        """The gap since ``from_us`` ends with the new owner ``member``, or None at the end of the trace."""
        partition.gap_from_us = None
        until_us = now_us if self._deleted_us is None else self._existing_until(now_us, from_us)
        gap_us = until_us - from_us
        if self._listener is not None:
            old, since_us = partition.gap_member, partition.gap_since_us
            is_first = self._waits_since_start(partition)
            gap = ClosedGap(partition.name, from_us, now_us, gap_us, old, member, is_first, since_us)
            self._listener.gap_closed(gap)
        if gap_us == 0:
            return
        self._gaps.add(partition, gap_us)
        if member is not None and member == partition.gap_member:
            self.paused_us += gap_us
            return
        if not callback_us and not partition.gap_callback_us:
            return
        revoking_us = min(gap_us, partition.gap_callback_us)
        self.paused_us += revoking_us + min(gap_us - revoking_us, callback_us)


def _frontiers(partitions: list[Partition]) -> list[Frontier]:
    """Their parts of the lag, which they have as soon as there are records."""
    return [one.frontier for one in partitions if one.frontier is not None]


def _owner(partition: Partition, member: str) -> Owner | None:
    """The open interval of the member, if there is one."""
    for owner in partition.owners:
        if owner.member == member:
            return owner
    return None
