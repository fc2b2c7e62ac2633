"""What a test can do to a running server and see of it. Everything here runs on the server's event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.events import Event
from groupstorm.coordinator.group import ClassicGroup, Member
from groupstorm.coordinator.server.shell import Server
from groupstorm.coordinator.subscriptions import assigned_partitions
from groupstorm.problems import InputError
from groupstorm.testing.faults import Fault, Faults
from groupstorm.testing.groups import NO_GROUP, GroupView, MemberView, Wanted
from groupstorm.testing.interception import Interception
from groupstorm.testing.waiting import Happening
from groupstorm.trace.rows import TracedEvent, as_mapping, event_name, values
from groupstorm.trace.schema import Source

#: An event of the coordinator and when it was: microseconds since the server started.
TimedEvent = tuple[int, Event]

#: So many events tell the story of a wait that failed.
_LAST_EVENTS = 12


class ServerControl:
    """Faults, views and waiting, on one server, from now on."""

    def __init__(self, server: Server, keep_events: int | None = None) -> None:
        """``keep_events``: only so many, the last ones; None: all."""
        self.faults = Faults()
        self.events: deque[TimedEvent] = deque(maxlen=keep_events)
        #: How many events there were before those that are kept.
        self.forgotten = 0
        self._server = server
        self._waiting: list[tuple[Callable[[], bool], Happening]] = []
        server.tell_also(self._observe)
        server.intercept = Interception(server, self.faults, self._look_again)

    def _observe(self, time_us: int, events: Sequence[Event]) -> None:
        """Keep the coordinator's events, and let go who waited for what is so now."""
        room = self.events.maxlen
        if room is not None:
            self.forgotten += max(0, len(self.events) + len(events) - room)
        self.events.extend((time_us, event) for event in events)
        self._look_again()

    # faults

    def add_fault(self, fault: Fault) -> Fault:
        self.faults.add(fault)
        return fault

    def drop_connections(self, client_id: str | None = None) -> int:
        """Close the connections of a client, or all; gives how many."""
        dropped = [
            connection
            for connection in self._server.connections.values()
            if client_id is None or connection.client_id == client_id
        ]
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def move_coordinator(self, group: str, broker: int | None = None) -> int:
        """See `Server.move_coordinator`; gives the broker that it is then. Raises InputError for a broker
        that there is not."""
        self._nodes(broker)
        self._server.move_coordinator(group, broker)
        return self._server.broker.state.cluster.coordinator(group)

    def pause(self, broker: int | None = None) -> None:
        """One broker, or all: they accept connections, read nothing and answer nothing."""
        for node in self._nodes(broker):
            self._server.pause(node)

    def resume(self, broker: int | None = None) -> None:
        """They read and answer again."""
        for node in self._nodes(broker):
            self._server.resume(node)

    @property
    def paused(self) -> list[int]:
        """The brokers that are paused."""
        return sorted(self._server.paused)

    def expire_member(self, group: str, member: str) -> str:
        """The session of a member ends now; ``member``: its member id, group.instance.id or client.id. Gives
        its member id.

        Raises InputError where it is not one member of the group, or is parked: a parked member needs no
        heartbeat, so that its session cannot end.
        """
        known = self._group(group)
        if known is None:
            raise InputError(f"group: {group!r}: there is no such group")
        found = _member_named(known, member)
        if found.satisfies_heartbeat():
            what = "JoinGroup" if found.join is not None else "SyncGroup"
            raise InputError(f"member: {member!r} is parked in {what}: its session does not end meanwhile")
        self._server.expire_session(group, found.member_id)
        return found.member_id

    def _nodes(self, broker: int | None) -> tuple[int, ...]:
        nodes = self._server.broker.state.cluster.nodes
        if broker is None:
            return nodes
        if broker not in nodes:
            raise InputError(f"broker: {broker}: expected one of {', '.join(map(str, nodes))}")
        return (broker,)

    # views

    def view(self, group: str) -> GroupView:
        """The group as it is now."""
        known = self._group(group)
        return NO_GROUP if known is None else _viewed(known)

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        """The committed offset; None where nothing is committed."""
        return self.all_committed(group).get(f"{topic}-{partition}")

    def all_committed(self, group: str) -> dict[str, int]:
        """Committed offsets by partition, as Kafka prints them: orders-0."""
        return self._coordinator.committed_offsets(group)

    def trace(self, since: int = 0) -> list[dict[str, object]]:
        """The rows of a trace (docs/trace.md) from this number on, as far as they are kept."""
        return [
            as_mapping(values(seq, time_us, Source.COORDINATOR, event))
            for seq, (time_us, event) in enumerate(self.events, self.forgotten)
            if seq >= since
        ]

    def last_events(self, group: str) -> list[str]:
        """The last events of a group, one line each."""
        mine = [one for one in self.events if one[1].group == group]
        return [_line(*one) for one in mine[-_LAST_EVENTS:]]

    # waiting

    def wait_for(self, group: str, wanted: Wanted) -> Happening:
        """Done as soon as the group is as wanted: looked at whenever the coordinator has done something."""
        return self._when(lambda: wanted.is_met(self.view(group)))

    def wait_for_fault(self, fault: Fault) -> Happening:
        """Done as soon as the fault has taken all the requests that it waits for."""
        return self._when(lambda: fault.left == 0)

    def _when(self, is_so: Callable[[], bool]) -> Happening:
        done = Happening()
        self._waiting.append((is_so, done))
        self._look_again()
        return done

    def _look_again(self) -> None:
        still = []
        for is_so, done in self._waiting:
            if done.cancelled():
                continue
            if not is_so():
                still.append((is_so, done))
            elif done.set_running_or_notify_cancel():
                done.set_result(None)
        self._waiting = still

    @property
    def _coordinator(self) -> GroupCoordinator:
        coordinator = self._server.broker.coordinator
        assert isinstance(coordinator, GroupCoordinator)
        return coordinator

    def _group(self, group: str) -> ClassicGroup | None:
        return self._coordinator.group(group)


def _member_named(group: ClassicGroup, name: str) -> Member:
    members = list(group.members.values())
    ways: Sequence[Callable[[Member], str | None]] = (
        lambda member: member.member_id,
        lambda member: member.group_instance_id,
        lambda member: member.client_id,
    )
    for way in ways:
        found = [member for member in members if way(member) == name]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(member.member_id for member in found)
            raise InputError(f"member: {name!r} are several, name one by its member id: {ids}")
    known = ", ".join(member.member_id for member in members) or "nobody"
    raise InputError(f"member: {name!r} is not in group {group.name}: in it is {known}")


def _viewed(group: ClassicGroup) -> GroupView:
    members = tuple(
        [
            MemberView(
                member.client_id,
                member.member_id,
                member.group_instance_id,
                member.client_host,
                assigned_partitions(member.assignment) or (),
            )
            for member in group.members.values()
        ]
    )
    return GroupView(group.state, group.generation, members, is_settled=not group.pending_sync)


def _line(time_us: int, event: TracedEvent) -> str:
    fields = [
        f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in zip(event._fields, event, strict=True)
        if name != "group" and value not in (None, "", ())
    ]
    return f"{time_us / 1_000_000:10.6f} s  {event_name(type(event)).replace('_', ' ')}: {' '.join(fields)}"
