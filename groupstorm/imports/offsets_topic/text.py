"""Records of `__consumer_offsets` as Kafka's tools print them: the table of their forms.

kafka-dump-log prints a line per record, with JSON since Kafka 3.9, and with texts of its own before.
The formatters of kafka-console-consumer print JSON objects since 3.9, one behind the other without line
ends since 4.0, and texts of their own before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from groupstorm.imports.details import DESCRIBED_MEMBER, optional
from groupstorm.imports.lines import Log
from groupstorm.imports.offsets_topic.meaning import NotUnderstood, RecordObserver
from groupstorm.imports.offsets_topic.schemas import KeyType, WrittenRecord
from groupstorm.imports.source import LogSource, Observation

#: The words that kafka-dump-log prints for a tombstone, and kafka-console-consumer.
_NOTHING: Final = frozenset({"<DELETE>", "NULL", "null"})
_RECORD = re.compile(
    r"(?:\|\s*)?offset: \d+ (?:\w+: -?\d+ )*?"
    r"(?:CreateTime|LogAppendTime): (?P<time_ms>-?\d+)\b.*?(?: key: (?P<key>.*?) payload: (?P<value>.*)"
    r"| endTxnMarker: (?P<marker>\w+) .*)$",
    re.DOTALL,
)
_BATCH = re.compile(
    r"baseOffset: \d+ .*?producerId: (?P<producer_id>-?\d+) "
    r".*?isTransactional: (?P<transactional>true|false) "
)
_OFFSET_KEY = re.compile(r"offset_commit::group=(?P<group>.*),partition=(?P<topic>.*)-(?P<partition>\d+)")
_OLD_OFFSET_KEY = re.compile(r"offset::(?P<group>.*):(?P<topic>[^:]*):(?P<partition>\d+)")
_OFFSET_VALUE = re.compile(r"(?:offset=)?(?P<offset>\d+)(?:,metadata=.*)?", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?P<member_id>[^={},][^={}]*?)=(?:\[(?P<partitions>[^\]]*)\])?[^,{}]*(?=,|\}|$)")
_CONSOLE_OFFSET = re.compile(
    r"\[(?P<group>.*),(?P<topic>[^,]*),(?P<partition>\d+)\]::(?:NULL"
    r"|OffsetAndMetadata\(offset=(?P<offset>-?\d+),.*commitTimestamp=(?P<time_ms>\d+),.*\)"
    r"|\[OffsetMetadata\[(?P<old_offset>-?\d+),.*\],CommitTime (?P<old_time_ms>\d+),.*\])"
)
_CONSOLE_GROUP = re.compile(
    r"(?P<key>.*?)::(?:NULL|GroupMetadata\(groupId=(?P<group>.*?), generation=(?P<generation>\d+), "
    r"protocolType=(?P<protocol_type>.*?), currentState=(?P<state>\w+), members=Map\((?P<members>.*)\)\))"
)


def _dumped(key: str, value: str) -> WrittenRecord:
    if key.startswith("{"):
        parsed = _json(key)
        if isinstance(parsed.get("metadata"), str):  # Kafka 1.1 to 2.3
            return _old_group(parsed["metadata"], value)
        return _of_json(parsed, None if value in _NOTHING else _json(value))
    if key.startswith("group_metadata::group="):
        return _old_group(key.removeprefix("group_metadata::group="), value)
    found = _OFFSET_KEY.fullmatch(key) or _OLD_OFFSET_KEY.fullmatch(key)
    offset = _OFFSET_VALUE.fullmatch(value)
    if found is None or (offset is None and value not in _NOTHING):
        raise NotUnderstood(f"key {key}")
    return WrittenRecord(
        KeyType.OFFSET_COMMIT,
        _offset_key(found),
        None if offset is None else {"offset": int(offset["offset"])},
    )


def _of_json(key: Mapping[str, Any], value: Mapping[str, Any] | None) -> WrittenRecord:
    """A key and a value as ``{"type": 2, "data": {...}}`` and ``{"version": 3, "data": {...}}``.

    Kafka 3.9's console formatters name a key's type as its version. Raises NotUnderstood.
    """
    key_type, data = key.get("type", key.get("version")), key.get("data")
    if not str(key_type).isdecimal() or not isinstance(data, Mapping):
        raise NotUnderstood("a key without type and data")
    written = None if value is None else value.get("data")
    if value is not None and not isinstance(written, Mapping):
        raise NotUnderstood("a value without data")
    return WrittenRecord(int(str(key_type)), data, written)


def _json(text: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise NotUnderstood("JSON that breaks off") from problem
    if not isinstance(parsed, dict):
        raise NotUnderstood("JSON that is no object")
    return parsed


def _offset_key(found: re.Match[str]) -> dict[str, Any]:
    return {"group": found["group"], "topic": found["topic"], "partition": int(found["partition"])}


def _old_group(group: str, value: str) -> WrittenRecord:
    """A generation as kafka-dump-log printed it before 3.9: the members' ids and assignments, no more."""
    if value in _NOTHING:
        return WrittenRecord(KeyType.GROUP_METADATA, {"group": group}, None)
    parsed = _json(value)
    members = []
    for found in _ASSIGNMENT.finditer(str(parsed.get("assignment", ""))):
        printed = found["partitions"]
        partitions = None if printed is None else [one.strip() for one in printed.split(",") if one.strip()]
        members.append({"memberId": found["member_id"].strip(), "assignment": partitions})
    data = {
        "protocolType": parsed.get("protocolType"),
        "generation": parsed.get("generationId"),
        "protocol": parsed.get("protocol"),
        "members": members,
    }
    return WrittenRecord(KeyType.GROUP_METADATA, {"group": group}, data)


