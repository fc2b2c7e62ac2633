"""The client and the group that each line of a log belongs to, also if the line does not name them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from groupstorm.imports.prefixes import Prefix, Writer
from groupstorm.imports.source import BY_HAND, POD, Observation
from groupstorm.imports.templates import (
    APPEND_REFUSED,
    BROKER_CONFIG,
    BROKER_KINDS,
    EXCEPTIONS,
    LATE,
    WORKER_CONFIG,
)

#: librdkafka's name of a client: its client id, and which client of the process it is.
_HANDLE = re.compile(r"(?P<client>[^|\s\"\[\]]+)#(?:consumer|producer)-\d+")
#: A thread of Spring, which has a consumer of its own.
_CONTAINER: Final = re.compile(r"\[ *([^\[\]]+-C-\d+)\]")
#: The name of a thread of Kafka Streams begins with its application's id, which is its group, and a UUID.
_STREAMS: Final = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-|$)")
#: What a thread says of its end is about its consumer, too.
_ENDS_OF_THREADS: Final = frozenset({"thread-told", "thread-unclean", "thread-closed"})
_DEFAULT_CLIENT: Final = "rdkafka"
#: Lines of a client that are kept until one names its group.
_GROUPLESS_MAX: Final = 20
#: The group of lines that name none, and kinds of such lines that say something by themselves.
UNNAMED_GROUP: Final = "(unnamed)"
_TELLING: Final = frozenset(
    {
        *EXCEPTIONS,
        *LATE,
        *("rd-error", "cluster-rebalance", "commit-refused", "coordinator-lost", "kafkajs-answer"),
        *("kafkajs-crash", "kafkajs-joined", "kafkajs-out", "kafkajs-rejoin", "sarama-fenced"),
        *("sarama-refused", "sarama-session", "heartbeat-refused", "given-more", "given-now"),
        *("given-up", "java-assigned", "java-joined", "java-lost", "java-rejoin", "java-revoked"),
        *("leaving", "metadata-refused", "poll-timeout", "rd-fatal", "rd-joined", "rd-session"),
        *("rejoin-unnamed", "session-expired"),
    }
)


class LineOwners:
    """Takes the lines of one log in their order. ``name``: of the log, for clients that have none."""

    def __init__(self, name: str) -> None:
        self._name = name
        #: The pod or container of the line.
        self._pod = ""
        #: The client that lines belong to that name none: librdkafka's handle, or the log.
        self._handle = self._client = name
        #: librdkafka's clients: handle -> client id. The application's lines are about the only one.
        self._handles: dict[str, str] = {}
        #: The last word in front of the message: the group in the lines of Spring's containers.
        self._front_group = ""
        #: Client -> its group, as far as a line has said it.
        self._groups: dict[str, str] = {}
        #: Of kafkajs: the client ids, and the name of each member by its id.
        self._client_ids: dict[str, None] = {}
        self._members: dict[str, str] = {}
        self._ended: set[str] = set()
        #: Clients that have subscribed anew: a later line names their group, which may be another one.
        self._subscribed: set[str] = set()
        #: By handle: lines before the first that names the client's group.
        self._groupless: dict[str, list[Observation]] = {}
        #: The last client of Java's, and its group: an exception that is logged after its line is its own.
        self._java: tuple[str, str] | None = None
        #: Java clients that assign their partitions themselves, as Flink's and Spark's: they are no members.
        self.by_hand: set[str] = set()
        #: Whether Java consumers say what they own: at WARN they say other things alone.
        self.says_partitions = False

    def is_said_again(self, kind: str) -> bool:
        """Whether a line of Spring's container, or one without a prefix, says what its consumer says."""
        is_said = self._java is not None and kind.startswith("java-")
        return is_said or (self.says_partitions and kind.startswith("spring-"))

    def see(self, front: str, prefix: Prefix | None, pod: str) -> None:
        """Take what stands in front of a client's message. ``pod``: the pod or container that it names."""
        self._pod = pod
        if prefix is not None and prefix.writer is not Writer.RDKAFKA:
            return
        # clients that were given no client id are told apart by their pods or logs
        found, name = _HANDLE.search(front), self._pod or self._name
        if found is not None:
            self._handles[found[0]] = found["client"]
        handles = [*self._handles.items()] if prefix is None else []
        handle, client = handles[0] if len(handles) == 1 else ("", "")
        if found is not None:
            handle, client = found[0], found["client"]
        self._handle = f"{name} {handle}" if handle else name
        self._client = self._handle if client in ("", _DEFAULT_CLIENT) else client
        self._front_group = "" if front.endswith("Container") else front.rpartition(" ")[2]
        if prefix is None and (thread := _CONTAINER.search(front)) is not None:
            self._handle = self._client = thread[1]

    def group_of(self, kind: str, group: str, fields: dict[str, Any], prefix: Prefix | None) -> str:
        """The group of a line that says ``group``, or "". Puts its client and its pod into ``fields``."""
        if self._pod and (prefix is None or prefix.writer is not Writer.BROKER):
            fields[POD] = self._pod
        if prefix is None or prefix.writer is Writer.RDKAFKA:
            return self._of_client(kind, group, fields)
        client = str(prefix.client)
        if prefix.writer is Writer.JAVA and group:
            self._groups[client] = group
            self._java = client, group
            self.says_partitions |= kind == "assigned"
            if kind == "subscribed":
                self.by_hand.discard(client)
            fields[BY_HAND] = client in self.by_hand
        elif prefix.writer is Writer.STREAMS:
            if kind in _ENDS_OF_THREADS:
                fields["client"] = f"{client}-consumer"
            return self._of_thread(client)
        return group

    def _of_client(self, kind: str, group: str, fields: dict[str, Any]) -> str:
        """Lines that do not name their client belong to the log's; those without a group to its last one."""
        if kind in BROKER_KINDS or kind in ("config", WORKER_CONFIG, BROKER_CONFIG, APPEND_REFUSED):
            return group
        if kind in EXCEPTIONS and self._java is not None:
            fields["client"], group = self._java
            fields[BY_HAND] = fields["client"] in self.by_hand
            return group
        said = fields.get("client") or self._of_kafkajs(kind, fields.get("clientId"), fields.get("memberId"))
        process = f"{self._pod} {said}" if self._pod and said else str(said or self._handle)
        fields["client"], fields["process"], fields["other"] = str(said or self._client), process, True
        group = group or (self._front_group if kind.startswith("spring-") else "")
        if kind == "subscribed":
            self._subscribed.add(process)
        before = "" if process in self._subscribed else self._groups.get(process, "")
        group = group or str(fields.get("groupId") or before)
        if group:
            self._groups[process] = group
            self._subscribed.discard(process)
        return group

    def _of_kafkajs(self, kind: str, client: str | None, member_id: str | None) -> str | None:
        """The name of a member: some lines have its client id, others its member id, which begins with it. A
        second member of a client has a name of its own; one that crashed, or is out, joins under another id.
        A crash names no member: it is the only one's."""
        if kind == "kafkajs-crash" and len(self._members) == 1:
            [member_id] = self._members
        if kind in ("kafkajs-crash", "kafkajs-out") and member_id:
            self._ended.add(member_id)
        if client:
            self._client_ids[client] = None
            return next((name for one, name in self._members.items() if one.startswith(f"{client}-")), client)
        if member_id and member_id not in self._members:
            ended = sorted(
                self._ended & self._members.keys()
            )  # without their UUIDs the ids of one client agree
            before = next((one for one in ended if one[:-36] == member_id[:-36]), "")
            taken = set(self._members.values())
            fit = (one for one in self._client_ids if member_id.startswith(f"{one}-") and one not in taken)
            self._members[member_id] = self._members.pop(before, "") or next(fit, member_id)
        return self._members.get(member_id or "")

    def _of_thread(self, name: str) -> str:
        """The group of a thread of Kafka Streams: that of its consumer, whose lines name it. The instance has
        the group of its first thread."""
        found = _STREAMS.match(name)
        consumers = (name, f"{name}-consumer", f"{name}-StreamThread-1-consumer")
        named = next((self._groups[one] for one in consumers if one in self._groups), "")
        return named or ("" if found is None else found[1])

    def placed(self, one: Observation) -> list[Observation]:
        """The observation, behind those of its client that waited for a group; none if it waits itself."""
        process = one.fields.get("process")
        if process is None:
            return [one]
        if one.group:
            waiting = self._groupless.pop(process, [])
            return [*(earlier._replace(group=one.group) for earlier in waiting), one]
        waiting = self._groupless.setdefault(process, [])
        waiting.append(one)
        del waiting[:-_GROUPLESS_MAX]
        return []

    def unnamed(self) -> Iterator[Observation]:
        """Lines of clients whose group no line names, if they tell something without it: their group is the
        only one of the log, or has no name."""
        named = {*self._groups.values()}
        group = named.pop() if len(named) == 1 else UNNAMED_GROUP
        for waiting in self._groupless.values():
            if any(one.kind in _TELLING for one in waiting):
                yield from (one._replace(group=group) for one in waiting)
