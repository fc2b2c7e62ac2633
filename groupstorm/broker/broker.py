"""A broker without sockets: frames and `now` in, responses and events out.

`receive`, `next_deadline` and `fire` are its surface, as `handle`, `next_deadline` and `fire` are the
coordinator's; the asyncio shell and the tests drive the broker in the same way. The broker serves one request
of a connection at a time: responses leave in the order of the requests, and a parked JoinGroup mutes its
connection. A long request takes many turns (`groupstorm.turns`): `receive` carries out the first one, each
`fire` another one of the request whose turn it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from groupstorm.broker.apis import apis_of
from groupstorm.broker.apis.api import (
    Api,
    AskCoordinator,
    AskShareBroker,
    Call,
    CoordinatorsApi,
    Done,
    Encoded,
    KioMessage,
    NoAnswer,
    Outcome,
    Wait,
    error_answer,
)
from groupstorm.broker.apis.api_versions import API_VERSIONS, unsupported_version
from groupstorm.broker.apis.produce import PRODUCE
from groupstorm.broker.apis.resources import missing_right
from groupstorm.broker.changes import Change
from groupstorm.broker.group_coordination import GroupCoordination
from groupstorm.broker.log.batches import BatchError, check_records, parse_produced, stamped
from groupstorm.broker.maintenance import LogMaintenance
from groupstorm.broker.requests import (
    BrokerEffects,
    ConnectionOutput,
    Decoded,
    Decoder,
    DelayedFetches,
    Peer,
    Turn,
    Unfinished,
    mute_ms,
)
from groupstorm.broker.share_brokers import ShareBrokers
from groupstorm.broker.state import BrokerState, changed_transaction, snapshot
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import (
    CodecError,
    ResponseTypes,
    encoder,
    response_types,
)
from groupstorm.protocol.headers import frame as framed
from groupstorm.protocol.headers import peek, read_header, response_header
from groupstorm.share_records.partition import SharePartition
from groupstorm.trace.events.coordinator import Event
from groupstorm.turns import Turns, at_once

_FIRST_FLEXIBLE_API_VERSIONS = 3

#: Handles one request.
_Handle = Callable[[Call], Outcome | Turns[Outcome]]


@dataclass(slots=True)
class _InFlight:
    """The request that a connection waits for."""

    correlation_id: int
    types: ResponseTypes
    node: int
    message: KioMessage | None = None
    """The request, if it is a long one."""


class Broker:
    """The brokers of this process. A single one leads every partition and coordinates every group."""

    def __init__(
        self, state: BrokerState, coordinator: GroupCoordinator, loaded: Sequence[Event] = ()
    ) -> None:
        """``loaded``: what the coordinator did before this, to be told with the first step."""
        self.state = state
        #: The group coordinator, to look at.
        self.coordinator = coordinator
        self.loaded = loaded
        self._apis = apis_of(state.release)
        state.versions = {key: api.advertised for key, api in self._apis.items()}
        self._maintenance = LogMaintenance(state)
        self._in_flight: dict[int, _InFlight] = {}
        self._fetches = DelayedFetches()
        self._decoder = Decoder()
        self._unfinished = Unfinished()
        self._groups = GroupCoordination(state, coordinator, self._unfinished)
        self._shares = ShareBrokers(state, self._unfinished)
        #: The outputs of this step.
        self._outputs: list[ConnectionOutput] = []

    def receive(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> BrokerEffects:
        """Serve one frame of a connection that has no request in flight.

        A frame that cannot be understood closes the connection, as in Kafka, except an unknown version of
        ApiVersions, which is answered. No frame raises.
        """
        return self._serve(connection, peer, frame, now_ms, self._do)

    def _do(self, call: Call) -> Outcome | Turns[Outcome]:
        denied = missing_right(self.state, call)
        return call.api.handle(self.state, call) if denied is None else self._refused(call, *denied)

    def refuse(self, connection: int, peer: Peer, frame: bytes, error: Error, now_ms: int) -> BrokerEffects:
        """Answer a frame with ``error``, without carrying it out."""
        return self._serve(connection, peer, frame, now_ms, lambda call: self._refused(call, error))

    def _refused(self, call: Call, error: Error, sentence: str | None = None) -> Turns[Outcome]:
        response = yield from error_answer(self.state, call, error, sentence)
        return NoAnswer() if response is None else Done(response)

    def refuse_unkept(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> BrokerEffects:
        """Refuse a frame because its changes could not be written, as Kafka does: KAFKA_STORAGE_ERROR, which
        coordinators give as NOT_COORDINATOR (GroupCoordinatorService, TransactionStateManager)."""

        def answer(call: Call) -> Turns[Outcome]:
            is_coordinators = isinstance(call.api, CoordinatorsApi)
            error = Error.NOT_COORDINATOR if is_coordinators else Error.KAFKA_STORAGE_ERROR
            return self._refused(call, error)

        return self._serve(connection, peer, frame, now_ms, answer)

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
        self._maintenance.begin(now_ms)
        appended = log.append(stamped(batch, now_ms) if log.settings.log_append_time else batch)
        self.state.note_append(found, partition, appended)
        self._wake_fetches()
        return appended.base_offset, self._effects()

    def expire_session(self, group: str, member_id: str, now_ms: int) -> BrokerEffects:
        """See `GroupCoordinator.expire_session`."""
        self._groups.take(self.coordinator.expire_session(group, member_id, now_ms))
        return self._effects()

    @property
    def has_unfinished(self) -> bool:
        """Whether a long request waits for its next turn."""
        return bool(self._unfinished)

    def next_deadline(self) -> int | None:
        """When to call `fire`, in the milliseconds of `now_ms`; None: not before the next frame."""
        if self._unfinished:
            return self.state.now_ms
        earliest = self.coordinator.next_deadline()
        for source in (self._fetches, self.state.transactions, self._maintenance, self._shares):
            deadline = source.next_deadline()
            if deadline is not None and (earliest is None or deadline < earliest):
                earliest = deadline
        return earliest

    def fire(self, now_ms: int) -> BrokerEffects:
        """Carry out every timer whose deadline has passed, and a turn of a long request."""
        self.state.now_ms = now_ms
        self._groups.take(self.coordinator.fire(now_ms))
        self._answer_groups()
        self.state.transactions.fire(now_ms)
        self._maintenance.fire(now_ms)
        self._shares.fire(now_ms)
        self._tell_groups()
        if self._unfinished:
            self._end_turn(self._unfinished.next_turn())
        self._wake_fetches()
        for connection, response in self._fetches.expire(now_ms):
            self._follow(connection, response)
        return self._effects()

    def forget(self, connection: int, now_ms: int) -> BrokerEffects:
        """Forget a closed connection. Groups do not see it, as Kafka's coordinator sees no connections, but
        share sessions end with it."""
        self.state.now_ms = now_ms
        self._forget(connection)
        return self._effects()

    def _forget(self, connection: int) -> None:
        self._in_flight.pop(connection, None)
        self._fetches.forget(connection)
        self._groups.forget(connection)
        self._shares.forget(connection)

    def move_coordinator(self, group: str, node: int | None, now_ms: int) -> BrokerEffects:
        """Another broker, the next one unless ``node`` names one, takes over the partition of the offsets
        topic that holds this group, with all groups of that partition, as when its leader changes in Kafka.

        Raises ValueError if there is no such broker.
        """
        self._groups.move(group, node, now_ms)
        return self._effects()

    def move_every_coordinator(self, now_ms: int) -> BrokerEffects:
        """The next broker takes over each partition of the offsets topic that holds groups."""
        partition_of = self.state.cluster.groups.partition_of
        one_each = {partition_of(group): group for group in self.coordinator.groups}
        for group in one_each.values():
            self._groups.move(group, None, now_ms)
        return self._effects()

    def share_partitions(self, group: str) -> Iterator[SharePartition]:
        """The partitions that members of a share group have fetched from."""
        return self._shares.of_group(group)

    def snapshot(self, in_file: bool = False) -> Iterable[Change]:
        """The changes that a new journal begins with; ``in_file``: those of a checkpoint of the journal,
        without the batches that are in its file."""
        return snapshot(self.state, self.coordinator.snapshot(), in_file)

    def stop(self, now_ms: int) -> BrokerEffects:
        """Answer every parked request: groups with NOT_COORDINATOR, fetches with their records so far."""
        self._shares.stop()
        self._groups.take(self.coordinator.unload(now_ms))
        self._answer_groups()
        for connection, response in self._fetches.finish_all():
            self._follow(connection, at_once(response) if isinstance(response, Generator) else response)
        return self._effects()._replace(changes=())

    def _effects(self) -> BrokerEffects:
        """End this step."""
        self._answer_groups()
        outputs, self._outputs = self._outputs, []
        events, self._groups.events = self._groups.events, []
        changed, self.state.transactions.changed = self.state.transactions.changed, {}
        self.state.changes += [changed_transaction(one) for one in changed.values()]
        changes, self.state.changes = self.state.changes, []
        return BrokerEffects(outputs, events, changes)

    def _serve(
        self, connection: int, peer: Peer, frame: bytes, now_ms: int, handle: _Handle
    ) -> BrokerEffects:
        self.state.now_ms = now_ms
        try:
            outcome = self._dispatch(connection, peer, frame, now_ms, handle)
            self._tell_groups()
            self._follow(connection, outcome)
        except CodecError as problem:
            self._close(connection, problem)
        self._wake_fetches()
        return self._effects()

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
            return handle(Call(version, message, types, *who, len(frame), api, str(connection)))

        def decode_in_turns() -> Turns[Outcome]:
            self._in_flight[connection] = _InFlight(0, response_types(api_key, version), node)
            request = yield from self._decoder.in_turns(api_key, version, frame)
            is_there = connection in self._in_flight
            outcome = decoded(request)
            self._in_flight[connection].message = request.message
            if not is_there:
                self._forget(connection)  # the client has closed its connection: nobody is answered
            return (yield from outcome) if isinstance(outcome, Generator) else outcome

        if self._decoder.is_long(frame):
            return decode_in_turns()
        return decoded(self._decoder.decode(api, version, frame))

    def _node(self, peer: Peer) -> int:
        return self.state.cluster.nodes[0] if peer.node is None else peer.node

    def _unsupported(self, connection: int, peer: Peer, api: Api, version: int, frame: bytes) -> Outcome:
        if api.key != API_VERSIONS.key:
            versions = f"from version {api.min_version} to {api.max_version}"
            raise CodecError(f"{api.name} is served {versions}, not {version}")
        header = read_header(frame, flexible=version >= _FIRST_FLEXIBLE_API_VERSIONS)
        types = response_types(API_VERSIONS.key, 0)
        self._in_flight[connection] = _InFlight(header.correlation_id, types, self._node(peer))
        return Done(unsupported_version(types, api.max_version))

    def _follow(self, connection: int, outcome: Outcome | Turns[Outcome]) -> None:
        """Carry out an outcome, or the first turn to it."""
        match outcome:
            case Generator():
                self._end_turn(self._unfinished.begin(connection, outcome))
            case Done(response):
                self._answer(connection, response)
            case Encoded(body, mute_ms):
                self._send(connection, body, mute_ms)
            case NoAnswer(close, mute_ms):
                self._forget(connection)
                self._outputs.append(ConnectionOutput(connection, None, close, mute_ms))
            case Wait():
                self._fetches.park(connection, outcome)
            case AskCoordinator():
                self._groups.ask(connection, self._in_flight[connection].node, outcome)
                self._answer_groups()
            case AskShareBroker():
                self._shares.ask(connection, self._in_flight[connection].node, outcome)
                self._answer_groups()

    def _end_turn(self, turn: Turn) -> None:
        """Carry out what follows from a turn."""
        connection, outcome, problem = turn
        self._tell_groups()
        if connection is None or connection not in self._in_flight:
            return  # nobody waits for it, or the client has closed its connection
        if problem is not None:
            self._close(connection, problem)
        elif outcome is not None:
            self._follow(connection, outcome)

    def _tell_groups(self) -> None:
        self._shares.tell()
        self._groups.tell(self.state.now_ms)
        self._answer_groups()

    def _answer_groups(self) -> None:
        """Answer the requests whose questions the group coordinator, or a share broker, has answered."""
        for answered in (self._groups.answered, self._shares.answered):
            while answered:
                connection, response = answered.popleft()
                is_long = isinstance(response, Generator)
                self._follow(connection, _done(response) if is_long else Done(response))

    def _wake_fetches(self) -> None:
        if self.state.appended:
            appended, self.state.appended = self.state.appended, []
            self._shares.appended(appended)
            for connection, response in self._fetches.appended(appended):
                self._follow(connection, response)

    def _answer(self, connection: int, response: KioMessage) -> None:
        try:
            body: Sequence[bytes] = encoder(self._in_flight[connection].types.root)(response)
        except CodecError as problem:
            # e.g. a member id made of a client id of 32,767 bytes: Kafka closes the connection too
            self._close(connection, problem)
            return
        self._send(connection, body, mute_ms(response))

    def _send(self, connection: int, body: Iterable[bytes], mute_ms: int) -> None:
        in_flight = self._in_flight.pop(connection)
        if in_flight.message is not None:
            self._unfinished.release(in_flight.message)
        header_version = in_flight.types.root.__header_schema__.__version__
        header = response_header(in_flight.correlation_id, flexible=header_version > 0)
        self._outputs.append(ConnectionOutput(connection, framed([header, *body]), None, mute_ms))

    def _close(self, connection: int, problem: CodecError) -> None:
        self._forget(connection)
        self._outputs.append(ConnectionOutput(connection, None, str(problem)))


def _done(turns: Turns[KioMessage]) -> Turns[Outcome]:
    return Done((yield from turns))
