"""The time until members of a quiet virtual group learn of a rebalance, as in `record_heartbeats`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import yaml

from groupstorm.coordinator.errors import REBALANCE_IN_PROGRESS
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse, JoinGroup, Request, Response
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.scenario.files import parse
from groupstorm.storms.world.broker import VirtualBroker
from groupstorm.storms.world.simulation import simulate
from tests.storms.storms_in_memory import MemorySink

INTERVAL_MS = 3_000
#: The work of a kind of group (`record_heartbeats.KINDS`), in the settings of a storm.
WORK: dict[str, dict[str, Any]] = {
    "idle": {"record_rate": 0},
    "short": {"record_rate": 10, "process_ms": 40, "poll_interval_ms": 100},
    "long": {"record_rate": 1, "process_ms": 400, "poll_interval_ms": 1000},
}
#: How long a member that has joined stays, and how long the group is quiet before one joins.
STAYS_S = 20
QUIET_S = 630


def spread_ms(times_ms: Sequence[int]) -> int:
    """The shortest part of an interval that has all these times, which recur with each interval."""
    phases = sorted(time_ms % INTERVAL_MS for time_ms in times_ms)
    gaps = [later - sooner for sooner, later in pairwise(phases)]
    return INTERVAL_MS - max([*gaps, phases[0] + INTERVAL_MS - phases[-1]])


def learning_ms(
    profile: str, kind: str, seed: int, rounds: int = 3, quiet_s: int = QUIET_S, members: int = 4
) -> list[list[int]]:
    """For each round and member the milliseconds from the JoinGroup of a new member to
    REBALANCE_IN_PROGRESS. The new member stays for a while; then the group is quiet again."""
    steps: list[dict[str, Any]] = [{"at_ms": 0, "do": "start", "members": list(range(members))}]
    for number in range(rounds):
        at_ms = seed * 997 % INTERVAL_MS + (number + 1) * quiet_s * 1000 + number * STAYS_S * 1000
        steps.append({"at_ms": at_ms, "do": "start", "members": [members]})
        steps.append({"at_ms": at_ms + STAYS_S * 1000, "do": "stop", "members": [members]})
    settings = {
        "client_profile": profile,
        "members": members + 1,
        "partitions": members,
        "start_ms": 0,
        "phases": "aligned",
        **WORK[kind],
    }
    resolved = parse(
        yaml.safe_dump({"name": "quiet", "settings": settings, "steps": steps}), "yaml", "quiet"
    ).resolve(None, seed, {})
    joiner = f"member-{members}"
    starts_us = [1000 * step["at_ms"] for step in steps if step["do"] == "start"]
    joined_us = dict.fromkeys(range(rounds + 1), 0)
    learnt: dict[int, dict[str, int]] = {number: {} for number in joined_us}
    handle = VirtualBroker.handle

    def round_at(now_us: int) -> int:
        return bisect_right(starts_us, now_us) - 1

    def handling(broker: VirtualBroker, request: Request, receive: Callable[[Response], None]) -> None:
        now_us = broker.clock.now_us
        number = round_at(now_us)
        if isinstance(request, JoinGroup) and request.client_id == joiner and not learnt[number]:
            joined_us[number] = now_us

        def answered(response: Response) -> None:
            is_news = isinstance(response, HeartbeatResponse) and response.error is REBALANCE_IN_PROGRESS
            if isinstance(request, Heartbeat) and is_news and joined_us[number]:
                learnt[number].setdefault(request.client_id, (now_us - joined_us[number]) // 1000)
            receive(response)

        handle(broker, request, answered)

    with patch.object(VirtualBroker, "handle", handling):
        simulate(resolved, chosen_assignors(resolved), MemorySink())
    found = [[ms for name, ms in sorted(learnt[number].items()) if name != joiner] for number in learnt]
    assert all(len(each) == members for each in found[1:])
    return found[1:]
