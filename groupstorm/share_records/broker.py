"""The share partitions and share sessions of one broker (Kafka: SharePartitionManager, KafkaApis).

The whole surface: the caller sets ``timers.now_ms``, calls one of the methods, and takes the answers with
`drain`. ``timers.next_deadline()`` says when ``timers.fire_one()`` is due; its answers come by `drain`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.acknowledgement import acknowledge
from groupstorm.share_records.config import GroupOptions, ShareBrokerConfig
from groupstorm.share_records.fetches import DelayedShareFetch, FetchSurroundings
from groupstorm.share_records.messages import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    AcknowledgeAnswer,
    AcknowledgeError,
    AcknowledgeErrors,
    Acknowledgements,
    FetchAnswer,
    Fetched,
    FetchedPartition,
    Request,
    Response,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)
from groupstorm.share_records.partition import SharePartition, SharePartitionState, Surroundings
from groupstorm.share_records.ports import (
    Cluster,
    DeadLetterQueue,
    KafkaError,
    NullPointer,
    Persister,
    SharePartitionKey,
    TopicPartition,
)
from groupstorm.share_records.sessions import (
    SessionKey,
    ShareSession,
    ShareSessions,
    in_hash_order,
    next_epoch,
)
from groupstorm.share_records.timers import Timers
from groupstorm.turns import Turns, at_once

_MEMBER_ID_MAX = 36
#: Errors after which a share partition is dropped: the next fetch loads it again.
_DROPPING = (
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_STATE_EPOCH,
    Error.GROUP_ID_NOT_FOUND,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
)
_NOT_HERE = AcknowledgeError(
    Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)


class Ports(NamedTuple):
    """The surroundings of a share broker."""

    cluster: Cluster
    persister: Persister
    dead_letters: DeadLetterQueue


class ShareBroker:
    """A broker's part of share groups. Requests are answered under their tokens.

    ``carry_out``: carries out the turns of a long retry, behind which answers may have come.
    """

    def __init__(
        self,
        config: ShareBrokerConfig,
        ports: Ports,
        timers: Timers,
        carry_out: Callable[[Turns[Any]], object] = at_once,
    ) -> None:
        self.share_partitions: dict[SharePartitionKey, SharePartition] = {}
        self.sessions = ShareSessions(config.groups.max_share_sessions, self._end_session, self._forget_group)
        self.timers = timers
        self._config = config
        self._cluster = ports.cluster
        self._replies: list[tuple[Hashable, Response]] = []
        self._options: dict[str, GroupOptions] = {}
        self._fetches = FetchSurroundings(timers, ports.cluster, self._drop_after, carry_out)
        self._around = Surroundings(
            timers,
            ports.persister,
            ports.dead_letters,
            self.group_options,
            self._fetches.retry,
            config.keeps_defects,
        )

    # the surface

    def handle(self, request: Request, token: Hashable) -> Turns[None]:
        """Take a request, partition by partition. Its answer comes with a `drain` behind the last turn, or
        with a later one."""
        reply = partial(self._reply, token)
        kind = ShareFetchResponse if isinstance(request, ShareFetch) else ShareAcknowledgeResponse
        try:
            if not 1 <= len(request.member_id) <= _MEMBER_ID_MAX:
                raise KafkaError(Error.INVALID_REQUEST)
            if isinstance(request, ShareFetch):
                yield from self._fetch(request, reply)
            else:
                yield from self._acknowledge_only(request, reply)
        except KafkaError as problem:
            reply(kind(problem.error))
        except NullPointer:
            reply(kind(Error.UNKNOWN_SERVER_ERROR))

    def disconnect(self, connection: str) -> None:
        """A client's connection has closed."""
        self.sessions.disconnect(connection)

    def leave_partition(self, partition: TopicPartition) -> None:
        """The broker no longer leads the partition: it became a follower, was deleted, or its disk failed."""
        for key in [key for key in self.share_partitions if key.topic_partition == partition]:
            self._drop(key)

    def records_arrived(self, *partitions: TopicPartition) -> None:
        """High watermarks or last stable offsets have moved."""
        self._fetches.retry(*partitions)

    def set_group_options(self, group: str, own: Mapping[str, Any]) -> None:
        """All options that the group has of its own. They hold from now on, running locks excepted."""
        self._options[group] = self._config.of_group(own)

    def group_options(self, group: str) -> GroupOptions:
        found = self._options.get(group)
        if found is None:
            found = self._options[group] = self._config.of_group({})
        return found

    def drain(self) -> list[tuple[Hashable, Response]]:
        """Do what was put off, and take the answers by token."""
        deferred = self._fetches.deferred
        while deferred:
            deferred.pop(0)()
        replies, self._replies = self._replies, []
        return replies

    # requests

    def _reply(self, token: Hashable, response: Response) -> None:
        self._replies.append((token, response))

    def _fetch(self, request: ShareFetch, reply: Callable[[Response], None]) -> Turns[None]:
        wants = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
        if request.is_renewal and any(wants):
            raise KafkaError(Error.INVALID_REQUEST)
        has_acknowledgements = any(request.partitions.values())
        try:
            session, partitions = self._open(request, has_acknowledgements)
        except KafkaError as problem:
            if problem.error is not Error.SHARE_SESSION_LIMIT_REACHED:
                raise
            response = ShareFetchResponse(problem.error)
            self.timers.schedule(request.max_wait_ms, partial(reply, response))
            return
        answer = FetchAnswer(partial(self._answer_fetch, request, session, reply))
        if has_acknowledgements:
            yield from self._acknowledge(request, answer.acknowledged)
        else:
            answer.acknowledged({})
        if request.is_renewal:
            answer.fetched({})
        else:
            yield from self._fetch_records(request, partitions, answer.fetched)

    def _open(
        self, request: ShareFetch, has_acknowledgements: bool
    ) -> tuple[ShareSession | None, dict[TopicPartition, bool]]:
        """The session that the request goes on with, if any, and the partitions to fetch from."""
        key = SessionKey(request.group, request.member_id)
        wanted = {one: self._cluster.has_topic(one.topic) for one in request.partitions}
        if request.epoch == FINAL_EPOCH:
            self.sessions.get(key)
            return None, {}
        if request.epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise KafkaError(Error.INVALID_REQUEST)
            self.sessions.create(key, wanted, request.connection)
            return None, wanted
        session = self.sessions.at_epoch(key, request.epoch)
        session.update(wanted, request.forgotten)
        session.epoch = next_epoch(session.epoch)
        return session, {one: state.has_id for one, state in session.partitions.items()}

    def _fetch_records(
        self, request: ShareFetch, partitions: Mapping[TopicPartition, bool], done: Callable[[Fetched], None]
    ) -> Turns[None]:
        failed: Fetched = {}
        wanted = []
        for one, has_id in partitions.items():
            if not has_id:
                failed[one] = FetchedPartition(Error.UNKNOWN_TOPIC_ID)
            elif one.topic in request.denied:
                failed[one] = FetchedPartition(Error.TOPIC_AUTHORIZATION_FAILED)
            elif not self._cluster.has_partition(one):
                failed[one] = FetchedPartition(Error.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                wanted.append(one)
        max_bytes = min(request.max_bytes, self._config.fetch_max_bytes)
        if not wanted or not request.max_records or not max_bytes:
            done(failed)
            return
        if not request.is_mode_known:
            raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
        # each request begins at another partition
        turn = request.epoch % len(wanted) if request.epoch >= 1 else 0
        is_committed = self.group_options(request.group).is_committed
        fetch = DelayedShareFetch(
            request, max_bytes, is_committed, self._fetches, partial(_answer_also, failed, done)
        )
        yield from self._begin(fetch, wanted[turn:] + wanted[:turn])

    def _begin(self, fetch: DelayedShareFetch, partitions: Sequence[TopicPartition]) -> Turns[None]:
        """Load the share partitions that are not there yet, and let the fetch wait for records."""
        for one in partitions:
            key = SharePartitionKey(fetch.request.group, one)
            try:
                share_partition = self._share_partition(key)
            except KafkaError as problem:
                fetch.errors[one] = problem.error
                continue
            share_partition.initialize(partial(self._initialized, key, fetch))
            fetch.share_partitions[one] = share_partition
            yield 1
        if len(fetch.errors) == len(partitions):
            fetch.answer({})
        else:
            yield from self._fetches.watch(fetch)

    def _share_partition(self, key: SharePartitionKey) -> SharePartition:
        found = self.share_partitions.get(key)
        if found is None:
            found = SharePartition(key, self._cluster.log(key.topic_partition), self._around)
            self.share_partitions[key] = found
        return found

    def _initialized(self, key: SharePartitionKey, fetch: DelayedShareFetch, error: Error) -> None:
        """A share partition is loaded, or cannot be. The fetch has it if it waits already."""
        if error not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
            self._drop(key)
            fetch.errors[key.topic_partition] = error
        if key.topic_partition in fetch.share_partitions:
            self._fetches.retry(key)

    def _answer_fetch(
        self,
        request: ShareFetch,
        session: ShareSession | None,
        reply: Callable[[Response], None],
        found: Fetched,
        errors: AcknowledgeErrors,
    ) -> None:
        error = Error.NONE
        partitions = {one: found[one] for one in in_hash_order(found, self._cluster.partition_hash)}
        if session is not None and session.epoch != next_epoch(request.epoch):
            error, partitions = Error.INVALID_SHARE_SESSION_EPOCH, {}
        elif session is not None:
            partitions = session.select(partitions)
        for one, acknowledged in errors.items():
            partition = partitions.setdefault(one, FetchedPartition())
            partition.acknowledge_error, partition.acknowledge_sentence = acknowledged
        if request.epoch == FINAL_EPOCH:
            self._end_session(SessionKey(request.group, request.member_id))
        lock_ms = self.group_options(request.group).record_lock_duration_ms
        reply(ShareFetchResponse(error, lock_ms, partitions))

    def _acknowledge_only(self, request: Request, reply: Callable[[Response], None]) -> Turns[None]:
        key = SessionKey(request.group, request.member_id)
        if request.epoch == INITIAL_EPOCH:
            raise KafkaError(Error.INVALID_SHARE_SESSION_EPOCH)
        if request.epoch == FINAL_EPOCH:
            self.sessions.get(key)
        else:
            session = self.sessions.at_epoch(key, request.epoch)
            session.epoch = next_epoch(session.epoch)
        yield from self._acknowledge(request, partial(self._answer_acknowledge, request, reply))

    def _answer_acknowledge(
        self, request: Request, reply: Callable[[Response], None], errors: AcknowledgeErrors
    ) -> None:
        if request.epoch == FINAL_EPOCH:
            self._end_session(SessionKey(request.group, request.member_id))
        lock_ms = self.group_options(request.group).record_lock_duration_ms
        reply(ShareAcknowledgeResponse(Error.NONE, lock_ms, errors))

    def _acknowledge(self, request: Request, done: Callable[[AcknowledgeErrors], None]) -> Turns[None]:
        """Work on the acknowledgements of all partitions; the errors come once the last has its answer."""
        failed, interested = self._checked(request)
        if not interested:
            # partitions without acknowledgements are in an answer only beside others
            done({one: failure for one, failure in failed.items() if failure.error is not Error.NONE})
            return
        answer = AcknowledgeAnswer(len(interested), failed, done)
        for one in interested:
            key = SharePartitionKey(request.group, one)
            share_partition = self.share_partitions.get(key)
            if share_partition is None:
                self._acknowledged(answer, key, Error.UNKNOWN_TOPIC_OR_PARTITION)
                answer.errors[one] = _NOT_HERE
                continue
            answered = partial(self._acknowledged, answer, key)
            why = yield from acknowledge(share_partition, request.member_id, interested[one], answered)
            if why is not None:
                answer.errors[one] = answer.errors[one]._replace(sentence=why)
            self._fetches.retry(key)
        answer.all_are_asked()

    def _acknowledged(self, answer: AcknowledgeAnswer, key: SharePartitionKey, error: Error) -> None:
        self._drop_after(key, error)
        answer.add(key.topic_partition, AcknowledgeError(error))

    def _checked(self, request: Request) -> tuple[AcknowledgeErrors, Acknowledgements]:
        """The partitions whose answer is known now, and the acknowledgements for share partitions."""
        failed, interested = {}, {}
        for one, batches in request.partitions.items():
            if not self._cluster.has_topic(one.topic):
                error = Error.UNKNOWN_TOPIC_ID
            elif one in request.malformed:
                error = Error.INVALID_REQUEST
            elif one.topic in request.denied:
                error = Error.TOPIC_AUTHORIZATION_FAILED
            elif not self._cluster.has_partition(one):
                error = Error.UNKNOWN_TOPIC_OR_PARTITION
            elif not batches:
                error = Error.NONE
            else:
                interested[one] = batches
                continue
            failed[one] = AcknowledgeError(error)
        return failed, interested

    # what ends

    def _end_session(self, key: SessionKey) -> None:
        """Release all that the member holds in its session's partitions, and forget the session."""
        session = self.sessions.find(key)
        if session is None:
            return
        self.sessions.remove(key)
        for one in list(session.partitions):  # released records may go to a waiting fetch of this session
            share_key = SharePartitionKey(key.group, one)
            share_partition = self.share_partitions.get(share_key)
            if share_partition is not None:
                share_partition.release_all(key.member_id, partial(self._drop_after, share_key))
                self._fetches.retry(share_key)

    def _forget_group(self, group: str) -> None:
        for key in [key for key in self.share_partitions if key.group == group]:
            self._drop(key)

    def _drop_after(self, key: SharePartitionKey, error: Error) -> None:
        if error in _DROPPING:
            self._drop(key)

    def _drop(self, key: SharePartitionKey) -> None:
        share_partition = self.share_partitions.pop(key, None)
        if share_partition is not None:
            share_partition.state = SharePartitionState.FENCED
            self._fetches.retry(key)


def _answer_also(failed: Fetched, done: Callable[[Fetched], None], found: Fetched) -> None:
    done({**found, **failed})
