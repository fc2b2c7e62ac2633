"""Where our member does not do what Kafka's Java consumer does, and which Java class is the cause.

A row must be met: when ours has been mended, its row must go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

EVERY = "*"


class Known(NamedTuple):
    """``what`` as in `comparison.Difference`, or ``end``: ours does not end, or ends too early.

    ``every`` situation or variant: the difference is met in some of them, not necessarily in all.
    ``always``: False where Kafka's own consumer does now this, now that.
    """

    situation: str
    variant: str
    what: str
    cause: str
    always: bool = True

    def covers(self, situation: str, variant: str, what: str) -> bool:
        return self.situation in (EVERY, situation) and self.variant in (EVERY, variant) and self.what == what


_REASON = "AbstractCoordinator.sendJoinGroupRequest tells why it joins (KIP-800); our member says nothing"
_LEAVES = (
    "AbstractCoordinator.close: an application whose poll() has thrown closes its consumer, which leaves"
)
_UNEXPECTED = "AbstractCoordinator: an answer that it does not expect is a KafkaException, and fatal"
_INCONSISTENT = "AbstractCoordinator.isProtocolTypeInconsistent and the check of the protocol's name"
_RACE = (
    "AbstractCoordinator.joinGroupIfNeeded takes the generation before onJoinPrepare waits for the commit:"
    " an answer that comes at once is not seen, and what is lost is called revoked"
)
_LATE = (
    "ConsumerCoordinator.onJoinPrepare goes on where the commit's answer comes at once: the round ends"
    " before the next poll() throws"
)

KNOWN: tuple[Known, ...] = (
    Known(EVERY, EVERY, "JoinGroup.reason", _REASON),
    Known(
        "heartbeat says rebalance",
        "Kafka's default strategies",
        "JoinGroup.protocols",
        "ConsumerCoordinator.invokeOnAssignment tells only the chosen assignor of its assignment",
    ),
    *(
        Known("join refused for good", variant, "requests", _LEAVES)
        for variant in (
            "GROUP_MAX_SIZE_REACHED",
            "INCONSISTENT_GROUP_PROTOCOL",
            "INVALID_SESSION_TIMEOUT",
            "INVALID_GROUP_ID",
            "GROUP_AUTHORIZATION_FAILED",
            "UNSUPPORTED_VERSION",
            "REQUEST_TIMED_OUT",
            "UNKNOWN_SERVER_ERROR",
        )
    ),
    Known("join refused for good", "REQUEST_TIMED_OUT", "told", _UNEXPECTED),
    Known("join refused for good", "ILLEGAL_GENERATION", "end", _UNEXPECTED),
    Known("join refused for good", "of another protocol type", "end", _INCONSISTENT),
    *(
        Known("sync refused for good", variant, "requests", _LEAVES)
        for variant in (
            "COORDINATOR_LOAD_IN_PROGRESS",
            "GROUP_AUTHORIZATION_FAILED",
            "INCONSISTENT_GROUP_PROTOCOL",
            "REQUEST_TIMED_OUT",
            "UNKNOWN_SERVER_ERROR",
        )
    ),
    Known("sync refused for good", "INCONSISTENT_GROUP_PROTOCOL", "told", _UNEXPECTED),
    Known("sync refused for good", "REQUEST_TIMED_OUT", "told", _UNEXPECTED),
    Known("sync refused for good", "of another protocol", "end", _INCONSISTENT),
    Known("assignment", "of no bytes", "requests", _LEAVES),
    Known(
        "heartbeat refused for now",
        "REQUEST_TIMED_OUT",
        "requests",
        "AbstractCoordinator.HeartbeatResponseHandler: only COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR"
        " make the coordinator unknown",
    ),
    *(
        Known(
            "commit before a rejoin refused",
            variant,
            "requests",
            "ConsumerCoordinator.onJoinPrepare commits again after every RetriableException",
        )
        for variant in ("UNKNOWN_TOPIC_OR_PARTITION", "REQUEST_TIMED_OUT")
    ),
    *(
        Known("commit before a rejoin refused", variant, "told", _RACE, always=False)
        for variant in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")
    ),
    *(
        Known("static member is fenced", "by OffsetCommit before a rejoin", what, _LATE, always=False)
        for what in ("requests", "told")
    ),
    *(
        Known(
            "commit on close refused",
            variant,
            "requests",
            "ConsumerCoordinator.commitOffsetsSync commits again after every RetriableException",
        )
        for variant in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")
    ),
    *(
        Known(
            "static member is fenced",
            variant,
            "end",
            "ConsumerCoordinator.invokeCompletedOffsetCommitCallbacks throws in the next poll()",
        )
        for variant in ("by OffsetCommit", "by OffsetCommit before a rejoin")
    ),
    Known(
        "topic grows",
        "that only another member subscribes to",
        "end",
        "ConsumerCoordinator.updateGroupSubscription: the leader watches the topics of the whole group",
    ),
)


def unexpected(situation: str, variant: str, found: Iterable[str]) -> list[str]:
    """Sentences about differences that are not known, and about known ones that are not there any more."""
    differs = set(found)
    rows = [row for row in KNOWN if row.situation == situation and row.variant == variant]
    sentences = [
        f"{what} differs, which is not known"
        for what in sorted(differs)
        if not any(row.covers(situation, variant, what) for row in KNOWN)
    ]
    sentences += [
        f"{row.what} differs no more: its row can go"
        for row in rows
        if row.always and row.what not in differs
    ]
    return sentences
