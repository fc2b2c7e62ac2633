"""Coordinators with a fault, to show that the comparison finds it."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects, Reply
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import HeartbeatResponse, Request


class DeafToRebalances(GroupCoordinator):
    """Its heartbeats never tell of a rebalance."""

    def handle(
        self, request: Request, now_ms: int, token: Hashable, may_match: Callable[[str], bool] | None = None
    ) -> Effects:
        effects = super().handle(request, now_ms, token, may_match)
        effects.replies = [_unheard(reply) for reply in effects.replies]
        return effects


def _unheard(reply: Reply) -> Reply:
    token, response = reply
    deaf = response == HeartbeatResponse(Error.REBALANCE_IN_PROGRESS)
    return (token, HeartbeatResponse(Error.NONE)) if deaf else reply


class Late(GroupCoordinator):
    """Its timers fire one millisecond late."""

    def next_deadline(self) -> int | None:
        deadline_ms = super().next_deadline()
        return None if deadline_ms is None else deadline_ms + 1

    def fire_one(self, now_ms: int) -> Effects | None:
        return super().fire_one(now_ms - 1)
