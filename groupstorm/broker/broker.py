"""A broker without sockets: frames and `now` in, responses and events out.

`receive`, `next_deadline` and `fire` are its surface, as `handle`, `next_deadline` and `fire` are the
coordinator's; the asyncio shell and the tests drive the broker in the same way. The broker serves one request
of a connection at a time: responses leave in the order of the requests, and a parked JoinGroup mutes its
connection. A long request takes many turns (`groupstorm.turns`): `receive` carries out the first one, each
`fire` another one of the request whose turn it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupstorm.broker.apis import apis_of
from groupstorm.broker.apis.api import (
    OFFSETS_TOPIC,
    Api,
    AskCoordinator,
    BrokerState,
    Call,
    Done,
    Encoded,
    KioMessage,
    NoAnswer,
    Outcome,
    Wait,
)
from groupstorm.broker.apis.error_answers import error_answer
from groupstorm.broker.apis.internal_topics import move_internal_topic
from groupstorm.broker.apis.key_00_produce import API as PRODUCE
from groupstorm.broker.apis.key_18_api_versions import KEY as API_VERSIONS
from groupstorm.broker.apis.key_18_api_versions import unsupported_version
from groupstorm.broker.apis.rights import DENIED, missing_right, sentence_of
from groupstorm.broker.changes import Change
from groupstorm.broker.config import INT32_MAX
from groupstorm.broker.decoding import Decoded, Decoder
from groupstorm.broker.delayed_fetches import DelayedFetches
from groupstorm.broker.log.batches import BatchError, parse_produced, stamped
from groupstorm.broker.log.validation import check_records
from groupstorm.broker.maintenance import LogMaintenance
from groupstorm.broker.releases import NEWEST
from groupstorm.broker.restoring import changed_transaction, snapshot
from groupstorm.broker.surface import BrokerEffects, ConnectionOutput, Coordinator, Peer
from groupstorm.broker.unfinished import Turn, Unfinished, mute_ms
from groupstorm.coordinator.consumer_config import GROUP_OPTIONS
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroup, ListGroups, OffsetCommit, Request, TxnOffsetCommit
from groupstorm.coordinator.topics import Topic as GroupTopic
from groupstorm.protocol.codec import (
    CodecError,
    ResponseTypes,
    encoder,
    response_types,
)
from groupstorm.protocol.framing import frame as framed
from groupstorm.protocol.headers import peek, read_header, response_header
from groupstorm.trace.events.coordinator import Event
from groupstorm.turns import Turns, at_once

_FIRST_FLEXIBLE_API_VERSIONS = 3

#: The APIs that a group or transaction coordinator answers.
_COORDINATORS_APIS = frozenset({8, 9, 11, 12, 13, 14, 15, 16, 22, 24, 25, 26, 28, 42, 47, 68, 69})

#: Handles one request.
_Handle = Callable[[Api, Call], Outcome | Turns[Outcome]]
#: The work of one request to the group coordinator.
_ASKING = 5


class _Token(NamedTuple):
    """Assigns a reply of the coordinator to a connection's request and to one of its questions."""

    connection: int
    question: int


@dataclass(slots=True)
class _InFlight:
    """The request that a connection waits for."""

    correlation_id: int
    types: ResponseTypes
    node: int
    asked: AskCoordinator | None = None
    message: KioMessage | None = None
    """The request, if it is a long one."""
    missing: int = 0
    replies: list[Any] | None = None


