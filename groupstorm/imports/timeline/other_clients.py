"""Members of other clients than Java's, where their lines say things in another way."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final

from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.imports.templates import error_of
from groupstorm.imports.timeline.client import TOO_SLOW, ClientMember
from groupstorm.imports.timeline.group import NO_ID, GroupRecord
from groupstorm.imports.timeline.part import Handlers
from groupstorm.imports.timeline.reasons import REQUIRED, STARTS, UNKNOWN, cause_of_error
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.schema import Source

_CLOSED: Final = "cause: it has left its group, and no line of the process follows"
_CLOSED_BEFORE: Final = f"{_CLOSED}; time: it had left when the coordinator removed it, and logs the answer"
_TOPICS: Final = "topics: the subscription that the process logs after its start"
_METADATA: Final = "metadata-changed"
#: Requests of a group's member.
_GROUP_REQUESTS: Final = frozenset({"Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit"})
_LAST_ERROR: Final = re.compile(r"last error was (.*?)\)")
_NO_ERROR: Final = ("(no error)", "Success")
#: What librdkafka says, and franz-go, when their consumer is closed.
_CLOSES: Final = ("unsubscribe", "context canceled")
#: librdkafka, franz-go and brod: what they say -> the cause of joining again, if it is no error of Kafka's.
_CAUSES: Final = (
    ("max.poll.interval.ms exceeded", TOO_SLOW),
    ("complete cooperative move", "revoked-partitions"),
    ("revoking what we lost", "revoked-partitions"),
    ("Metadata for subscribed topic(s) has changed", _METADATA),
    ("session", "session-timeout"),
    ("connection_down", "coordinator-unknown"),
    ("timeout", "REQUEST_TIMED_OUT"),
)


def cause_of(reason: str) -> str:
    """The cause of joining again, from the words of a client; "unknown" if they are not known."""
    known = next((cause for text, cause in _CAUSES if text in reason), "")
    return known or cause_of_error(error_of(reason))


class OtherMember(ClientMember):
    """A member of librdkafka, aiokafka, kafka-python, franz-go or kafkajs."""

    def __init__(self, group: GroupRecord, client: str) -> None:
        super().__init__(group, client)
        self._plan: dict[str, list[str]] | None = None
        self._plan_member = ""
        #: The first line of segmentio/kafka-go's plan, as long as no generation is said.
        self._planned: Observation | None = None
        #: Lines that tell a part only: the start of a process, its topics, a LeaveGroup that was answered.
        self._started: Observation | None = None
        self._topics: list[str] = []
        self._left: Observation | None = None
        #: The last line of brod in its generation, or of sarama about a session.
        self._said: Observation | None = None
        #: Whether sarama-cluster is in a rebalance.
        self._joins = False
        #: Why librdkafka gives up partitions.
        self._release_cause = "rebalance"

    def take(self, line: Observation, handler: Callable[[Any, Observation], None]) -> None:
        if self._left is not None:
            self._settle_leave(line.kind)
        if self._started is not None and line.kind != "rd-topic":
            self._settle_start()
        super().take(line, handler)

    def finish(self) -> None:
        if self._left is not None:
            self._settle_leave("")
        super().finish()

    # -- joining again ---------------------------------------------------------------------------

    def _rejoin_by_words(self, line: Observation) -> None:
        reason = line.fields.get("reason", "")
        if reason in _CLOSES:
            self._release_cause = "close"
            return
        self._say_last_error(line, reason)
        cause = cause_of(reason)
        if cause == TOO_SLOW:
            self._poll_timeout(line)
            return
        if cause == _METADATA and self._generation is None:
            cause = "first-join"  # librdkafka joins as soon as it knows the topics
        if cause.isupper() and self._losing != TOO_SLOW:
            self._losing = cause
        self._release_cause = "assignment" if line.fields.get("protocol") == "COOPERATIVE" else "rebalance"
        self._ask(line, cause)

    def _commit_refused_rejoins(self, line: Observation) -> None:
        error = error_of(line.fields["said"])
        self._request_refused(line, "OffsetCommit", error)
        self._losing = error
        self._ask(line, cause_of_error(error))

    def _session_expired(self, line: Observation) -> None:
        self._say_last_error(line, line.fields.get("rest", ""))
        self._ask_outside(line, "session-timeout")

    def _say_last_error(self, line: Observation, said: str) -> None:
        """librdkafka says what the last answer was before its session was over."""
        found = _LAST_ERROR.search(said)
        error = UNKNOWN if found is None else error_of(found[1])
        if error != UNKNOWN:
            self._request_refused(line, "Heartbeat", error)

    def _learned(self, line: Observation) -> None:
        if line.fields["member_id"] != NO_ID:
            self._learn(line.fields["member_id"])

    # -- aiokafka and kafka-python ---------------------------------------------------------------

    def _leave_answered(self, line: Observation) -> None:
        """aiokafka logs the same whether it is closed or its application does not poll."""
        self._left = line

    def _settle_leave(self, next_kind: str) -> None:
        """The next line of the process tells which: after a close there is none."""
        line, self._left = self._left, None
        if line is None:
            return
        if next_kind and next_kind not in STARTS:
            self._poll_timeout(self._group.here(line))
            return
        closed: list[Any] = [member_events.MemberClosed(*self._who(), Cause.LEFT)]
        if self._owned:
            closed.insert(0, self._drop(self._group.here(line), [*self._owned], "close"))
        at, why = line, Why([line], _CLOSED)
        if self._removed is not None:
            (at, _), self._removed = self._removed, None
            why = Why([line, at], _CLOSED_BEFORE, inferred=True)
        for step, event in enumerate(closed, start=-len(closed)):
            self._group.emit(at, event, why, Source.MEMBER, step)
        self._tell_leaving(line._replace(order=at.order))

    def _revoked_on_close(self, line: Observation) -> None:
        self._give_up(line, line.fields["partitions"], "close")

    def _cooperative_round(self, line: Observation) -> None:
        """kafka-python says in one line what it was given, and what it gives up and adds of it."""
        self._given, self._updated = line.fields["partitions"], True
        self._give_up(line, line.fields["revoking"], "assignment")
        self._own(line, line.fields["adding"])

    # -- librdkafka ------------------------------------------------------------------------------

    def _rd_started(self, line: Observation) -> None:
        self._started, self._topics, self._release_cause = line, [], "rebalance"
        self._learn(line.fields.get("member_id"))  # KIP-848: the member chooses its id itself

    def _rd_topic(self, line: Observation) -> None:
        """A topic of the subscription: the lines of all come one after the other."""
        self._topics.append(line.fields["topic"])

    def _rd_subscription(self, line: Observation) -> None:
        self._topics = line.fields["topics"]
        self._settle_start()

    def _rd_epoch(self, line: Observation) -> None:
        """Every heartbeat's answer has the member's epoch."""
        self._group.is_modern = True
        self._learn(line.fields["member_id"])
        if line.fields["epoch"] > 0:
            self._generation = line.fields["epoch"]

    def _settle_start(self) -> None:
        """The process has subscribed."""
        started = self._started
        if started is None or not self._topics:
            return
        self._started = None
        self._group.clients[self._client] = True
        event = member_events.MemberStarted(self._group.name, self._client, None, tuple(sorted(self._topics)))
        self._emit(self._group.here(started), event, Why([started], _TOPICS))

    def _rd_joined(self, line: Observation) -> None:
        fields = line.fields
        if fields["generation"] >= 0 and fields["error"] in _NO_ERROR:
            self._joined(line)
            return
        self._learn(fields["member_id"])
        error = error_of(fields["error"])
        if error != REQUIRED:
            self._request_refused(line, "JoinGroup", error)

    def _rd_fatal(self, line: Observation) -> None:
        self._fail(line, error_of(line.fields["said"]))

    def _rd_error(self, line: Observation) -> None:
        """An error that the application logs."""
        said, code = line.fields["said"], line.fields.get("code", "")
        error = error_of(f"{code} {said}")
        if code == "_MAX_POLL_EXCEEDED":
            self._poll_timeout(line)
        elif code == "_FATAL":
            self._rd_fatal(line)
        elif error != UNKNOWN:
            self._request_refused(line, "OffsetCommit" if "ommit" in said else UNKNOWN, error)

    def _rd_synced(self, line: Observation) -> None:
        if line.fields["error"] not in _NO_ERROR:
            self._request_refused(line, "SyncGroup", error_of(line.fields["error"]))
        else:
            self._synced(line)

    def _rd_owned(self, line: Observation) -> None:
        self._own(line, [f"{line.fields['topic']}-{line.fields['partition']}"])

    def _rd_released(self, line: Observation) -> None:
        partition = f"{line.fields['topic']}-{line.fields['partition']}"
        if partition not in self._owned:
            return
        if self._losing == UNKNOWN:
            self._give_up(line, [partition], self._release_cause)
        else:
            self._lose(line, [partition])

    def _rd_running(self, _line: Observation) -> None:
        """The dump of what members subscribe to looks like that of what they are given."""
        self._plan = None

    def _rd_plan(self, line: Observation) -> None:
        if self._generation is None:
            return
        self._plan = {}
        one = self._group.round(self._generation)
        one.finished = line._replace(fields={**line.fields, "assignments": self._plan})
        one.leader, one.protocol = self._id(), line.fields["protocol"]

    def _rd_plan_member(self, line: Observation) -> None:
        if self._plan is not None:
            self._plan_member = line.fields["member_id"]
            self._plan[self._plan_member] = []

    def _rd_plan_partition(self, line: Observation) -> None:
        if self._plan is not None and self._plan_member in self._plan:
            self._plan[self._plan_member].append(f"{line.fields['topic']}-{line.fields['partition']}")

    # -- franz-go --------------------------------------------------------------------------------

    def _fg_synced(self, line: Observation) -> None:
        self._given, self._updated = line.fields["owned_now"], True
        self._synced(line)

    def _fg_session(self, line: Observation) -> None:
        lost = [name for name in line.fields["lost_now"] if name in self._owned]
        self._give_up(line, lost, "assignment")
        self._own(line, line.fields["added"])

    def _fg_refused(self, line: Observation) -> None:
        """The loop of a session ends with the error of its last request, and joins only then."""
        api = "Heartbeat" if self._asked_last and self._asked_last.kind == "rejoin" else "JoinGroup"
        self._request_refused(line, api, error_of(line.fields["said"]))

    # -- kafkajs ---------------------------------------------------------------------------------

    def _kafkajs_joined(self, line: Observation) -> None:
        """It says no generation, and everything that it has now."""
        if "memberId" not in line.fields or "given" not in line.fields:
            return
        self._learn(line.fields["memberId"])
        self._given_now(line)

    def _given_now(self, line: Observation) -> None:
        """A line with everything that it has now."""
        now: list[str] = line.fields["given"]
        gone = [name for name in self._owned if name not in now]
        self._give_up(line, gone, "rebalance", "partitions: the new assignment has not these")
        self._own(line, [name for name in now if name not in self._owned])

    def _kafkajs_rejoin(self, line: Observation) -> None:
        self._learn(line.fields.get("memberId"))
        self._ask(line, "group-rebalancing")

    def _kafkajs_out(self, line: Observation) -> None:
        self._ask_outside(line, "UNKNOWN_MEMBER_ID")

    def _kafkajs_answer(self, line: Observation) -> None:
        """An answer with an error, of a request of the group."""
        error = error_of(line.fields.get("said", ""))
        if error not in (UNKNOWN, REQUIRED) and line.fields["api"] in _GROUP_REQUESTS:
            self._request_refused(line, line.fields["api"], error)

    def _kafkajs_crash(self, line: Observation) -> None:
        said = str(line.fields.get("said", ""))
        error = error_of(said)
        self._fail(line, said.partition(":")[0].strip() if error == UNKNOWN else error)

    # -- segmentio/kafka-go ----------------------------------------------------------------------

    def _go_plan(self, line: Observation) -> None:
        """The leader logs a topic of each member, and only then in which generation they are."""
        if self._planned is None:
            self._planned, self._plan = line, {}
        if self._plan is not None:
            self._plan.setdefault(line.fields["member_id"], []).extend(line.fields["given"])

    def _joined_with_plan(self, line: Observation) -> None:
        self._joined(line)
        planned, self._planned = self._planned, None
        if planned is not None and self._plan is not None:
            said = {"generation": self._generation, "assignments": self._plan}
            self._finished(self._group.here(planned)._replace(fields={**planned.fields, **said}))

    # -- sarama, brod ----------------------------------------------------------------------------

    def _sarama_refused(self, line: Observation) -> None:
        """An error of the coordinator; which request it answers is not said."""
        error = error_of(line.fields["said"])
        if error != UNKNOWN:
            self._request_refused(line, "JoinGroup" if self._joins else UNKNOWN, error)

    def _cluster_rebalance(self, line: Observation) -> None:
        """sarama-cluster says when it joins, and what it has then; it gives up everything before."""
        self._joins = line.fields["step"] == "start"
        if self._joins:
            self._ask(line, UNKNOWN)
        elif line.fields["step"] == "OK":
            self._given_now(line)

    def _brod(self, line: Observation) -> None:
        """Each line says the generation that the member is in."""
        if line.fields["generation"] == self._generation:
            self._said = line
        elif line.fields["generation"] > 0:
            self._asked, self._said = self._asked or self._said, None
            self._joined(line)
        if "reason" in line.fields:
            self._rejoin_by_words(line)
        elif "given" in line.fields:
            self._given_now(line)

    def _partitions_changed(self, line: Observation) -> None:
        self._ask(line, _METADATA)

    def _sarama_session(self, line: Observation) -> None:
        """A session has ended, by a close or because the member joins again: the next one's end tells."""
        self._learn(line.fields["member_id"])
        before, self._said = self._said, line
        if before is not None and before.fields["generation"] < line.fields["generation"]:
            self._ask(self._group.here(before), UNKNOWN)
        self._generation = line.fields["generation"]

    HANDLERS: ClassVar[Handlers] = {
        **ClientMember.HANDLERS,
        "joined": _joined_with_plan,
        "go-plan": _go_plan,
        "go-synced": ClientMember.HANDLERS["synced"],
        "kafkajs-answer": _kafkajs_answer,
        "kafkajs-crash": _kafkajs_crash,
        "sarama-fenced": ClientMember.HANDLERS["failed-for-good"],
        **dict.fromkeys(("sarama-lost", "sarama-refused"), _sarama_refused),
        "sarama-session": _sarama_session,
        "cluster-rebalance": _cluster_rebalance,
        "partitions-changed": _partitions_changed,
        "given-now": _given_now,
        "kafkajs-out": _kafkajs_out,
        "brod": _brod,
        **dict.fromkeys(("rejoin", "rejoin-unnamed", "java-rejoin", "rd-rejoin"), _rejoin_by_words),
        "java-joined": ClientMember.HANDLERS["joined"],
        **dict.fromkeys(("java-joining", "rd-joining"), ClientMember.HANDLERS["joining"]),
        **dict.fromkeys(
            ("java-assigned", "spring-assigned", "given-more"), ClientMember.HANDLERS["assigned"]
        ),
        **dict.fromkeys(("java-revoked", "spring-revoked", "given-up"), ClientMember.HANDLERS["revoked"]),
        **dict.fromkeys(("java-lost", "spring-lost"), ClientMember.HANDLERS["lost"]),
        "commit-refused-rejoins": _commit_refused_rejoins,
        "rd-fatal": _rd_fatal,
        "rd-error": _rd_error,
        **dict.fromkeys(("rd-session", "session-expired"), _session_expired),
        **dict.fromkeys(("learned", "rd-member-id"), _learned),
        "rd-joined": _rd_joined,
        "rd-synced": _rd_synced,
        "rd-owned": _rd_owned,
        "rd-released": _rd_released,
        "rd-plan": _rd_plan,
        "rd-running": _rd_running,
        "rd-plan-member": _rd_plan_member,
        "rd-plan-partition": _rd_plan_partition,
        "rd-left": ClientMember.HANDLERS["leaving"],
        "rd-started": _rd_started,
        "rd-topic": _rd_topic,
        "rd-subscription": _rd_subscription,
        "rd-epoch": _rd_epoch,
        "revoked-on-close": _revoked_on_close,
        "cooperative-round": _cooperative_round,
        "leave-answered": _leave_answered,
        "fg-synced": _fg_synced,
        "fg-session": _fg_session,
        "fg-refused": _fg_refused,
        "kafkajs-joined": _kafkajs_joined,
        "kafkajs-rejoin": _kafkajs_rejoin,
    }
