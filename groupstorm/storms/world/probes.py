"""Requests of the past, at the end of a run: the coordinator has to refuse them.

Few runs have a member that commits or heartbeats in a generation that is over, so a coordinator that takes
such requests would seldom be found out. Nobody sees the requests: they are in no trace and no figure.
"""

from __future__ import annotations

from groupstorm.coordinator.messages import CommittedOffset, Heartbeat, OffsetCommit
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import FENCED
from groupstorm.storms.world.broker import GROUP, VirtualBroker
from groupstorm.storms.world.response_errors import api_and_error

_VERSIONS = (9, 4)
_ACCEPTED = (None, "REBALANCE_IN_PROGRESS")


def probe(broker: VirtualBroker, checks: InvariantChecks) -> None:
    """Send a commit and a heartbeat in the name of each member, in a generation or epoch that is over."""
    for member_id, epoch, partition in checks.fenced_commits.former_epochs():
        topic, _, number = partition.rpartition("-")
        offsets = {topic: {int(number): CommittedOffset(0)}}
        commit = OffsetCommit(GROUP, member_id, None, epoch, offsets, _VERSIONS[0])
        for request in (commit, Heartbeat(GROUP, member_id, None, epoch, _VERSIONS[1])):
            effects = broker.coordinator.handle(request, broker.clock.now_us // 1000, request)
            errors = [api_and_error(answer)[1] for token, answer in effects.replies if token is request]
            if errors and errors[0] in _ACCEPTED:
                what = f"{type(request).__name__} of {member_id} in generation {epoch}"
                checks.violated(FENCED, f"at the end of the run {what} was accepted")