class Broker:
    """The brokers of this process. A single one leads every partition and coordinates every group.

    ``release``: the Kafka whose versions are advertised (`releases.RELEASES`).
    """

    def __init__(
        self,
        state: BrokerState,
        coordinator: Coordinator,
        release: str = NEWEST,
        loaded: Sequence[Event] = (),
    ) -> None:
        """``loaded``: what the coordinator did before this, to be told with the first step."""
        self.state = state
        self.loaded = loaded
        self._apis = apis_of(release)
        self._maintenance = LogMaintenance(state)
        self._coordinator = coordinator
        self._in_flight: dict[int, _InFlight] = {}
        self._fetches = DelayedFetches()
        self._decoder = Decoder()
        self._unfinished = Unfinished()
        #: The effects of this step.
        self._collected = BrokerEffects([], [])
        state.changed_topics = [topic.name for topic in state.topics]
        state.changed_groups = list(state.group_configs)

    def receive(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> BrokerEffects:
        """Serve one frame of a connection that has no request in flight.

        A frame that cannot be understood closes the connection, as in Kafka, except an unknown version of
        ApiVersions, which is answered. No frame raises.
        """
        return self._serve(connection, peer, frame, now_ms, self._do)

    def _do(self, api: Api, call: Call) -> Outcome | Turns[Outcome]:
        right = missing_right(self.state, api, call)
        if right is None:
            return api.handle(self.state, call)
        return self._refused(api, call, DENIED[right.resource_type], sentence_of(api, right))

    def refuse(self, connection: int, peer: Peer, frame: bytes, error: Error, now_ms: int) -> BrokerEffects:
        """Answer a frame with ``error``, without carrying it out."""

        def answer(api: Api, call: Call) -> Turns[Outcome]:
            return self._refused(api, call, error)

        return self._serve(connection, peer, frame, now_ms, answer)

    def _refused(self, api: Api, call: Call, error: Error, sentence: str | None = None) -> Turns[Outcome]:
        response = yield from error_answer(api, self.state, call, error, sentence)
        return NoAnswer() if response is None else Done(response)

    def refuse_unkept(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> BrokerEffects:
        """Refuse a frame because its changes could not be written, as Kafka does: KAFKA_STORAGE_ERROR, which
        coordinators give as NOT_COORDINATOR (GroupCoordinatorService, TransactionStateManager)."""
        is_coordinators = len(frame) >= 2 and int.from_bytes(frame[:2], "big") in _COORDINATORS_APIS
        error = Error.NOT_COORDINATOR if is_coordinators else Error.KAFKA_STORAGE_ERROR
        return self.refuse(connection, peer, frame, error, now_ms)

    def append(self, topic: str, partition: int, records: bytes, now_ms: int) -> tuple[int, BrokerEffects]:
        """Append one record batch, as a producer without id sends it; return its offset too.

        Raises BatchError if the batch is refused, or if there is no such partition.
        """
        found = self.state.topics.get(topic)
        log = None if found is None else found.partition(partition)
        if found is None or log is None:
            raise BatchError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}")
        batch = parse_produced(records, PRODUCE.max_version, log.settings.max_message_bytes)
        check_records(batch, log.settings, f"{topic}-{partition}", now_ms)
        self.state.now_ms = now_ms
        appended = log.append(stamped(batch, now_ms) if log.settings.log_append_time else batch)
        self.state.note_append(found, partition, appended)
        collected = BrokerEffects([], [])
        self._wake_fetches(collected)
        return appended.base_offset, self._with_changes(collected)

    def expire_session(self, group: str, member_id: str, now_ms: int) -> BrokerEffects:
        """See `GroupCoordinator.expire_session`."""
        collected = BrokerEffects([], [])
        self._take_effects(self._coordinator.expire_session(group, member_id, now_ms), collected)
        return self._with_changes(collected)

    def _serve(
        self, connection: int, peer: Peer, frame: bytes, now_ms: int, handle: _Handle
    ) -> BrokerEffects:
        collected = BrokerEffects([], [])
        self.state.now_ms = now_ms
        try:
            outcome = self._dispatch(connection, peer, frame, now_ms, handle)
            if isinstance(outcome, Generator):
                self._begin(connection, outcome, collected)
            else:
                self._follow_up(now_ms, collected)
                self._carry_out(connection, outcome, collected)
        except CodecError as problem:
            self._close(connection, problem, collected)
        self._wake_fetches(collected)
        return self._with_changes(collected)

    def _close(self, connection: int, problem: CodecError, collected: BrokerEffects) -> None:
        self.forget(connection)
        collected.outputs.append(ConnectionOutput(connection, None, str(problem)))

    def _begin(self, connection: int | None, turns: Turns[Outcome | None], collected: BrokerEffects) -> None:
        self._collected = collected
        self._end_turn(self._unfinished.begin(connection, turns), collected)

    def _end_turn(self, turn: Turn, collected: BrokerEffects) -> None:
        """Carry out what follows from a turn."""
        connection, outcome, problem = turn
        self._follow_up(self.state.now_ms, collected)
        if connection is None or connection not in self._in_flight:
            return  # nobody waits for it, or the client has closed its connection
        if problem is not None:
            self._close(connection, problem, collected)
        elif outcome is not None:
            self._carry_out(connection, outcome, collected)

    @property
    def coordinator(self) -> Coordinator:
        """The group coordinator, to look at."""
        return self._coordinator

    @property
    def has_unfinished(self) -> bool:
        """Whether a long request waits for its next turn."""
        return bool(self._unfinished)

    def next_deadline(self) -> int | None:
        """When to call `fire`, in the milliseconds of `now_ms`; None: not before the next frame."""
        if self._unfinished:
            return self.state.now_ms
        earliest = self._coordinator.next_deadline()
        for source in (self._fetches, self.state.transactions, self._maintenance):
            deadline = source.next_deadline()
            if deadline is not None and (earliest is None or deadline < earliest):
                earliest = deadline
        return earliest

    def fire(self, now_ms: int) -> BrokerEffects:
        """Carry out every timer whose deadline has passed, and a turn of a long request."""
        collected = BrokerEffects([], [])
        self.state.now_ms = now_ms
        self._take_effects(self._coordinator.fire(now_ms), collected)
        self.state.transactions.fire(now_ms)
        self._maintenance.fire(now_ms)
        self._follow_up(now_ms, collected)
        if self._unfinished:
            self._collected = collected
            self._end_turn(self._unfinished.next_turn(), collected)
        self._wake_fetches(collected)
        for connection, response in self._fetches.expire(now_ms):
            self._answer_fetch(connection, response, collected)
        return self._with_changes(collected)

    def forget(self, connection: int) -> None:
        """Forget a closed connection. Groups do not see it, as Kafka's coordinator sees no connections."""
        self._in_flight.pop(connection, None)
        self._fetches.forget(connection)

    def move_coordinator(self, group: str, node: int | None, now_ms: int) -> BrokerEffects:
        """Another broker, the next one unless ``node`` names one, takes over the partition of the offsets
        topic that holds this group, with all groups of that partition, as when its leader changes in Kafka.

        Raises ValueError if there is no such broker.
        """
        collected = BrokerEffects([], [])
        self._move_partition(group, node, now_ms, collected)
        return self._with_changes(collected)

    def move_every_coordinator(self, now_ms: int) -> BrokerEffects:
        """The next broker takes over each partition of the offsets topic that holds groups."""
        partition_of = self.state.cluster.groups.partition_of
        one_each = {partition_of(group): group for group in self._coordinator.groups}
        collected = BrokerEffects([], [])
        for group in one_each.values():
            self._move_partition(group, None, now_ms, collected)
        return self._with_changes(collected)

    def _move_partition(self, group: str, node: int | None, now_ms: int, collected: BrokerEffects) -> None:
        self.state.cluster.groups.move(group, node)
        move_internal_topic(self.state, OFFSETS_TOPIC)
        partition_of = self.state.cluster.groups.partition_of
        moved = [one for one in self._coordinator.groups if partition_of(one) == partition_of(group)]
        self._take_effects(self._coordinator.move(moved, now_ms), collected)

    def snapshot(self, in_file: bool = False) -> Iterable[Change]:
        """The changes that a new journal begins with; ``in_file``: those of a checkpoint of the journal,
        without the batches that are in its file."""
        return snapshot(self.state, self._coordinator.snapshot(), in_file)

    def _with_changes(self, collected: BrokerEffects) -> BrokerEffects:
        if not self.state.changes and not self.state.transactions.changed:
            return collected
        changed, self.state.transactions.changed = self.state.transactions.changed, {}
        self.state.changes += [changed_transaction(one) for one in changed.values()]
        changes, self.state.changes = self.state.changes, []
        return collected._replace(changes=changes)

    def stop(self, now_ms: int) -> BrokerEffects:
        """Answer every parked request: groups with NOT_COORDINATOR, fetches with their records so far."""
        collected = BrokerEffects([], [])
        self._take_effects(self._coordinator.unload(now_ms), collected)
        for connection, response in self._fetches.finish_all():
            at_hand = at_once(response) if isinstance(response, Generator) else response
            self._answer_fetch(connection, at_hand, collected)
        return collected

    def _follow_up(self, now_ms: int, collected: BrokerEffects) -> None:
        """Ends of transactions, topics and configurations reach the group coordinator."""
        for marker in self.state.write_markers(now_ms):
            if any(topic == OFFSETS_TOPIC for topic, _ in marker.partitions):
                effects = self._coordinator.end_transaction(marker.producer_id, marker.is_commit, now_ms)
                self._take_effects(effects, collected)
        self._tell_coordinator(now_ms, collected)

    def _tell_coordinator(self, now_ms: int, collected: BrokerEffects) -> None:
        """Topics and configurations of groups reach the group coordinator before its next request."""
        state = self.state
        if state.changed_topics or state.deleted_topics:
            known = [topic for name in state.changed_topics if (topic := state.topics.get(name)) is not None]
            changed = {topic.name: GroupTopic(topic.topic_id, len(topic.partitions)) for topic in known}
            deleted = [name for name in state.deleted_topics if name not in changed]
            state.changed_topics, state.deleted_topics = [], []
            self._take_effects(self._coordinator.update_topics(changed, deleted, now_ms), collected)
        for group in state.changed_groups:
            configs = state.group_configs.get(group, {})
            options = {name: int(value) for name, value in configs.items() if name in GROUP_OPTIONS}
            self._coordinator.set_group_options(group, options)
        state.changed_groups = []

    def _dispatch(
        self, connection: int, peer: Peer, frame: bytes, now_ms: int, handle: _Handle
    ) -> Outcome | Turns[Outcome]:
        api_key, version = peek(frame)
        self._maintenance.begin(now_ms)
        api = self._apis.get(api_key)
        if api is None:
            raise CodecError(f"API key {api_key} is not served")
        if not api.min_version <= version <= api.max_version:
            return self._unsupported(connection, peer, api, version, frame)

        node = self._node(peer)

        def decoded(request: Decoded) -> Outcome | Turns[Outcome]:
            types, correlation_id, client_id, message = request
            self._in_flight[connection] = _InFlight(correlation_id, types, node)
            who = (client_id, peer.host, peer.reached_at, now_ms, node, peer.principal)
            return handle(api, Call(version, message, types, *who, len(frame)))

        def decode_in_turns() -> Turns[Outcome]:
            self._in_flight[connection] = _InFlight(0, response_types(api_key, version), node)
            request = yield from self._decoder.in_turns(api_key, version, frame)
            is_there = connection in self._in_flight
            outcome = decoded(request)
            self._in_flight[connection].message = request.message
            if not is_there:
                self.forget(connection)  # the client has closed its connection: nobody is answered
            return (yield from outcome) if isinstance(outcome, Generator) else outcome

        if self._decoder.is_long(frame):
            return decode_in_turns()
        return decoded(self._decoder.decode(api_key, version, frame))

    def _node(self, peer: Peer) -> int:
        return self.state.cluster.nodes[0] if peer.node is None else peer.node

    def _unsupported(self, connection: int, peer: Peer, api: Api, version: int, frame: bytes) -> Outcome:
        if api.key != API_VERSIONS:
            versions = f"from version {api.min_version} to {api.max_version}"
            raise CodecError(f"{api.name} is served {versions}, not {version}")
        header = read_header(frame, flexible=version >= _FIRST_FLEXIBLE_API_VERSIONS)
        types = response_types(API_VERSIONS, 0)
        self._in_flight[connection] = _InFlight(header.correlation_id, types, self._node(peer))
        return Done(unsupported_version(types, api.max_version))

    def _carry_out(self, connection: int, outcome: Outcome, collected: BrokerEffects) -> None:
        match outcome:
            case Done(response):
                self._answer(connection, response, collected)
            case Encoded(body, mute_ms):
                self._send(connection, body, collected, mute_ms)
            case NoAnswer(close, mute_ms):
                self.forget(connection)
                collected.outputs.append(ConnectionOutput(connection, None, close, mute_ms))
            case Wait():
                self._fetches.park(connection, outcome)
            case AskCoordinator():
                self._ask(connection, outcome, collected)

    def _ask(self, connection: int, asked: AskCoordinator, collected: BrokerEffects) -> None:
        in_flight = self._in_flight[connection]
        in_flight.asked = asked
        in_flight.missing = len(asked.requests)
        in_flight.replies = [None] * in_flight.missing
        if not asked.requests:
            self._finish(connection, in_flight, collected)
        elif len(asked.requests) == 1:
            self._ask_one(connection, in_flight, 0, collected)
        else:
            self._begin(connection, self._ask_in_turns(connection, in_flight), collected)

    def _ask_in_turns(self, connection: int, in_flight: _InFlight) -> Turns[None]:
        for question in range(in_flight.missing):
            self._ask_one(connection, in_flight, question, self._collected)
            yield _ASKING

    def _ask_one(
        self, connection: int, in_flight: _InFlight, question: int, collected: BrokerEffects
    ) -> None:
        assert in_flight.asked is not None
        request = in_flight.asked.requests[question]
        if self.state.authorizer is not None:
            self._coordinator.match_only(in_flight.asked.may_match)
        token = _Token(connection, question)
        error = self._refusal(request, in_flight.node)
        if error is not Error.NONE and not isinstance(request, ListGroups):
            self._take_reply(token, error_response(request, error), collected)
            return
        self._take_effects(self._coordinator.handle(request, self.state.now_ms, token), collected)
        resolving = self._coordinator.resolve_in_turns()
        if resolving is not None:
            self._begin(None, self._resolve_in_turns(resolving), collected)

    def _resolve_in_turns(self, resolving: Turns[Effects]) -> Turns[None]:
        """Regular expressions are resolved behind the request that has asked for it."""
        effects = yield from resolving
        self._take_effects(effects, self._collected)

    def _refusal(self, request: Request, node: int) -> Error:
        """The error if the group is another broker's, or one group too many."""
        if isinstance(request, ListGroups):
            return Error.NONE
        if self.state.cluster.groups.node_of(request.group) != node:
            return Error.NOT_COORDINATOR
        most = self.state.config.groupstorm_max_groups
        if most < INT32_MAX and isinstance(request, JoinGroup | OffsetCommit | TxnOffsetCommit):
            groups = self._coordinator.groups
            if len(groups) >= most and request.group not in groups:
                return Error.POLICY_VIOLATION
        return Error.NONE

    def _take_effects(self, effects: Effects, collected: BrokerEffects) -> None:
        collected.events.extend(effects.events)
        self.state.changes += effects.records
        for token, response in effects.replies:
            if isinstance(token, _Token):
                self._take_reply(token, response, collected)

    def _take_reply(self, token: _Token, response: Any, collected: BrokerEffects) -> None:
        in_flight = self._in_flight.get(token.connection)
        if in_flight is None or in_flight.asked is None or in_flight.replies is None:
            return  # the client has closed its connection
        in_flight.replies[token.question] = response
        in_flight.missing -= 1
        if in_flight.missing == 0:
            self._finish(token.connection, in_flight, collected)

    def _finish(self, connection: int, in_flight: _InFlight, collected: BrokerEffects) -> None:
        assert in_flight.asked is not None
        response = in_flight.asked.finish(in_flight.replies or ())
        if isinstance(response, Generator):
            self._begin(connection, _done(response), collected)
        else:
            self._answer(connection, response, collected)

    def _wake_fetches(self, collected: BrokerEffects) -> None:
        if self.state.appended:
            appended, self.state.appended = self.state.appended, []
            for connection, response in self._fetches.appended(appended):
                self._answer_fetch(connection, response, collected)

    def _answer_fetch(
        self, connection: int, response: Done | Encoded | Turns[Done], collected: BrokerEffects
    ) -> None:
        if isinstance(response, Generator):
            self._begin(connection, response, collected)
        elif isinstance(response, Encoded):
            self._send(connection, response.body, collected)
        else:
            self._answer(connection, response.response, collected)

    def _answer(self, connection: int, response: Any, collected: BrokerEffects) -> None:
        try:
            body: Sequence[bytes] = encoder(self._in_flight[connection].types.root)(response)
        except CodecError as problem:
            # e.g. a member id made of a client id of 32,767 bytes: Kafka closes the connection too
            self._close(connection, problem, collected)
            return
        self._send(connection, body, collected, mute_ms(response))

    def _send(
        self, connection: int, body: Iterable[bytes], collected: BrokerEffects, mute_ms: int = 0
    ) -> None:
        in_flight = self._in_flight.pop(connection)
        if in_flight.message is not None:
            self._unfinished.release(in_flight.message)
        header_version = in_flight.types.root.__header_schema__.__version__
        header = response_header(in_flight.correlation_id, flexible=header_version > 0)
        collected.outputs.append(ConnectionOutput(connection, framed([header, *body]), None, mute_ms))


def _done(turns: Turns[KioMessage]) -> Turns[Outcome]:
    return Done((yield from turns))
