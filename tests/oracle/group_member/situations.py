"""The situations of a member of a consumer group: a literal table."""

from __future__ import annotations

from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    CALLBACK_FAILS,
    COMMIT_ENDS,
    DISCONNECT,
    END,
    INTERVAL_MS,
    POLL,
    STEP,
    UNSUBSCRIBE,
    UNSUPPORTED,
    Situation,
    Step,
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
    # -- fencing ----------------------------------------------------------------------------------------
    *(
        Situation(
            f"{error} while stable",
            (*MEMBER, *NEXT, refused(error), STEP, *CALLBACK, STEP, answer(3, t=(0,)), *TAKE),
        )
        for error in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")
    ),
    Situation(
        "fenced before anything is owned",
        (*JOIN, refused("UNKNOWN_MEMBER_ID"), STEP, answer(3, t=(0,)), *TAKE),
    ),
    Situation(
        "fenced during the commit",
        (
            *MEMBER,
            *NEXT,
            answer(1, t=(1,)),
            POLL,
            *NEXT,
            refused("FENCED_MEMBER_EPOCH"),
            *CALLBACK,
            STEP,
            answer(4, t=(2,)),
            STEP,
            POLL,
            COMMIT_ENDS,
            STEP,
            POLL,
            COMMIT_ENDS,
            *CALLBACK,
            STEP,
        ),
    ),
    Situation(
        "fenced during onPartitionsAssigned",
        (
            *JOIN,
            answer(1, t=(0,)),
            STEP,
            POLL,
            COMMIT_ENDS,
            CALLBACK_BEGINS,
            *NEXT,
            refused("FENCED_MEMBER_EPOCH"),
            CALLBACK_ENDS,
            *CALLBACK,
            STEP,
        ),
    ),
    Situation(
        "fenced before onPartitionsAssigned",
        (
            *JOIN,
            answer(1, t=(0,)),
            STEP,
            POLL,
            COMMIT_ENDS,
            *NEXT,
            refused("FENCED_MEMBER_EPOCH"),
            STEP,
            *CALLBACK,
            STEP,
            answer(2, t=(1,)),
            *TAKE,
        ),
    ),
    Situation(
        "onPartitionsLost fails",
        (*MEMBER, *NEXT, refused("UNKNOWN_MEMBER_ID"), CALLBACK_BEGINS, CALLBACK_FAILS, STEP),
    ),
    Situation(
        "unsubscribed while fenced",
        (*MEMBER, *NEXT, refused("UNKNOWN_MEMBER_ID"), UNSUBSCRIBE, *CALLBACK, STEP),
    ),
    # -- errors -----------------------------------------------------------------------------------------
    *(
        Situation(
            f"{error} to a heartbeat",
            (*MEMBER, *NEXT, refused(error), STEP, coordinator(True), STEP, answer(1), *NEXT),
        )
        for error in ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
    ),
    Situation(
        "COORDINATOR_LOAD_IN_PROGRESS again and again",
        (
            *MEMBER,
            *NEXT,
            *(
                each
                for ms in (99, 1, 200, 400, 800, 1_000, 1_000)
                for each in (refused("COORDINATOR_LOAD_IN_PROGRESS"), advance(ms), STEP)
                if ms != 1 or each[0] != "answer"
            ),
        ),
    ),
    Situation(
        "COORDINATOR_LOAD_IN_PROGRESS to a join",
        (*JOIN, refused("COORDINATOR_LOAD_IN_PROGRESS"), STEP, answer(1, t=(0,)), *TAKE),
    ),
    Situation(
        "connection lost",
        (
            *MEMBER,
            *NEXT,
            DISCONNECT,
            STEP,
            advance(50),
            coordinator(True),
            STEP,
            advance(50),
            STEP,
            answer(1),
            *NEXT,
        ),
    ),
    Situation(
        "connection lost while joining",
        (*JOIN, DISCONNECT, coordinator(True), STEP, answer(1, t=(0,)), *TAKE),
    ),
    Situation(
        "coordinator unknown at the first poll()",
        (coordinator(False), subscribe("t"), POLL, STEP, advance(500), STEP, coordinator(True), STEP),
    ),
    *(
        Situation(
            f"{error} while stable",
            (*MEMBER, *NEXT, refused(error), STEP, *CALLBACK, POLL, STEP, close(), STEP),
        )
        for error in (
            "GROUP_AUTHORIZATION_FAILED",
            "FENCED_INSTANCE_ID",
            "INVALID_REQUEST",
            "UNKNOWN_SERVER_ERROR",
            "GROUP_ID_NOT_FOUND",
        )
    ),
    *(
        Situation(f"{error} while joining", (*JOIN, refused(error), STEP, POLL, STEP, UNSUBSCRIBE, STEP))
        for error in (
            "UNRELEASED_INSTANCE_ID",
            "GROUP_MAX_SIZE_REACHED",
            "UNSUPPORTED_ASSIGNOR",
            "INVALID_REGULAR_EXPRESSION",
            "UNSUPPORTED_VERSION",
        )
    ),
    Situation("the broker does not have the API", (*JOIN, UNSUPPORTED, STEP, POLL, STEP)),
    Situation(
        "TOPIC_AUTHORIZATION_FAILED",
        (*MEMBER, *NEXT, refused("TOPIC_AUTHORIZATION_FAILED"), STEP, advance(100), STEP, answer(1)),
    ),
    # -- max.poll.interval.ms -----------------------------------------------------------------------------
    *(
        Situation(
            f"nobody polls, {kind} member",
            (
                *MEMBER,
                advance(5_000),
                STEP,
                answer(1),
                advance(5_000),
                STEP,
                answer(1),
                advance(1_999),
                STEP,
                advance(1),
                STEP,
                answer(-1),
                STEP,
                advance(9_000),
                STEP,
                *CALLBACK,
                STEP,
                POLL,
                STEP,
                answer(4, t=(0,)),
                *TAKE,
            ),
            {**SHORT_POLL, **options},
        )
        for kind, options in (("dynamic", {}), ("static", STATIC))
    ),
    Situation(
        "poll() comes before onPartitionsLost has run",
        (*MEMBER, advance(12_000), STEP, POLL, STEP, *CALLBACK, STEP),
        SHORT_POLL,
    ),
    Situation(
        "nobody polls while joining", (*JOIN, answer(1), advance(12_000), STEP, POLL, STEP), SHORT_POLL
    ),
    Situation(
        "nobody polls during a revocation",
        (
            *MEMBER,
            *NEXT,
            answer(1, t=(1,)),
            POLL,
            COMMIT_ENDS,
            advance(12_000),
            STEP,
            answer(-1),
            CALLBACK_ENDS,
            *CALLBACK,
            POLL,
            STEP,
        ),
        SHORT_POLL,
    ),
    Situation(
        "late poll() of a member that has not left yet",
        (*MEMBER, advance(12_000), POLL, STEP, answer(1), *NEXT),
        SHORT_POLL,
    ),
    *(
        Situation(
            f"{error} reaches a stale member late",
            (*MEMBER, *NEXT, advance(12_000), STEP, refused(error), STEP, *CALLBACK, POLL, STEP),
            SHORT_POLL,
        )
        for error in ("UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED", "COORDINATOR_LOAD_IN_PROGRESS")
    ),
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
