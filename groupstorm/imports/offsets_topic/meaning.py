"""The meaning of a record of `__consumer_offsets` for its group: from a `WrittenRecord` to the parts of an
observation, and from the records of one partition to observations."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from groupstorm.assignors.userdata import UserDataError
from groupstorm.assignors.userdata.consumer_protocol import decode_assignment, decode_subscription
from groupstorm.imports.offsets_topic.schemas import KeyType, WrittenRecord
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.source import NOTED, TIME_RULE, LogSource, Observation, TimeRule

#: Kinds of observations that only this topic makes.
GENERATION: Final = "generation-written"
GROUP_GONE: Final = "group-tombstone"
COMMITTED: Final = "offsets-written"
MEMBER: Final = "member-written"
MEMBER_GONE: Final = "member-tombstone"
MODERN_GONE: Final = "epoch-tombstone"
TARGET: Final = "target-written"
TARGET_EPOCH: Final = "target-epoch-written"
#: Kinds that a broker logs, too.
EPOCH: Final = "epoch"
CURRENT: Final = "member-assignment"
#: A later time than this is none: the end of the year 9999.
LATEST_MS: Final = 253_402_300_799_999
#: MemberState, as the byte of a record has it.
_MEMBER_STATES: Final[Mapping[int, str]] = {
    0: "STABLE",
    1: "UNREVOKED_PARTITIONS",
    2: "UNRELEASED_PARTITIONS",
}
_SINCE: Final = TimeRule(
    "earliest", "time: the source prints no time of the record, it was written when or after the state began"
)
#: What a value's type is called in the words of a reader of JSON.
_NAMES: Final[Mapping[type, str]] = {str: "a text", int: "a number", list: "a list", dict: "an object"}


class NotUnderstood(ValueError):
    """A record that has not the fields of Kafka's schemas."""


class Meaning(NamedTuple):
    """``time_ms`` None: nothing says when the record was written."""

    kind: str
    group: str
    fields: dict[str, Any]
    time_ms: int | None


def meaning(record: WrittenRecord) -> Meaning:
    """Return what the record says. Raises NotUnderstood."""
    read = _READERS.get(record.key_type)
    if read is None:
        return Meaning(NOTED, "", {}, record.time_ms)
    return read(record)


def topic_names(record: WrittenRecord) -> dict[str, str]:
    """Topic id -> name, as far as the record says both."""
    if record.value is None:
        return {}
    if record.key_type == KeyType.OFFSET_COMMIT and record.value.get("topicId"):
        return {str(record.value["topicId"]): _of(record.key, "topic", str)}
    if record.key_type == KeyType.CONSUMER_GROUP_PARTITION_METADATA:
        topics = _of(record.value, "topics", list)
        return {_of(one, "topicId", str): _of(one, "topicName", str) for one in topics}
    return {}


def _of(values: Any, name: str, kind: type, default: Any = None) -> Any:
    """A field of this type; ``default``, if there is one, for a field that is null or not there."""
    value = values.get(name) if isinstance(values, Mapping) else None
    if value is None and default is not None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        raise NotUnderstood(f"{name} is {value!r}: expected {_NAMES[kind]}")
    return value


def _milliseconds(values: Mapping[str, Any], name: str) -> int | None:
    """A time since 1970; None if it is not there, or -1."""
    said = _of(values, name, int, -1)
    if said > LATEST_MS:
        raise NotUnderstood(f"{name} is {said!r}: expected milliseconds since 1970")
    return None if said < 0 else int(said)


def _text_or_none(values: Mapping[str, Any], name: str) -> str | None:
    """A text; "" counts as none, as `subscribedTopicRegex` has it."""
    return _of(values, name, str, "") or None


# -- classic groups ------------------------------------------------------------------------------


def _generation(record: WrittenRecord) -> Meaning:
    group, value = _of(record.key, "group", str), record.value
    if value is None:
        return Meaning(GROUP_GONE, group, {}, record.time_ms)
    since_ms = _milliseconds(value, "currentStateTimestamp")
    is_consumer = _of(value, "protocolType", str, "") == "consumer"
    fields: dict[str, Any] = {
        "generation": _of(value, "generation", int),
        "protocol": _text_or_none(value, "protocol"),
        "leader": _text_or_none(value, "leader"),
        "since_us": None if since_ms is None else since_ms * 1000,
        "members": [_classic_member(one, is_consumer) for one in _of(value, "members", list)],
    }
    if record.time_ms is None and since_ms is not None:
        fields[TIME_RULE] = _SINCE
        return Meaning(GENERATION, group, fields, since_ms)
    return Meaning(GENERATION, group, fields, record.time_ms)


