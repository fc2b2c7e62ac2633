"""Reads `__consumer_offsets` as one of Kafka's tools has printed it into a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from groupstorm.imports.lines import Log
from groupstorm.imports.observation import Observation
from groupstorm.imports.offsets_topic.meaning import NotUnderstood
from groupstorm.imports.offsets_topic.observer import RecordObserver
from groupstorm.imports.offsets_topic.text import DumpedBatch, console_line, dumped_line, of_json
from groupstorm.imports.source import LogSource

#: How an object of kafka-console-consumer begins.
_OBJECT: Final = '{"key":'
#: A longer object is given up: one record holds a whole group, and has 100 MB at most.
_OBJECT_MAX: Final = 1 << 27
_DECODER: Final = json.JSONDecoder()


class OffsetsDump(LogSource):
    """The output of kafka-dump-log --offsets-decoder, or of kafka-console-consumer with a formatter."""

    def __init__(self, log: Log, number: int) -> None:
        super().__init__(log, number)
        self._observer = RecordObserver(self)
        self._transaction: int | None = None
        self._rest = ""

    def observations(self) -> Iterator[Observation]:
        for file in self.files():
            for raw in self.pieces(file):
                self._take(raw.decode("utf-8", "replace"))
                yield from self._observer.ready()
            self._rest = ""
        yield from self._observer.finish()

    def _take(self, raw: str) -> None:
        if self._rest or raw.lstrip().startswith(_OBJECT):
            self._objects(raw)
            return
        text = raw.rstrip("\r\n")
        try:
            dumped = dumped_line(text)
        except NotUnderstood as problem:
            self.count_not_understood(text, str(problem)[:80])
            return
        if isinstance(dumped, DumpedBatch):
            self._transaction = dumped.transaction
        elif dumped is not None and dumped.record is not None:
            self._observer.take(dumped.record, self.lines, self._transaction)
        elif dumped is not None and self._transaction is not None:
            self._observer.end_transaction(self._transaction, dumped.commits, dumped.time_ms)
        else:
            record = console_line(text)
            if record is not None:
                self._observer.take(record, self.lines)

    def _objects(self, raw: str) -> None:
        """Objects one behind the other. The last one may go on in the next piece of a long line."""
        text, self._rest = self._rest + raw, ""
        at = text.find(_OBJECT)
        while at >= 0:
            try:
                parsed, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                if not raw.endswith("\n") and len(text) - at < _OBJECT_MAX:
                    self._rest = text[at:]
                else:
                    self.count_not_understood(text[at:], "JSON that breaks off")
                return
            self._object(parsed, text[at:end])
            at = text.find(_OBJECT, end)

    def _object(self, parsed: object, text: str) -> None:
        try:
            fields = parsed if isinstance(parsed, dict) else {}
            key, value = fields.get("key"), fields.get("value")
            if not isinstance(key, dict) or not isinstance(value, dict | None):
                raise NotUnderstood("JSON without key and value")
            self._observer.take(of_json(key, value), self.lines)
        except NotUnderstood as problem:
            self.count_not_understood(text, str(problem)[:80])
