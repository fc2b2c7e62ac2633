"""Requests to a share broker and its answers (Kafka: ShareFetch, ShareAcknowledge)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.acknowledgement import AcknowledgementBatch
from groupstorm.share_records.acquisition import Acquired
from groupstorm.share_records.ports import RecordBatch, TopicPartition

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
#: The acknowledgements of a request, by partition in the request's order.
Acknowledgements = Mapping[TopicPartition, Sequence[AcknowledgementBatch]]


@dataclass(frozen=True, slots=True)
class Request:
    """``partitions``: those in the request, each with its acknowledgements. ``denied``: topics that the
    client may not read. ``malformed``: partitions whose ranges are not well-formed.
    """

    group: str
    member_id: str
    epoch: int
    partitions: Acknowledgements
    is_renewal: bool = False
    denied: Collection[str] = ()
    malformed: Collection[TopicPartition] = ()


@dataclass(frozen=True, slots=True)
class ShareAcknowledge(Request):
    """A request that fetches nothing."""


@dataclass(frozen=True, slots=True)
class ShareFetch(Request):
    """A request for records, too. ``forgotten``: the partitions that leave the session."""

    forgotten: Sequence[TopicPartition] = ()
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_records: int = 500
    batch_size: int = 500
    has_record_limit: bool = False
    is_mode_known: bool = True
    connection: str = ""


@dataclass(slots=True)
class FetchedPartition:
    """A partition of an answer. ``batches``: the record batches that go to the member."""

    error: Error = Error.NONE
    acquired: Sequence[Acquired] = ()
    batches: Sequence[RecordBatch] = ()
    acknowledge_error: Error = Error.NONE
    acknowledge_sentence: str | None = None


@dataclass(frozen=True, slots=True)
class ShareFetchResponse:
    error: Error
    lock_ms: int = 0
    partitions: Mapping[TopicPartition, FetchedPartition] = field(default_factory=dict)


class AcknowledgeError(NamedTuple):
    """The outcome of the acknowledgements of a partition, and Kafka's sentence about it."""

    error: Error
    sentence: str | None = None


@dataclass(frozen=True, slots=True)
class ShareAcknowledgeResponse:
    error: Error
    lock_ms: int = 0
    partitions: Mapping[TopicPartition, AcknowledgeError] = field(default_factory=dict)


Response = ShareFetchResponse | ShareAcknowledgeResponse

Fetched = dict[TopicPartition, FetchedPartition]
AcknowledgeErrors = dict[TopicPartition, AcknowledgeError]


class FetchAnswer:
    """The two halves of an answer to ShareFetch: it is sent once both are there."""

    def __init__(self, send: Callable[[Fetched, AcknowledgeErrors], None]) -> None:
        self._send = send
        self._found: Fetched | None = None
        self._errors: AcknowledgeErrors | None = None

    def fetched(self, found: Fetched) -> None:
        self._found = found
        self._send_if_complete()

    def acknowledged(self, errors: AcknowledgeErrors) -> None:
        self._errors = errors
        self._send_if_complete()

    def _send_if_complete(self) -> None:
        if self._found is not None and self._errors is not None:
            self._send(self._found, self._errors)


class AcknowledgeAnswer:
    """The errors of ``expected`` partitions: sent once the last has its own, and all of them were asked.

    ``failed``: the partitions that are not asked.
    """

    def __init__(
        self, expected: int, failed: AcknowledgeErrors, send: Callable[[AcknowledgeErrors], None]
    ) -> None:
        self.errors: AcknowledgeErrors = {}
        self._expected = expected
        self._failed = failed
        self._send = send
        self._is_asked = False

    def add(self, partition: TopicPartition, error: AcknowledgeError) -> None:
        self.errors[partition] = error
        self._send_if_complete()

    def all_are_asked(self) -> None:
        self._is_asked = True
        self._send_if_complete()

    def _send_if_complete(self) -> None:
        if self._is_asked and len(self.errors) == self._expected:
            self._send({**self.errors, **self._failed})