def _classic_member(member: Any, is_consumer: bool) -> dict[str, Any]:
    """``partitions`` and ``topics`` None: not printed, or not of the consumer protocol."""
    subscription = member.get("subscription") if isinstance(member, Mapping) else None
    assignment = member.get("assignment") if isinstance(member, Mapping) else None
    return {
        "member_id": _of(member, "memberId", str),
        "instance": _text_or_none(member, "groupInstanceId"),
        "client": _text_or_none(member, "clientId"),
        "host": _text_or_none(member, "clientHost"),
        "session_timeout_ms": _of(member, "sessionTimeout", int, -1),
        "rebalance_timeout_ms": _of(member, "rebalanceTimeout", int, -1),
        "topics": _subscribed(subscription) if is_consumer else None,
        "partitions": assigned_partitions(assignment) if is_consumer else None,
    }


def _bytes(value: Any) -> bytes | None:
    """Bytes, or Base64 as Kafka's JSON has them."""
    if isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except ValueError:  # no Base64, or no ASCII
            return None
    return value if isinstance(value, bytes) else None


def _subscribed(value: Any) -> list[str] | None:
    if isinstance(value, Mapping):
        return [str(topic) for topic in _of(value, "topics", list)]
    data = _bytes(value)
    try:
        return None if data is None else [*decode_subscription(data).topics]
    except UserDataError:
        return None


def assigned_partitions(value: Any) -> list[str] | None:
    """Partitions as topic-partition. A member for which the leader had nothing has no bytes at all."""
    if isinstance(value, Mapping):
        return _partitions(_of(value, "assignedPartitions", list), "topic")
    if isinstance(value, list):
        return [str(one) for one in value]
    data = _bytes(value)
    if data == b"":
        return []
    try:
        return None if data is None else [str(one) for one in decode_assignment(data).partitions]
    except UserDataError:
        return None


def _partitions(topics: Sequence[Any], name: str) -> list[str]:
    found = []
    for one in topics:
        topic, numbers = _of(one, name, str), _of(one, "partitions", list)
        if not all(isinstance(number, int) for number in numbers):
            raise NotUnderstood(f"partitions are {numbers!r}: expected numbers")
        found += [f"{topic}-{number}" for number in sorted(numbers)]
    return found


# -- offsets -------------------------------------------------------------------------------------


def _committed(record: WrittenRecord) -> Meaning:
    key, value = record.key, record.value
    group = _of(key, "group", str)
    partition = f"{_of(key, 'topic', str)}-{_of(key, 'partition', int)}"
    if value is None:
        return Meaning(NOTED, group, {}, record.time_ms)
    time_ms = record.time_ms
    if time_ms is None:
        time_ms = _milliseconds(value, "commitTimestamp")
    fields = {"partitions": [partition], "positions": [_of(value, "offset", int)]}
    return Meaning(COMMITTED, group, fields, time_ms)


# -- consumer groups -----------------------------------------------------------------------------


def _of_group(kind: str, gone: str, field: str, name: str) -> Callable[[WrittenRecord], Meaning]:
    """The reader of a record with one number: an epoch."""

    def read(record: WrittenRecord) -> Meaning:
        group = _of(record.key, "groupId", str)
        if record.value is None:
            return Meaning(gone, group, {}, record.time_ms)
        return Meaning(kind, group, {field: _of(record.value, name, int)}, record.time_ms)

    return read


def _member(record: WrittenRecord) -> Meaning:
    group, fields = _member_key(record)
    value = record.value
    if value is None:
        return Meaning(MEMBER_GONE, group, fields, record.time_ms)
    fields |= {
        "instance": _text_or_none(value, "instanceId"),
        "client": _text_or_none(value, "clientId"),
        "topics": [str(topic) for topic in _of(value, "subscribedTopicNames", list)],
    }
    timeout_ms = _of(value, "rebalanceTimeoutMs", int, -1)
    if timeout_ms >= 0:
        fields["rebalance_timeout_ms"] = timeout_ms
    return Meaning(MEMBER, group, fields, record.time_ms)


