"""The situations of a member that is fenced, refused, cut off, or not polled for too long."""

from __future__ import annotations

from tests.oracle.group_member.parts import CALLBACK, JOIN, MEMBER, NEXT, SHORT_POLL, STATIC, TAKE
from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    CALLBACK_FAILS,
    COMMIT_ENDS,
    DISCONNECT,
    POLL,
    STEP,
    UNSUBSCRIBE,
    UNSUPPORTED,
    Situation,
    advance,
    answer,
    close,
    commit_answer,
    coordinator,
    refused,
    subscribe,
)

#: A member that commits before it gives t-0 up.
REVOKES = (*MEMBER, *NEXT, answer(1, t=(1,)), POLL, STEP)

TROUBLE: tuple[Situation, ...] = (
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
    # -- the commit before a revocation ----------------------------------------------------------------
    *(
        Situation(
            f"{error} to a commit",
            (
                *REVOKES,
                commit_answer(error),
                STEP,
                coordinator(True),
                STEP,
                advance(100),
                STEP,
                COMMIT_ENDS,
                STEP,
            ),
        )
        for error in (
            "COORDINATOR_LOAD_IN_PROGRESS",
            "NOT_COORDINATOR",
            "REQUEST_TIMED_OUT",
            "DISCONNECT",
            "STALE_MEMBER_EPOCH",
            "UNKNOWN_MEMBER_ID",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "GROUP_AUTHORIZATION_FAILED",
            "TOPIC_AUTHORIZATION_FAILED",
        )
    ),
    Situation(
        "a commit is repeated until its deadline",
        (
            *REVOKES,
            *(
                each
                for ms in (100, 200, 400, 800, 1_000, 9_500, 10_000)
                for each in (
                    *(commit_answer("REQUEST_TIMED_OUT"), coordinator(True)),
                    *(POLL, advance(ms), STEP),
                )
            ),
            STEP,
        ),
        SHORT_POLL,
    ),
    Situation(
        "the deadline of a commit ends when its pause does",
        (
            *(*REVOKES, advance(11_900), POLL, commit_answer("COORDINATOR_LOAD_IN_PROGRESS")),
            *(advance(99), STEP, advance(1), STEP),
        ),
        SHORT_POLL,
    ),
    Situation(
        "a commit goes on with the new epoch",
        (*REVOKES, commit_answer("STALE_MEMBER_EPOCH"), *NEXT, answer(7), advance(100), STEP, COMMIT_ENDS),
    ),
    Situation(
        "a commit of a fenced member is not repeated",
        (
            *REVOKES,
            *NEXT,
            refused("FENCED_MEMBER_EPOCH"),
            commit_answer("STALE_MEMBER_EPOCH"),
            STEP,
            *CALLBACK,
            STEP,
        ),
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
)
