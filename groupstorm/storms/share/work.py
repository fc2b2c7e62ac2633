"""The two sides of a share consumer: its connection to the leader of its partitions, with its share session,
and the work of its application on the records that a poll() has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.acknowledgement import AcknowledgementBatch
from groupstorm.share_records.messages import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Request,
    Response,
    ShareAcknowledge,
    ShareFetch,
    ShareFetchResponse,
)
from groupstorm.share_records.ports import TopicPartition
from groupstorm.share_records.sessions import next_epoch
from groupstorm.share_records.states import AcknowledgeType
from groupstorm.storms.scenario.member_rules import CRASH, REJECT, RELEASE, Machines
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.scenario.setting_names import EXPLICIT
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.share.leader import CLOSED, RELEASED, Holder, Sent, ShareLeader
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
        self.acknowledges_each = settings.choice("share.acknowledgement.mode") == EXPLICIT
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


Acknowledged = Mapping[TopicPartition, Sequence[AcknowledgementBatch]]


class FetchSettings(NamedTuple):
    max_records: int
    max_wait_ms: int
    has_record_limit: bool


class ShareLink:
    """One request is under way at a time; ``is_free``: none is. ``broken_until_us``: without connection."""

    def __init__(
        self,
        environment: Environment,
        leader: ShareLeader,
        holder: Holder,
        member_id: str,
        incarnation: int,
        settings: FetchSettings,
    ) -> None:
        self._clock = environment.clock
        self._latency = environment.network.latency
        self._group = environment.group
        self._leader = leader
        self._holder = holder
        self._member_id = member_id
        self._incarnation = incarnation
        self._settings = settings
        self._draws = Stream(environment.seed, "share-net", holder.name, incarnation)
        self._sent = 0
        self._connections = 0
        self._epoch = INITIAL_EPOCH
        #: The partitions of the session.
        self._session: frozenset[TopicPartition] = frozenset()
        self.is_free = True
        self.broken_until_us = 0

    @property
    def connection_id(self) -> str:
        return f"{self._holder.name}/{self._incarnation}/{self._connections}"

    @property
    def has_session(self) -> bool:
        return self._epoch != INITIAL_EPOCH

    def fetch(
        self, wanted: Sequence[TopicPartition], acks: Acknowledged, receive: Callable[[Response], None]
    ) -> None:
        """Fetch from these partitions. What an ended session had not acknowledged was released."""
        acks = acks if self.has_session else {}
        added = [one for one in wanted if one not in self._session]
        forgotten = sorted(self._session.difference(wanted))
        partitions = {one: acks.get(one, ()) for one in (*added, *acks)}
        self._session = frozenset(wanted)
        settings = self._settings
        request = ShareFetch(
            self._group,
            self._member_id,
            self._epoch,
            partitions,
            forgotten=forgotten,
            max_wait_ms=settings.max_wait_ms,
            max_records=settings.max_records,
            batch_size=settings.max_records,
            has_record_limit=settings.has_record_limit,
            connection=self.connection_id,
        )
        self._send(request, wanted, receive, RELEASED)

    def acknowledge(
        self, acks: Acknowledged, receive: Callable[[Response], None], *, is_final: bool = False
    ) -> None:
        """Acknowledge records; the final request ends the session."""
        epoch = FINAL_EPOCH if is_final else self._epoch
        request = ShareAcknowledge(self._group, self._member_id, epoch, acks)
        self._send(request, (), receive, CLOSED if is_final else RELEASED)

    def break_for(self, duration_us: int) -> bool:
        """The connection is gone, and there is none for so long. Returns whether a request was under way."""
        self._leader.disconnect(self._holder)
        self._connections += 1
        self._epoch, self._session = INITIAL_EPOCH, frozenset()
        self.broken_until_us = max(self.broken_until_us, self._clock.now_us + duration_us)
        waited, self.is_free = not self.is_free, True
        return waited

    def _send(
        self,
        request: Request,
        partitions: Sequence[TopicPartition],
        receive: Callable[[Response], None],
        returns: str,
    ) -> None:
        self.is_free = False
        self._sent += 1
        there, back = self._draws.pair(self._sent)
        answered = partial(self._answered, self._connections, back, request, receive)
        sent = Sent(self._holder, request, partitions, answered)
        self._clock.after(self._latency.at(there), self._arrive, self._connections, sent, returns)

    def _arrive(self, connection: int, sent: Sent, returns: str) -> None:
        if connection == self._connections:
            self._leader.handle(sent, returns)

    def _answered(
        self,
        connection: int,
        draw: int,
        request: Request,
        receive: Callable[[Response], None],
        response: Response,
    ) -> None:
        """The leader has answered; ``draw``: of the way back."""
        delay_us = self._latency.at(draw)
        self._clock.after(delay_us, self._deliver, connection, request, receive, response)

    def _deliver(
        self, connection: int, request: Request, receive: Callable[[Response], None], response: Response
    ) -> None:
        if connection == self._connections:
            self._take(request, response)
            receive(response)

    def _take(self, request: Request, response: Response) -> None:
        self.is_free = True
        if request.epoch == FINAL_EPOCH or response.error is not Error.NONE:
            self._epoch, self._session = INITIAL_EPOCH, frozenset()
        else:
            self._epoch = next_epoch(request.epoch)
        if isinstance(response, ShareFetchResponse) and response.error is Error.NONE:
            failed = [one for one, found in response.partitions.items() if found.error is not Error.NONE]
            self._session -= frozenset(failed)
