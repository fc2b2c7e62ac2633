"""One log -> observations: envelope, prefix, template; and what of the log was not understood."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, tzinfo
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.imports.details import as_printed, details, json_fields
from groupstorm.imports.envelopes import (
    Framing,
    FrontReader,
    as_written,
    collectors_time,
    json_in,
    logfmt_in,
    margin,
    pod_in,
    pod_of,
    record_of,
    split_message,
    texts_in,
)
from groupstorm.imports.line_owners import LineOwners
from groupstorm.imports.lines import HEAD_BYTES, INDENTED, Log, LogFile
from groupstorm.imports.prefixes import Prefix, Writer, find_prefix
from groupstorm.imports.source import BY_HAND, NOTED, LogSource, Observation
from groupstorm.imports.templates import BARE, BARE_BEGINNING, CATALOGUES, Catalogue, Found
from groupstorm.imports.times import Instant, instant, sights

#: The steps of a round, by the kinds of lines that tell them.
_STEPS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("preparing", "joining", "rd-joining"), 1),
    **dict.fromkeys(("stabilized", "joined", "rd-joined"), 2),
    **dict.fromkeys(("assignment", "synced", "rd-synced"), 3),
    **dict.fromkeys(("assigned", "rd-owned"), 4),
}
#: Where something else may begin behind a message.
_BEHIND = re.compile(r"\s+(?:[\[({|#<]|--? |[\w.@-]+=)")
_CUTS_MAX: Final = 3
#: What Serilog puts behind a message. Kafka's own maps have no quotation marks.
_PROPERTIES = re.compile(r' \{"[^{}]*\}$')
#: Lines that a message may have behind its first.
_MORE_LINES_MAX: Final = 1_000
#: Lines above one without a time in which its time is looked for, and lines in vain after which no more is.
_ABOVE_MAX: Final = 100
_IN_VAIN_MAX: Final = 100
#: An indented line with a time in these characters begins anew.
_BEGINNING: Final = 40
#: The exception of a message stands in the line behind it.
_THROWN: Final = re.compile(r"[\w$]+(?:\.[\w$]+)+(?:Exception|Error)\b")
_LOGFMT_KEY = re.compile(r"\b(?:msg|message)=")
_RECORDS = re.compile(r"(?<=\S) (?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ \[Group)")
_VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}|\d+|\"[^\"]*\"|'[^']*'")
#: What a line has that may be of interest. Each is searched in all of a log: the fewer, the faster.
#: ("subscribed to" finds "subscribed topics", too.)
_ANCHORS: Final = (
    *(b"roup", b"[thrd:", b"stream-", b"Config values", b"subscribed to", b" poll "),
    *(b"min.isr requirement", b"artitions", b"ListenerContainer", b"kafka server: "),
    *(b" current generation", b"assignments received:", b"KafkaE", b"dException"),
    *(b"org.apache.kafka.streams.errors.", b"RebalanceInProgressException", b"consumer/broker/"),
    *(b"client/coordinator ", b"Claimed:map[", b"(key: ", b"Crash: ", b"needs to re-join"),
    *(b"forced rejoin", b"heartbeat: Kafka::"),
)


class _Around(NamedTuple):
    """The record that a line is a text of: what it says beside the line, when, and the pod in front of it."""

    record: Any = None
    beside: Mapping[str, Any] = {}
    time: Instant | None = None
    pod: str = ""


_NOTHING: Final = _Around()


class _Open(NamedTuple):
    """A message that further lines may belong to."""

    prefix: Prefix | None
    time_us: int | None
    line: int
    message: str
    beside: Mapping[str, Any]


class LogParser(LogSource):
    """Reads the log of a broker or of a client, line by line.

    ``tz``: of times that print no zone. ``day``: of the first line, if the times print no date.
    """

    def __init__(
        self,
        log: Log,
        number: int,
        tz: tzinfo = UTC,
        envelope: re.Pattern[str] | None = None,
        day: date | None = None,
    ) -> None:
        super().__init__(log, number, tz, day)
        self._front = FrontReader(envelope, self.clock.order)
        self._now_us: int | None = None
        self._up = self._down = 0
        #: Steps of rounds at one time: those that stand in front of an earlier one, less the others.
        self._backward = 0
        self._step = 0
        self._found: list[Observation] = []
        self._open: _Open | None = None
        #: The beginning of the line that names its pod or container.
        self._margin = ""
        self._more = 0
        self._in_vain = 0
        #: The lines above this one, the nearest first; or what gives them.
        self._file: LogFile | None = None
        self._above: deque[str] = deque(maxlen=_ABOVE_MAX)
        self._owners = LineOwners(Path(log.name).name.partition(".")[0])

    @property
    def newest_first(self) -> bool:
        """By the times, or if all are equal by the order in which a round takes its steps."""
        return self._down > self._up or (self._down == self._up and self._backward > 0)

    def observations(self) -> Iterator[Observation]:
        for file in self.files():
            for raw in self._pieces(file):
                if self._open is not None:
                    if self._continues(raw):
                        continue
                    self._close()
                if any(anchor in raw for anchor in _ANCHORS):
                    self._line(raw.decode("utf-8", "replace").rstrip("\r\n"))
                if self._found:
                    yield from self._found
                    self._found.clear()
            self._close()
            yield from self._found
            self._found.clear()
        yield from self._owners.unnamed()

    def _pieces(self, file: LogFile) -> Iterator[bytes]:
        """The lines of a file as its program wrote them; of most logs only those that may say something."""
        head = file.bytes.peek(HEAD_BYTES)[:HEAD_BYTES].decode("utf-8", "replace")
        framing = Framing(head)
        self._owners.says_partitions |= " newly assigned partitions" in head  # a rotated file begins anywhere
        self._file = file if framing.is_plain else None
        if framing.is_plain:
            return self.pieces_with(file, _ANCHORS)
        return self._joined(self.pieces(file), framing)

    def _joined(self, pieces: Iterator[bytes], framing: Framing) -> Iterator[bytes]:
        parts = ((self.lines, piece.decode("utf-8", "replace")) for piece in pieces)
        for number, line in framing.joined(parts):
            after, self.lines = self.lines, number
            yield line.encode()
            self.lines = after
            self._above.appendleft(line)

    # -- lines -----------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        if text.count("[GroupCoordinator ") > 1:
            for record in _RECORDS.split(text):
                self._record(record)
        else:
            self._record(text)

    def _record(self, text: str, around: _Around = _NOTHING) -> bool:
        """Whether the text is a line of Kafka's."""
        text = as_written(text)
        prefix = find_prefix(text)
        value = json_in(text, len(text) if prefix is None else prefix.start) if '"' in text else None
        if value is not None and self._json(*value, around):
            return True
        has_message = prefix is not None and text[prefix.message : prefix.message + 1] != '"'
        if not has_message and _LOGFMT_KEY.search(text) and self._json("", logfmt_in(text), around):
            return True
        if prefix is not None:
            start, beginning = prefix.message, prefix.start
        else:
            bare = BARE_BEGINNING.search(text)
            if bare is None:
                return False
            start = beginning = bare.start()
        front = text[:beginning]
        message, behind = split_message(front, text[start:])
        if prefix is not None and message.endswith("}"):
            message = _PROPERTIES.sub("", message)
        if prefix is None and BARE.find(message) is None:
            return False
        said = self._front.time(front) or around.time or self._front.time(behind) or self._behind(message)
        if said is None and self._in_vain < _IN_VAIN_MAX:
            said = self._time_above()
            self._in_vain = self._in_vain + 1 if said is None else 0
        if prefix is None or prefix.writer is not Writer.BROKER:
            self._margin = margin(text)
            self._owners.see(front, prefix, pod_in(front) or pod_of(around.record) or around.pod)
        # a line without a time has that of the line before
        time_us = self._now_us if said is None else self.clock.us(said)
        self._message(prefix, time_us, message, around.beside)
        return True

    def _time_above(self) -> Instant | None:
        """The time of the nearest line above that has one: an exception or a message of several lines has its
        time there."""
        above: Iterable[str] = self._above
        if self._file is not None:
            lines = islice(self._file.lines_above(), _ABOVE_MAX)
            above = (line.decode("utf-8", "replace") for line in lines)
        for line in above:
            if seen := sights(line):
                return instant(line[seen[0].start : seen[0].end], seen[0].form, self.clock.order)
        return None

    def _behind(self, message: str) -> Instant | None:
        """The time in the JSON record that a framework's logger puts behind a message of kafkajs."""
        value = json_in(message, len(message)) if message.endswith("}") else None
        return None if value is None else collectors_time((value[1],), self.clock.order)

    def _json(self, front: str, value: Any, around: _Around) -> bool:
        """The message of each record is its first text that is a line of Kafka's."""
        found: set[int] = set()
        pod = pod_in(front) or around.pod
        for _, text, inside in texts_in(value):
            # texts of one list are lines, not one line in several fields
            is_line = isinstance(inside[-1], list) and len(inside[-1]) > 1
            record = text if is_line else record_of(inside)
            if id(record) in found:
                continue
            beside = next((each for each in reversed(inside) if isinstance(each, dict)), {})
            order, deeper = self.clock.order, tuple(one for one in beside.values() if isinstance(one, dict))
            said = collectors_time(inside, order) or self._front.time(front) or around.time
            said = said or collectors_time(deeper, order)
            if self._record(as_printed(text, beside), _Around(around.record or record, beside, said, pod)):
                found.add(id(record))
        return bool(found)

    def _message(
        self, prefix: Prefix | None, time_us: int | None, message: str, beside: Mapping[str, Any]
    ) -> None:
        writer = Writer.BARE if prefix is None else prefix.writer
        found = CATALOGUES[writer].find(message)
        if found is None and writer is Writer.RDKAFKA and not message.startswith('Group "'):
            self.understood += 1  # librdkafka's debug output of other parts
            self.writers.add(writer)
            return
        if found is None:
            found = _with_less(CATALOGUES[writer], message)
        if found is None:
            self.count_not_understood(message, _VARIABLE.sub("#", message[:200])[:80])
            return
        if found.program:
            self.writers.add(Writer(found.program))
        if found.lines:
            self._close()  # one in the same line of JSON
            self._open, self._more = _Open(prefix, time_us, self.lines, message, beside), 0
        else:
            self._observe(found, prefix, time_us, self.lines, beside)

    def _continues(self, raw: bytes) -> bool:
        """Whether this line belongs to the open message: it is indented, or all of a message of brod's."""
        opened = self._open
        raw = raw.removeprefix(self._margin.encode())
        raw = raw.lstrip() if raw.lstrip().startswith(b"{") else raw  # of a list of records, printed
        if opened is None or self._more >= _MORE_LINES_MAX:
            return False
        indented = INDENTED.match(raw)
        text = raw.decode("utf-8", "replace")
        begins = opened.message.endswith("):") or _THROWN.match(text) is not None
        begins = begins and self.lines == opened.line + 1
        if not begins and (indented is None or _begins(text[indented.end() :])):
            return False
        self._more += 1
        if indented is not None and indented[0].startswith(b"{"):
            texts = (one for _, one, _ in texts_in((json_in(text, len(text)) or ("", ""))[1]))
            text = next((one for one in texts if one.startswith(("\t", " "))), "")
        elif indented is not None:
            text = text[indented.end() :]
        self._open = opened._replace(message=f"{opened.message}\n{text.rstrip()}")
        return True

    def _close(self) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        writer = Writer.BARE if opened.prefix is None else opened.prefix.writer
        found = CATALOGUES[writer].find(opened.message)
        if found is not None:
            self._observe(found, opened.prefix, opened.time_us, opened.line, opened.beside)

    # -- what they say ---------------------------------------------------------------------------

    def _observe(
        self, found: Found, prefix: Prefix | None, time_us: int | None, line: int, beside: Mapping[str, Any]
    ) -> None:
        kind = found.kind
        self.understood += 1
        if prefix is not None:
            self.writers.add(prefix.writer)
        if kind == NOTED:  # the stack trace of an exception has no time of its own
            self._now_us = self._now_us if time_us is None else time_us
            if "group" in found.fields and (prefix is None or prefix.writer is Writer.RDKAFKA):
                self._owners.group_of(kind, found.fields["group"], found.fields, prefix)
            if BY_HAND in found.fields and prefix is not None:
                self._owners.by_hand.add(str(prefix.client))
        if kind == NOTED or self._owners.is_said_again(kind):
            return  # the consumer of Spring's container says the same itself, or it is not known whose it is
        if time_us is None:
            self.untimed += 1
            return
        fields = {**found.fields, **json_fields(beside)} if prefix is None else found.fields
        group, fields = details(kind, fields, prefix)
        group = self._owners.group_of(kind, group, fields, prefix)
        self._count_direction(time_us, _STEPS.get(kind, 0))
        self._found += self._owners.placed(Observation(time_us, self.number, line, kind, group, fields))

    def _count_direction(self, time_us: int, step: int) -> None:
        if self._now_us is not None and time_us != self._now_us:
            if time_us > self._now_us:
                self._up += 1
            else:
                self._down += 1
        elif step and self._step:
            self._backward += (step < self._step) - (step > self._step)
        self._step = step or self._step
        self._now_us = time_us
        self.see_time(time_us)


def _begins(text: str) -> bool:
    """Whether an indented line is a message of its own, as in a log all of whose lines are indented."""
    return find_prefix(text) is not None or bool(sights(text[:_BEGINNING]))


def _with_less(catalogue: Catalogue, message: str) -> Found | None:
    """The template of a message that something unknown stands behind."""
    for cut in [*_BEHIND.finditer(message)][: -_CUTS_MAX - 1 : -1]:
        found = catalogue.find(split_message("", message[: cut.start()])[0])
        if found is not None:
            return found
    return None
