"""The work of an application on the records that a poll() of its share consumer has returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from groupstorm.share_records.acknowledgement import AcknowledgementBatch
from groupstorm.share_records.ports import TopicPartition
from groupstorm.share_records.states import AcknowledgeType
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.scenario.setting_names import ACKNOWLEDGEMENT, EXPLICIT
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.slow_work import CRASH, REJECT, RELEASE, Machines
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.record_times import RecordTimes

Acknowledgements = dict[TopicPartition, list[AcknowledgementBatch]]
_KINDS: Final = {RELEASE: AcknowledgeType.RELEASE, REJECT: AcknowledgeType.REJECT}


class Records(NamedTuple):
    """Records that follow each other in one partition, from offset ``first`` to ``last``."""

    partition: TopicPartition
    first: int
    last: int

    @property
    def count_of(self) -> int:
        return self.last - self.first + 1


class Stretch(NamedTuple):
    """Records that the application works on one after the other, until ``end_us``."""

    records: Records
    begin_us: int
    end_us: int
    kind: AcknowledgeType = AcknowledgeType.ACCEPT


class BatchOfWork:
    """The records of one poll(). ``moved_us``: by how much the application is late with them.

    ``dies``: the last of the stretches kills the process.
    """

    def __init__(self, records: Sequence[Records], stretches: Sequence[Stretch], dies: bool) -> None:
        self.records = records
        self.dies = dies
        self.moved_us = 0
        self._stretches = stretches

    @property
    def count(self) -> int:
        return sum([one.count_of for one in self.records])

    @property
    def end_us(self) -> int:
        return self._stretches[-1].end_us + self.moved_us

    def acknowledged(self, *, each: bool, by_us: int | None = None) -> Acknowledgements:
        """The acknowledgements of the records; ``each``: one by one as they are done, by this time.

        If not, all of them are accepted, whatever came of each.
        """
        if not each:
            return _grouped([(one, AcknowledgeType.ACCEPT) for one in self.records])
        done = []
        for records, begin_us, end_us, kind in self._stretches:
            count = records.count_of
            if by_us is not None and by_us < end_us + self.moved_us:
                passed_us = max(0, by_us - begin_us - self.moved_us)
                count = min(count, passed_us * count // max(1, end_us - begin_us))
            if count:
                done.append((records._replace(last=records.first + count - 1), kind))
        return _grouped(done)


def _grouped(done: list[tuple[Records, AcknowledgeType]]) -> Acknowledgements:
    found: Acknowledgements = {}
    for (partition, first, last), kind in sorted(done):
        batches = found.setdefault(partition, [])
        types = [int(kind)]
        if batches and batches[-1].last_offset == first - 1 and batches[-1].types == types:
            batches[-1] = batches[-1]._replace(last_offset=last)
        else:
            batches.append(AcknowledgementBatch(first, last, types))
    return found


class ShareWork:
    """The application of one process: how long it works on which records, and what it acknowledges."""

    def __init__(
        self, environment: Environment, settings: Settings, index: int, name: str, incarnation: int
    ) -> None:
        self._slow = environment.slow_records
        self._times = RecordTimes(
            settings.distribution("process_ms"),
            settings.integer("concurrency"),
            Stream(environment.seed, "records", name, incarnation),
            factor=settings.of_type("machines", Machines).factor(index),
        )
        self.acknowledges_each = settings.choice(ACKNOWLEDGEMENT) == EXPLICIT
        self._batches = 0
        #: The next batch takes so much longer.
        self.delay_us = 0

    def begin(self, now_us: int, buffer: list[Records], most: int) -> BatchOfWork:
        """Take up to ``most`` records from the front of the buffer and work on them from now on."""
        taken: list[Records] = []
        while buffer and most:
            one = buffer[0]
            if one.count_of > most:
                taken.append(one._replace(last=one.first + most - 1))
                buffer[0] = one._replace(first=one.first + most)
                break
            taken.append(buffer.pop(0))
            most -= one.count_of
        self._batches += 1
        at_us, self.delay_us = now_us + self.delay_us, 0
        stretches: list[Stretch] = []
        for records in taken:
            for stretch in self._stretches(records, at_us, len(stretches)):
                stretches.append(stretch)
                at_us = stretch.end_us
                if self._outcome(stretch.records) == CRASH:
                    return BatchOfWork(taken, stretches, dies=True)
        return BatchOfWork(taken, stretches, dies=False)

    def _stretches(self, records: Records, at_us: int, slot: int) -> list[Stretch]:
        """The records in stretches of equal pace: a slow one is a stretch of its own."""
        found: list[Stretch] = []
        partition, begun, last = records
        slow = () if self._slow is None else self._slow.extra_us(partition, begun, last + 1)
        for offset, _ in slow:
            if begun < offset:
                part = Records(partition, begun, offset - 1)
                end_us = at_us + self._times.records_us(part.count_of, self._batches, slot + len(found))
                found.append(Stretch(part, at_us, end_us))
                at_us = end_us
            assert self._slow is not None
            one = Records(partition, offset, offset)
            work_us, outcome = self._slow.entry(partition, offset)
            found.append(Stretch(one, at_us, at_us + work_us, _KINDS.get(outcome, AcknowledgeType.ACCEPT)))
            at_us, begun = at_us + work_us, offset + 1
        if begun <= last:
            part = Records(partition, begun, last) if found else records
            end_us = at_us + self._times.records_us(part.count_of, self._batches, slot + len(found))
            found.append(Stretch(part, at_us, end_us))
        return found

    def _outcome(self, records: Records) -> str:
        if self._slow is None or records.first != records.last:
            return ""
        return self._slow.entry(records.partition, records.first)[1]
