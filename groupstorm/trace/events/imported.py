"""Events of `groupstorm import` about the logs behind a trace, beside the rows that it made from them."""

from __future__ import annotations

from typing import Final, NamedTuple

#: In the detail of `MemberConfigured`, beside Kafka's settings: the host from which the client connects.
CLIENT_HOST: Final = "client.host"
SIMPLE_COMMIT: Final = "simple OffsetCommit"  # of a client that assigns its partitions by hand, as Flink's


class GroupImported(NamedTuple):
    """First row of a group in an imported trace.

    ``cause``: from whose rows ownership follows: coordinator, or members (every member has a log of its own).
    ``detail``: one JSON line with the wall clock at time 0 (``began``, or ``clock`` if no source has
    the date), and the logs with their clocks.
    """

    group: str
    cause: str
    detail: str


class EvidenceMissing(NamedTuple):
    """The logs do not say something; ``detail`` is the sentence that says what to add.

    ``cause``: ownership (who owned which partition; from now on, until `ownership_known`), members (who is in
    the group), deaths (when processes died), topics (from when on, or until when, they need owners),
    rebalances (what happened between two descriptions), clock (how a log's clock relates to the
    others').
    ``generation``: the one that lacks it.
    """

    group: str
    cause: str
    generation: int | None
    detail: str


class OwnershipKnown(NamedTuple):
    """From ``generation`` on the logs say who owns every partition, until `evidence_missing` says
    otherwise."""

    group: str
    generation: int | None


class MemberConfigured(NamedTuple):
    """A client's log, or a line of its coordinator, has its settings: ``detail`` is one JSON object."""

    group: str
    member: str
    detail: str


class BrokerConfigured(NamedTuple):
    """The log of the group's coordinator has the broker's configuration: ``detail`` is one JSON object with
    its settings about groups."""

    group: str
    detail: str


class MembersGone(NamedTuple):
    """The group has no members from now on, until `members_back`: its partitions need no owner."""

    group: str


class MembersBack(NamedTuple):
    """The group has members again."""

    group: str


class WorkAssigned(NamedTuple):
    """A worker of Kafka Connect came into ``generation``, and was told its work.

    ``tasks``: the connectors and tasks that it runs from now on, by name; a task is its connector and a
    number. ``duration_us``: for so long the leader leaves the work of workers that have gone to nobody
    (scheduled.rebalance.max.delay.ms, what is left of it). ``detail``: a JSON object with the connectors
    and tasks that it has to stop (``revoked``), and the offset of the configuration. ``error``:
    CONFIG_MISMATCH if the leader could not assign, COORDINATOR_NOT_AVAILABLE if the worker has lost it.
    """

    group: str
    member: str
    member_id: str
    generation: int | None
    leader: str | None
    error: str | None
    tasks: tuple[str, ...]
    duration_us: int | None
    detail: str


class RequestRefused(NamedTuple):
    """A client's log says that a request of it was refused (``error``, "unknown" if the words are not known).

    ``api``: JoinGroup, SyncGroup, Heartbeat, OffsetCommit (`SIMPLE_COMMIT` of a client that is no member);
    FindCoordinator if the client lost its coordinator; "unknown" if the line does not say it.
    """

    group: str
    member: str
    member_id: str | None
    generation: int | None
    api: str
    error: str


class OffsetReset(NamedTuple):
    """A client had no offset to begin at, so that auto.offset.reset counted.

    ``cause``: no-committed-offset, out-of-range, or reset with the ``positions`` at which it began.
    """

    group: str
    member: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...] | None
    cause: str


class AppendRefused(NamedTuple):
    """The group's partition of __consumer_offsets (``cause``) took no record of the group, because too few of
    its replicas were in sync: ``detail`` says which, and how many are needed."""

    group: str
    error: str
    cause: str
    detail: str


Event = (
    GroupImported
    | EvidenceMissing
    | OwnershipKnown
    | MemberConfigured
    | BrokerConfigured
    | MembersGone
    | MembersBack
    | WorkAssigned
    | RequestRefused
    | OffsetReset
    | AppendRefused
)
