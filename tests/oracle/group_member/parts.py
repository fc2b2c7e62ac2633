"""Parts that several situations of a member of a consumer group share."""

from __future__ import annotations

from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    COMMIT_ENDS,
    INTERVAL_MS,
    POLL,
    STEP,
    Step,
    advance,
    answer,
    subscribe,
    topic,
)

NO_COMMIT = {"enable.auto.commit": False}
STATIC = {"group.instance.id": "i"}
SHORT_POLL = {"max.poll.interval.ms": 12_000}

#: A callback from its beginning to its end.
CALLBACK = (CALLBACK_BEGINS, CALLBACK_ENDS)
JOIN: tuple[Step, ...] = (topic("t"), topic("u"), subscribe("t"), POLL, STEP)
#: What a member does with an assignment that takes nothing away.
TAKE: tuple[Step, ...] = (STEP, POLL, COMMIT_ENDS, *CALLBACK, STEP)
#: A member that has acknowledged t-0 and t-1.
MEMBER: tuple[Step, ...] = (*JOIN, answer(1, t=(0, 1)), *TAKE, answer(1))
NEXT: tuple[Step, ...] = (advance(INTERVAL_MS), POLL, STEP)