# -- kafka-console-consumer before 3.9 -----------------------------------------------------------


def _console_offset(found: re.Match[str]) -> WrittenRecord:
    offset, time_ms = found["offset"] or found["old_offset"], found["time_ms"] or found["old_time_ms"]
    value = None if offset is None else {"offset": int(offset), "commitTimestamp": int(time_ms)}
    return WrittenRecord(KeyType.OFFSET_COMMIT, _offset_key(found), value)


def _console_group(found: re.Match[str]) -> WrittenRecord:
    if found["group"] is None:
        return WrittenRecord(KeyType.GROUP_METADATA, {"group": found["key"]}, None)
    members = [
        {
            "memberId": one["member_id"],
            "groupInstanceId": optional(one["instance"]),
            "clientId": one["client"],
            "clientHost": one["host"],
            "sessionTimeout": int(one["session_timeout_ms"]),
            "rebalanceTimeout": int(one["rebalance_timeout_ms"]),
        }
        for one in DESCRIBED_MEMBER.finditer(found["members"])
    ]
    data = {
        "protocolType": optional(found["protocol_type"]),
        "generation": int(found["generation"]),
        "members": members,
    }
    return WrittenRecord(KeyType.GROUP_METADATA, {"group": found["group"]}, data)


#: The beginning of an object of kafka-console-consumer.
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
        batch, found = _BATCH.match(text), _RECORD.match(text)
        if batch is not None:
            self._transaction = int(batch["producer_id"]) if batch["transactional"] == "true" else None
        elif found is not None:
            self._dumped(found, text)
        elif (console := _CONSOLE_OFFSET.fullmatch(text)) is not None:
            self._observer.take(_console_offset(console), self.lines)
        elif (console := _CONSOLE_GROUP.fullmatch(text)) is not None:
            self._observer.take(_console_group(console), self.lines)

    def _dumped(self, found: re.Match[str], text: str) -> None:
        """Take a line of kafka-dump-log: a record, or the end of a transaction."""
        time_ms = None if found["time_ms"].startswith("-") else int(found["time_ms"])
        try:
            if found["marker"] is None:
                record = _dumped(found["key"], found["value"].strip())
                self._observer.take(record._replace(time_ms=time_ms), self.lines, self._transaction)
            elif self._transaction is not None:
                self._observer.end_transaction(self._transaction, found["marker"] == "COMMIT", time_ms)
        except NotUnderstood as problem:
            self.count_not_understood(text, str(problem)[:80])

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
            self._observer.take(_of_json(key, value), self.lines)
        except NotUnderstood as problem:
            self.count_not_understood(text, str(problem)[:80])