def _target(record: WrittenRecord) -> Meaning:
    group, fields = _member_key(record)
    if record.value is None:
        return Meaning(NOTED, group, {}, record.time_ms)
    return Meaning(TARGET, group, fields, record.time_ms)


def _current(record: WrittenRecord) -> Meaning:
    group, fields = _member_key(record)
    value = record.value
    if value is None:
        return Meaning(NOTED, group, {}, record.time_ms)
    state = _of(value, "state", int)
    fields |= {
        "epoch": _of(value, "memberEpoch", int),
        "state": _MEMBER_STATES.get(state, str(state)),
        "partitions": _partitions(_of(value, "assignedPartitions", list), "topicId"),
        "revoking": _partitions(_of(value, "partitionsPendingRevocation", list), "topicId"),
    }
    return Meaning(CURRENT, group, fields, record.time_ms)


def _member_key(record: WrittenRecord) -> tuple[str, dict[str, Any]]:
    return _of(record.key, "groupId", str), {"member_id": _of(record.key, "memberId", str)}


_READERS: Final[Mapping[int, Callable[[WrittenRecord], Meaning]]] = {
    KeyType.LEGACY_OFFSET_COMMIT: _committed,
    KeyType.OFFSET_COMMIT: _committed,
    KeyType.GROUP_METADATA: _generation,
    KeyType.CONSUMER_GROUP_METADATA: _of_group(EPOCH, MODERN_GONE, "epoch", "epoch"),
    KeyType.CONSUMER_GROUP_MEMBER_METADATA: _member,
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: _of_group(
        TARGET_EPOCH, NOTED, "epoch", "assignmentEpoch"
    ),
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _target,
    KeyType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current,
}


class RecordObserver:
    """Takes the records of one partition in the order of their offsets; `ready` gives the observations.

    Offsets that a transaction commits count from its marker on, and not at all if it aborts (KIP-98).
    Offsets of one group that were committed at one time are one observation.
    """

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._pending: dict[int, list[tuple[WrittenRecord, int]]] = {}
        self._found: list[Observation] = []
        self._commit: Observation | None = None
        source.writers.add(Writer.OFFSETS_TOPIC)
        source.clock.step_us = 1000

    def take(self, record: WrittenRecord, line: int, transaction: int | None = None) -> None:
        """``transaction``: the producer of the transaction that the record belongs to, if it does."""
        if transaction is not None:
            self._pending.setdefault(transaction, []).append((record, line))
            return
        try:
            if record.time_ms is not None and not 0 <= record.time_ms <= LATEST_MS:
                raise NotUnderstood("a time before 1970, or after the year 9999")
            said = meaning(record)
            self._source.topic_names.update(topic_names(record))
        except NotUnderstood as problem:
            self._source.count_not_understood(str(problem), f"{record.key_type}: {problem}"[:80])
            return
        self._source.understood += 1
        if said.kind != NOTED:
            self._add(said, line)

    def end_transaction(self, transaction: int, commits: bool, time_ms: int | None) -> None:
        """The marker of a transaction."""
        for record, line in self._pending.pop(transaction, ()):
            if commits:
                self.take(record._replace(time_ms=time_ms), line)

    def ready(self) -> list[Observation]:
        """The observations since the last call; a commit waits for the next record."""
        found, self._found = self._found, []
        return found

    def finish(self) -> list[Observation]:
        """The last observations: no more records come."""
        self._close_commit()
        return self.ready()

    def _add(self, said: Meaning, line: int) -> None:
        if said.time_ms is None:
            self._source.untimed += 1
            return
        time_us = said.time_ms * 1000
        open_commit = self._commit
        if (
            said.kind == COMMITTED
            and open_commit is not None
            and (open_commit.time_us, open_commit.group) == (time_us, said.group)
            and said.fields["partitions"][0] not in open_commit.fields["partitions"]
        ):
            open_commit.fields["partitions"] += said.fields["partitions"]
            open_commit.fields["positions"] += said.fields["positions"]
            return
        self._close_commit()
        self._source.see_time(time_us)
        one = Observation(time_us, self._source.number, line, said.kind, said.group, said.fields)
        if said.kind == COMMITTED:
            self._commit = one
        else:
            self._found.append(one)

    def _close_commit(self) -> None:
        if self._commit is not None:
            self._found.append(self._commit)
            self._commit = None
