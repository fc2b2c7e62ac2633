"""The invariants of a run by name, and the first violation of each as a sentence."""

from __future__ import annotations

from typing import Final

from groupstorm.figures import table
from groupstorm.wording import some

HELD: Final = table.HELD

ONE_OWNER: Final = "one_owner_per_generation"
ASSIGNED_ONLY: Final = "members_own_what_they_were_assigned"
LOST_IS_GONE: Final = "lost_partitions_are_given_up"
WORKS_ON_OWN: Final = "members_process_what_they_own"
GENERATIONS: Final = "generations_increase"
STATES: Final = "states_follow"
TRANSITIONS: Final = "states_change_as_in_kafka"
PARKED: Final = table.PARKED
SILENCE: Final = "silent_members_are_removed"
OWNED_AT_END: Final = table.OWNED_AT_END
MEMBERS_LIVE: Final = "members_are_the_living_at_end"
SETTLES: Final = table.SETTLES

INVARIANTS: Final = (
    ONE_OWNER,
    ASSIGNED_ONLY,
    LOST_IS_GONE,
    WORKS_ON_OWN,
    GENERATIONS,
    STATES,
    TRANSITIONS,
    PARKED,
    SILENCE,
    OWNED_AT_END,
    MEMBERS_LIVE,
    SETTLES,
)

#: Begin the verdicts on partitions without an owner that Kafka's own rules leave so.
NO_NEW_ASSIGNMENT: Final = "no new assignment"
NOBODY_READS: Final = "no member subscribes to"

#: Begins the verdicts on a group that waits for a member which is gone.
REMOVAL_NOT_WRITTEN: Final = "a removal was not written"

#: Begins the verdict on an operation that broke off as Kafka's does.
TIMER_OUTLIVED_GROUP: Final = "a timer outlived its group"

#: Begins it, too: a static member came back while the write of its last id was failing.
WRITE_OUTLIVED_MEMBER: Final = "a write outlived its member"

#: Begins it, too: a classic group was to be upgraded before its first generation.
UPGRADED_TOO_EARLY: Final = "an upgrade came too early"

#: In the verdicts only if the coordinator emitted `OperationFailed`.
NO_OPERATION_FAILED: Final = "no_operation_failed"

#: Checked if members join their topics (`joins`).
CO_PARTITIONED: Final = "co_partitioned_at_end"


TWO_HOLDERS: Final = "no_partition_has_two_owners"
EPOCHS: Final = "epochs_never_go_back"
TARGETS: Final = "members_reach_their_targets"
REVOCATIONS: Final = "revocations_end"

#: Checked if members are of group.protocol=consumer.
CONSUMER_GROUP_INVARIANTS: Final = (TWO_HOLDERS, EPOCHS, TARGETS, REVOCATIONS)

#: In the verdicts only if they are violated: the traces of runs in which they hold stay as they were.
COMMITS_KEPT: Final = "accepted_commits_are_kept"
NOTHING_SKIPPED: Final = "nothing_committed_is_skipped"
FENCED: Final = "fenced_members_commit_nothing"
TIMES_ADD_UP: Final = "owned_and_unowned_time_add_up"
RECORDS_ADD_UP: Final = "repeated_and_waiting_records_add_up"


class Verdicts:
    """``of``: invariant -> "held", or the sentence of its first violation."""

    def __init__(self, joins: bool = False, consumer_groups: bool = False) -> None:
        self.of: dict[str, str] = dict.fromkeys(INVARIANTS, HELD)
        if consumer_groups:
            self.of.update(dict.fromkeys(CONSUMER_GROUP_INVARIANTS, HELD))
        if joins:
            self.of[CO_PARTITIONED] = HELD

    def violated(self, invariant: str, sentence: str) -> None:
        """Keep the first sentence."""
        if self.of.get(invariant, HELD) == HELD:
            self.of[invariant] = sentence


def listed(names: list[str]) -> str:
    return some(names, 3)
