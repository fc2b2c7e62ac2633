"""The situations of a member of a consumer group: a literal table."""

from __future__ import annotations

from tests.oracle.group_member.parts import CALLBACK, JOIN, MEMBER, NEXT, NO_COMMIT, STATIC, TAKE
from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_FAILS,
    COMMIT_ENDS,
    DISCONNECT,
    END,
    POLL,
    STEP,
    UNSUBSCRIBE,
    Situation,
    advance,
    answer,
    assigned_nothing,
    close,
    coordinator,
    no_topic,
    refused,
    regex,
    subscribe,
    topic,
)
from tests.oracle.group_member.trouble_situations import TROUBLE

SITUATIONS: tuple[Situation, ...] = (
    # -- joining --------------------------------------------------------------------------------------
    Situation("join and acknowledge", (*MEMBER, advance(4_999), STEP, advance(1), STEP, answer(1), *NEXT)),
    Situation("nobody polls after subscribe()", (subscribe("t"), STEP, advance(1_000), STEP, POLL, STEP)),
    Situation(
        "every option is told when joining, and no rack later",
        (*MEMBER, DISCONNECT, coordinator(True), *NEXT, DISCONNECT, coordinator(True), advance(200), STEP),
        {**STATIC, "client.rack": "r", "group.remote.assignor": "range", "max.poll.interval.ms": 60_000},
    ),
    Situation("an empty assignment", (*JOIN, assigned_nothing(1), *TAKE, answer(1), *NEXT)),
    Situation("no assignment yet", (*JOIN, answer(1), STEP, *NEXT, answer(2, t=(0,)), *TAKE)),
    Situation(
        "two topics",
        (topic("t"), topic("u"), subscribe("u", "t"), POLL, STEP, answer(1, u=(1, 0), t=(0,)), *TAKE),
    ),
    Situation(
        "regular expression",
        (topic("t"), regex("t.*"), POLL, STEP, answer(1, t=(0,)), *TAKE, answer(1), *NEXT),
    ),
    Situation(
        "regular expression, then nothing",
        (topic("t"), regex("t.*"), POLL, STEP, answer(1), UNSUBSCRIBE, STEP),
    ),
    Situation(
        "subscription changes",
        (*MEMBER, subscribe("t", "u"), POLL, STEP, *NEXT, answer(2, t=(0, 1), u=(0,)), *TAKE),
    ),
    Situation(
        "the interval changes", (*MEMBER, *NEXT, answer(1, 1_000), advance(999), STEP, advance(1), STEP)
    ),
    Situation(
        "the answer is late", (*MEMBER, *NEXT, advance(7_000), STEP, answer(1), STEP, advance(100), STEP)
    ),
    # -- reconciliation ---------------------------------------------------------------------------------
    Situation(
        "partitions are revoked",
        (*MEMBER, *NEXT, answer(1, t=(1,)), STEP, POLL, COMMIT_ENDS, *CALLBACK, *CALLBACK, STEP),
    ),
    Situation(
        "partitions are revoked without commits",
        (
            *JOIN,
            answer(1, t=(0, 1)),
            STEP,
            *CALLBACK,
            STEP,
            *NEXT,
            answer(1, t=(1, 2)),
            STEP,
            POLL,
            *CALLBACK,
            *CALLBACK,
            STEP,
        ),
        NO_COMMIT,
    ),
    Situation(
        "a revocation waits for poll()",
        (*MEMBER, *NEXT, answer(1, t=(1,)), STEP, advance(3_000), STEP, advance(3_000), STEP),
    ),
    Situation(
        "heartbeats go on during a callback",
        (*MEMBER, *NEXT, answer(1, t=(1,)), POLL, COMMIT_ENDS, CALLBACK_BEGINS, *NEXT, answer(1), *NEXT),
    ),
    Situation(
        "the assignment changes while one is reconciled",
        (
            *MEMBER,
            *NEXT,
            answer(1, t=(1,)),
            POLL,
            COMMIT_ENDS,
            *NEXT,
            answer(1, t=(1, 2)),
            *CALLBACK,
            *CALLBACK,
            STEP,
            POLL,
            COMMIT_ENDS,
            *CALLBACK,
            STEP,
            answer(2),
            STEP,
        ),
    ),
    Situation(
        "the assignment changes and changes back",
        (*MEMBER, *NEXT, answer(2, t=(0, 1, 2)), *NEXT, answer(3, t=(0, 1)), POLL, STEP, answer(3), *NEXT),
    ),
    Situation("the same assignment comes again", (*MEMBER, *NEXT, answer(2, t=(0, 1)), *NEXT)),
    Situation(
        "topic id is not known",
        (
            topic("t"),
            subscribe("t", "v"),
            POLL,
            STEP,
            answer(1, t=(0,), v=(0,)),
            *TAKE,
            answer(1),
            STEP,
            POLL,
            topic("v"),
            *TAKE,
        ),
    ),
    Situation(
        "topic id is not known from the beginning",
        (subscribe("t"), POLL, STEP, answer(1, t=(0,)), *TAKE, answer(1), *NEXT, topic("t"), *TAKE),
    ),
    Situation(
        "topic id is forgotten",
        (
            *MEMBER,
            no_topic("t"),
            *NEXT,
            answer(1, t=(0,)),
            STEP,
            POLL,
            COMMIT_ENDS,
            *CALLBACK,
            *CALLBACK,
            STEP,
        ),
    ),
    Situation(
        "only what is not known is new",
        (*MEMBER, *NEXT, answer(2, t=(0, 1), v=(0,)), STEP, STEP, answer(2), STEP, topic("v"), *TAKE),
    ),
    Situation(
        "onPartitionsAssigned fails",
        (
            *JOIN,
            answer(1, t=(0,)),
            STEP,
            POLL,
            COMMIT_ENDS,
            CALLBACK_BEGINS,
            CALLBACK_FAILS,
            STEP,
            POLL,
            COMMIT_ENDS,
            *CALLBACK,
            STEP,
        ),
    ),
    Situation(
        "onPartitionsRevoked fails",
        (
            *MEMBER,
            *NEXT,
            answer(1, t=(1,)),
            POLL,
            COMMIT_ENDS,
            CALLBACK_FAILS,
            STEP,
            POLL,
            COMMIT_ENDS,
            *CALLBACK,
            *CALLBACK,
            STEP,
        ),
    ),
    *TROUBLE,
    # -- leaving ------------------------------------------------------------------------------------------
    *(
        Situation(
            f"unsubscribe, {kind} member",
            (*MEMBER, UNSUBSCRIBE, STEP, *CALLBACK, STEP, answer(-1), STEP, subscribe("u"), POLL, STEP),
            options,
        )
        for kind, options in (("dynamic", {}), ("static", STATIC))
    ),
    Situation("unsubscribe without partitions", (*JOIN, UNSUBSCRIBE, STEP, answer(1), answer(-1))),
    Situation(
        "unsubscribe during a revocation",
        (
            *MEMBER,
            *NEXT,
            answer(1, t=(1,)),
            POLL,
            COMMIT_ENDS,
            UNSUBSCRIBE,
            *CALLBACK,
            *CALLBACK,
            STEP,
            answer(1),
            answer(-1),
        ),
    ),
    Situation(
        "unsubscribe before onPartitionsAssigned",
        (*JOIN, answer(1, t=(0,)), STEP, POLL, COMMIT_ENDS, UNSUBSCRIBE, CALLBACK_BEGINS, STEP),
    ),
    Situation(
        "fenced while unsubscribing",
        (*MEMBER, *NEXT, UNSUBSCRIBE, refused("FENCED_MEMBER_EPOCH"), *CALLBACK, STEP),
    ),
    Situation(
        "fatal error while unsubscribing",
        (*MEMBER, *NEXT, UNSUBSCRIBE, refused("GROUP_AUTHORIZATION_FAILED"), *CALLBACK, STEP),
    ),
    Situation(
        "unsubscribe without a coordinator", (*MEMBER, coordinator(False), UNSUBSCRIBE, *CALLBACK, STEP)
    ),
    *(
        Situation(f"{what} to the leave", (*MEMBER, UNSUBSCRIBE, *CALLBACK, STEP, how, STEP))
        for what, how in (
            ("UNKNOWN_MEMBER_ID", refused("UNKNOWN_MEMBER_ID")),
            ("GROUP_ID_NOT_FOUND", refused("GROUP_ID_NOT_FOUND")),
            ("GROUP_AUTHORIZATION_FAILED", refused("GROUP_AUTHORIZATION_FAILED")),
            ("COORDINATOR_LOAD_IN_PROGRESS", refused("COORDINATOR_LOAD_IN_PROGRESS")),
            ("a lost connection", DISCONNECT),
        )
    ),
    *(
        Situation(f"close with {operation}, {kind} member", (*MEMBER, close(operation), STEP, STEP), options)
        for operation in ("DEFAULT", "LEAVE_GROUP", "REMAIN_IN_GROUP")
        for kind, options in (("dynamic", {}), ("static", STATIC))
    ),
    Situation("close with a heartbeat in flight", (*MEMBER, *NEXT, close(), STEP, answer(1), answer(-1))),
    Situation(
        "close that remains with a heartbeat in flight",
        (*MEMBER, *NEXT, close("REMAIN_IN_GROUP"), STEP, answer(1), STEP),
    ),
    Situation("the last heartbeat", (*MEMBER, close(), END, STEP)),
    Situation("no last heartbeat of a member that remains", (*MEMBER, close("REMAIN_IN_GROUP"), END)),
    Situation("close of a member that never joined", (subscribe("t"), close(), STEP, END)),
)
