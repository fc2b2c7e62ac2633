"""The steps that bring a member from its present assignment towards its target, a heartbeat at a time.

Rule 1: `steps` says what a heartbeat does to a member in each state, `reached` in which state the member
is after it. There are no other ways from state to state.
Rule 2: no wing's reconciliation knows another member; the group says what is held.

Kafka: CurrentAssignmentBuilder. Its state UNKNOWN, for records of newer brokers, cannot occur here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import NamedTuple, TypeVar

from groupstorm.coordinator.modern.member import UNREVOKED, ModernMember

S = TypeVar("S", bound=StrEnum)


class Situation(Enum):
    """The situation of a member that a heartbeat finds."""

    #: The member is at the epoch of its target.
    AT_TARGET = auto()
    #: There is a target with another epoch.
    BEHIND = auto()
    #: The member may still own something that it has to give up.
    STILL_OWNS = auto()
    #: The member has said that it owns nothing of that any more.
    HAS_REVOKED = auto()


class Step(Enum):
    """The step that a heartbeat takes with a member."""

    #: Nothing, unless the subscription has changed: then partitions of dropped topics are taken away.
    HOLD = auto()
    #: Give and take according to the target.
    ADVANCE = auto()


class Found(NamedTuple):
    """ADVANCE finds that the member owns what it has to give up, or that others hold what it needs."""

    must_revoke: bool
    others_hold: bool


def steps(states: type[S]) -> Mapping[S, Mapping[Situation, Step]]:
    """The next step in each state of a member."""
    stable, unrevoked, unreleased = states
    return {
        stable: {Situation.AT_TARGET: Step.HOLD, Situation.BEHIND: Step.ADVANCE},
        unrevoked: {Situation.STILL_OWNS: Step.HOLD, Situation.HAS_REVOKED: Step.ADVANCE},
        unreleased: {Situation.AT_TARGET: Step.ADVANCE, Situation.BEHIND: Step.ADVANCE},
    }


def reached(states: type[S]) -> Mapping[Found, S]:
    """The state after ADVANCE."""
    stable, unrevoked, unreleased = states
    return {
        Found(must_revoke=True, others_hold=True): unrevoked,
        Found(must_revoke=True, others_hold=False): unrevoked,
        Found(must_revoke=False, others_hold=True): unreleased,
        Found(must_revoke=False, others_hold=False): stable,
    }


def situation(member: ModernMember, target_epoch: int, still_owns: bool) -> Situation:
    """``still_owns``: whether the member may own some of what it has to give up."""
    if member.state in UNREVOKED:
        return Situation.STILL_OWNS if still_owns else Situation.HAS_REVOKED
    return Situation.AT_TARGET if member.epoch == target_epoch else Situation.BEHIND
