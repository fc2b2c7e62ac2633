"""One log -> observations: envelope, prefix, template; and what of the log was not understood."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.imports.details import details, json_fields
from groupstorm.imports.envelopes import Envelope, EnvelopeReader, without_tail
from groupstorm.imports.lines import Log
from groupstorm.imports.observation import Observation
from groupstorm.imports.prefixes import Prefix, Writer, find_prefix
from groupstorm.imports.source import LogSource
from groupstorm.imports.template import Found
from groupstorm.imports.templates.bare import (
    APPEND_REFUSED,
    BROKER_CONFIG,
    EXCEPTIONS,
    WORKER_CONFIG,
)
from groupstorm.imports.templates.catalogues import BARE, BARE_BEGINNING, BROKER_KINDS, CATALOGUES
from groupstorm.imports.times import Instant, to_utc_us

#: Kinds of lines that are understood, and change nothing.
NOTED: Final = "noted"
#: Lines that a message may have behind its first.
_MORE_LINES_MAX: Final = 1_000
_RECORDS = re.compile(r"(?<=\S) (?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ \[Group)")
_VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}|\d+|\"[^\"]*\"|'[^']*'")
#: librdkafka's name of a client: its client id, and which client of the process it is.
_HANDLE = re.compile(r"(?P<client>[^|\s]+)#(?:consumer|producer)-\d+")
#: A thread of Spring, which has a consumer of its own.
_CONTAINER: Final = re.compile(r"\[ *([^\[\]]+-C-\d+)\]")
#: The name of a thread of Kafka Streams begins with its application's id, which is its group, and a UUID.
_STREAMS: Final = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-|$)")
_DEFAULT_CLIENT: Final = "rdkafka"
#: Lines of a client that are kept until one names its group.
_GROUPLESS_MAX: Final = 20
#: The group of lines that name none, and kinds of such lines that say something by themselves.
UNNAMED_GROUP: Final = "(unnamed)"
_TELLING: Final = frozenset(
    {
        *EXCEPTIONS,
        "rd-error",
        "commit-refused",
        "coordinator-lost",
        "kafkajs-answer",
        "kafkajs-crash",
        "kafkajs-joined",
        "kafkajs-rejoin",
        "sarama-fenced",
        "sarama-refused",
        "heartbeat-refused",
        "poll-timeout",
        "rd-fatal",
        "rd-joined",
        "rd-session",
        "rejoin-unnamed",
    }
)
#: What a line has that may be of interest.
_ANCHORS: Final = re.compile(
    b"|".join(
        re.escape(text)
        for text in (
            b"roup",
            b"[thrd:",
            b"stream-",
            b"ConsumerConfig",
            b"KafkaConfig values",
            b"DistributedConfig values",
            b"subscribed topics to",
            b"poll timeout has expired",
            b"min.isr requirement",
            b"partitions assigned",
            b"partitions revoked",
            b"partitions lost",
            b"kafka server: ",
            b"KafkaError{",
            b"Group Coordinator Request failed",
            b"FencedInstanceIdException",
            b"RebalanceInProgressException",
            b"CommitFailedException",
            b"[Sarama]",
            b"] Response ",
            b"] Crash: ",
        )
    )
)
_DECODER = json.JSONDecoder()


class _Open(NamedTuple):
    """A message that further lines may belong to."""

    prefix: Prefix | None
    time_us: int | None
    line: int
    message: str


class LogParser(LogSource):
    """Reads the log of a broker or of a client, line by line. ``tz``: of times that print no zone."""

    def __init__(self, log: Log, number: int, tz: tzinfo = UTC, envelope: Envelope | None = None) -> None:
        super().__init__(log, number)
        self.envelopes = EnvelopeReader(envelope)
        self._tz = tz
        self._now_us: int | None = None
        self._up = self._down = 0
        self._found: list[Observation] = []
        self._open: _Open | None = None
        self._more = 0
        self._groups: dict[str, str] = {}
        #: The client that lines belong to that name none: librdkafka's handle, or the log.
        self._name = Path(log.name).name.partition(".")[0]
        self._handle = self._client = self._name
        #: By handle: lines before the first that names the client's group.
        self._groupless: dict[str, list[Observation]] = {}
        #: The last client of Java's, and its group: an exception that is logged after its line is its own.
        self._java: tuple[str, str] | None = None

    @property
    def newest_first(self) -> bool:
        return self._down > self._up

    @property
    def envelope_counts(self) -> Mapping[str, int]:
        return self.envelopes.counts

    def observations(self) -> Iterator[Observation]:
        for file in self.files():
            for raw in self.pieces(file):
                if self._open is not None:
                    if self._continues(raw):
                        continue
                    self._close()
                if _ANCHORS.search(raw) is not None:
                    self._line(raw.decode("utf-8", "replace").rstrip("\r\n"))
                if self._found:
                    yield from self._found
                    self._found.clear()
            self._close()
            yield from self._found
            self._found.clear()
        yield from self._unnamed()

    def _unnamed(self) -> Iterator[Observation]:
        """Lines of clients whose group no line names, if they tell something without it: their group is the
        only one of the log, or has no name."""
        named = {*self._groups.values()}
        group = named.pop() if len(named) == 1 else UNNAMED_GROUP
        for waiting in self._groupless.values():
            if any(one.kind in _TELLING for one in waiting):
                yield from (one._replace(group=group) for one in waiting)

    # -- lines -----------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        if text.count("[GroupCoordinator ") > 1:
            for record in _RECORDS.split(text):
                self._record(record)
        else:
            self._record(text)

    def _record(self, text: str) -> None:
        if text[:1] in ("{", " ") and text.lstrip().startswith("{"):
            parsed = _json_record(text)
            if parsed is not None:
                self._json(parsed)
                return
        prefix = find_prefix(text)
        if prefix is not None:
            front = text[: prefix.start]
            if prefix.writer is Writer.RDKAFKA:
                self._see_handle(front)
            time_us = self._time(self.envelopes.time(front))
            message = without_tail(text[prefix.message :])
            if front.endswith(',"'):  # a cell of a CSV file
                message = message.removesuffix('"')
            self._message(prefix, time_us, message)
            return
        beginning = BARE_BEGINNING.search(text)
        if beginning is not None:
            message = without_tail(text[beginning.start() :])
            if BARE.find(message) is not None:
                front = text[: beginning.start()]
                thread = _CONTAINER.search(front)
                if thread is not None:
                    self._handle = self._client = thread[1]
                self._message(None, self._time(self.envelopes.time(front) or self._behind(message)), message)

    def _behind(self, message: str) -> Instant | None:
        """The time in the JSON record that a framework's logger puts behind a message of kafkajs."""
        record = _json_record(message[message.find("{") :]) if message.endswith("}") else None
        return None if record is None else self.envelopes.json(record)[0]

    def _see_handle(self, front: str) -> None:
        """Clients that were given no client id are told apart by their logs."""
        found = _HANDLE.search(front)
        self._handle = f"{self._name} {found[0]}" if found else self._name
        is_named = found is not None and found["client"] != _DEFAULT_CLIENT
        self._client = found["client"] if found is not None and is_named else self._handle

    def _json(self, record: dict[str, Any]) -> None:
        said, message = self.envelopes.json(record)
        if message is None:
            return
        time_us = self._time(said)
        prefix = find_prefix(message)
        if prefix is not None and prefix.start < 80:
            self._message(prefix, time_us, without_tail(message[prefix.message :]))
            return
        found = BARE.find(message)
        if found is not None:
            fields = {**found.fields, **json_fields(record)}
            self._see_program(found)
            self._observe(found.kind, fields, None, time_us, self.lines)

    def _message(self, prefix: Prefix | None, time_us: int | None, message: str) -> None:
        writer = Writer.BARE if prefix is None else prefix.writer
        found = CATALOGUES[writer].find(message)
        if found is None and writer is Writer.RDKAFKA and not message.startswith('Group "'):
            self.understood += 1  # librdkafka's debug output of other parts
            self.writers.add(writer)
            return
        if found is None:
            self.count_not_understood(message, _VARIABLE.sub("#", message[:200])[:80])
            return
        self._see_program(found)
        if found.lines:
            self._open, self._more = _Open(prefix, time_us, self.lines, message), 0
        else:
            self._observe(found.kind, found.fields, prefix, time_us, self.lines)

    def _see_program(self, found: Found) -> None:
        if found.program:
            self.writers.add(Writer(found.program))

    def _continues(self, raw: bytes) -> bool:
        """Whether this line belongs to the open message: it is indented."""
        opened = self._open
        if opened is None or raw[:1] not in (b"\t", b" ") or self._more >= _MORE_LINES_MAX:
            return False
        self._more += 1
        self._open = opened._replace(message=opened.message + "\n" + raw.decode("utf-8", "replace").rstrip())
        return True

    def _close(self) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        writer = Writer.BARE if opened.prefix is None else opened.prefix.writer
        found = CATALOGUES[writer].find(opened.message)
        if found is not None:
            self._observe(found.kind, found.fields, opened.prefix, opened.time_us, opened.line)

    # -- what they say ---------------------------------------------------------------------------

    def _observe(
        self, kind: str, fields: dict[str, Any], prefix: Prefix | None, time_us: int | None, line: int
    ) -> None:
        self.understood += 1
        if prefix is not None:
            self.writers.add(prefix.writer)
        if kind == NOTED or (kind.startswith("spring-") and self._java is not None):
            return  # the consumer of Spring's container says the same itself
        if time_us is None:
            self.untimed += 1
            return
        group, fields = details(kind, fields, prefix)
        if prefix is None or prefix.writer is Writer.RDKAFKA:
            group = self._of_client(kind, group, fields)
        elif prefix.writer is Writer.JAVA and group:
            self._groups[str(prefix.client)] = group
            self._java = str(prefix.client), group
        elif prefix.writer is Writer.STREAMS:
            group = self._of_thread(str(prefix.client))
        self._count_direction(time_us)
        self._add(Observation(time_us, self.number, line, kind, group, fields))

    def _of_client(self, kind: str, group: str, fields: dict[str, Any]) -> str:
        """Lines that do not name their client belong to the log's; those without a group to its last one."""
        if kind in BROKER_KINDS or kind in ("config", WORKER_CONFIG, BROKER_CONFIG, APPEND_REFUSED):
            return group
        if kind in EXCEPTIONS and self._java is not None:
            fields["client"], group = self._java
            return group
        said = fields.get("clientId") or fields.get("client") or fields.get("memberId")
        process = str(said or self._handle)
        fields["client"], fields["process"], fields["other"] = str(said or self._client), process, True
        group = group or str(fields.get("groupId") or self._groups.get(process, ""))
        if group:
            self._groups[process] = group
        return group

    def _of_thread(self, name: str) -> str:
        """The group of a thread of Kafka Streams: that of its consumer, whose lines name it."""
        found = _STREAMS.match(name)
        named = self._groups.get(name) or self._groups.get(f"{name}-consumer", "")
        return named or ("" if found is None else found[1])

    def _add(self, one: Observation) -> None:
        process = one.fields.get("process")
        if process is None:
            self._found.append(one)
        elif one.group:
            waiting = self._groupless.pop(process, [])
            self._found += [earlier._replace(group=one.group) for earlier in waiting]
            self._found.append(one)
        else:
            waiting = self._groupless.setdefault(process, [])
            waiting.append(one)
            del waiting[:-_GROUPLESS_MAX]

    def _time(self, said: Instant | None) -> int | None:
        """On the log's clock, as UTC. A line without a time has that of the line before."""
        if said is None:
            return self._now_us
        us = said.us
        if not said.is_utc:
            self.zoned = False
            if self._tz is not UTC:
                us = to_utc_us(us, self._tz)
        self.step_us = max(self.step_us, said.step_us)
        return us

    def _count_direction(self, time_us: int) -> None:
        if self._now_us is not None and time_us != self._now_us:
            if time_us > self._now_us:
                self._up += 1
            else:
                self._down += 1
        self._now_us = time_us
        self.see_time(time_us)


def _json_record(text: str) -> dict[str, Any] | None:
    """The first JSON object of a line; None if it begins with none."""
    try:
        record, _ = _DECODER.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
