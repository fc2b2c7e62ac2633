"""ConsumerGroupHeartbeat: what is refused, which epoch fences, what the answer holds
(GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid and below)."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from groupstorm.coordinator.script.clients import topic_uuid
from tests.coordinator.consumer_world import Group, group_state

T, U = topic_uuid("t"), topic_uuid("u")
_JOIN: dict[str, Any] = {"rebalance_timeout_ms": 10_000, "topics": ("t",), "owned": ()}


def ask(world: Group, member: str = "m", epoch: int = 0, **fields: Any) -> tuple[Error, str | None]:
    fields = {"group": "g", **(_JOIN if epoch == 0 else {}), **fields}
    name = fields.pop("group")
    answer = world.send(ConsumerGroupHeartbeat(name, member, epoch, **fields))
    return answer.error, answer.error_message


# epochs and ids


def revoking() -> Group:
    """a, at epoch 3 and before at 2, owns t-0 and t-1; b has the others."""
    group = Group()
    group.join("a")
    group.join("b")
    group.settle()
    member = group.group.members["a"]
    assert (member.epoch, member.previous_epoch, member.assigned) == (3, 2, {T: {0: 2, 1: 2}})
    return group


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        (3, None, Error.NONE),
        (0, (), Error.NONE),  # joins again
        (2, ((T, (0, 1)),), Error.NONE),  # it may have missed the answer with its epoch
        (2, (), Error.NONE),
        (2, None, Error.FENCED_MEMBER_EPOCH),
        (2, ((T, (0, 2)),), Error.FENCED_MEMBER_EPOCH),
        (2, ((U, (0,)),), Error.FENCED_MEMBER_EPOCH),
        (1, ((T, (0, 1)),), Error.FENCED_MEMBER_EPOCH),
        (4, ((T, (0, 1)),), Error.FENCED_MEMBER_EPOCH),
    ],
)
def test_what_an_epoch_fences(epoch: int, owned: Any, error: Error) -> None:
    group = revoking()
    before = group_state(group.group)
    found, message = ask(group, "a", epoch, owned=owned)
    assert found is error
    if error is not Error.NONE:
        which = "greater" if epoch > 3 else "smaller"
        assert message == (
            f"The consumer group member has a {which} member epoch ({epoch}) than the one known by the group"
            " coordinator (3). The member must abandon all its partitions and rejoin."
        )
        assert group_state(group.group) == before
