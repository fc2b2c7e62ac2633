"""Members of other clients than Java's, where their lines say things in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Why
from groupstorm.imports.timeline.client import ClientMember
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.trace.events import member as member_events

_NO_ERROR: Final = ("(no error)", "Success")
#: librdkafka, franz-go and aiokafka: what a heartbeat's error says -> the cause of joining again.
_CAUSES: Final = (
    ("rebalanc", "group-rebalancing"),
    ("REBALANCE_IN_PROGRESS", "group-rebalancing"),
    ("UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"),
    ("UnknownMemberId", "UNKNOWN_MEMBER_ID"),
    ("Unknown member", "UNKNOWN_MEMBER_ID"),
    ("member_id was not recognized", "UNKNOWN_MEMBER_ID"),
    ("ILLEGAL_GENERATION", "ILLEGAL_GENERATION"),
    ("IllegalGeneration", "ILLEGAL_GENERATION"),
    ("generation id is not", "ILLEGAL_GENERATION"),
    ("valid member ID", "first-join"),
    ("session", "session-timeout"),
)


def cause_of(reason: str) -> str:
    """The cause of joining again, from the words of a client; "unknown" if they are not known."""
    return next((cause for text, cause in _CAUSES if text in reason), "unknown")


class OtherMember(ClientMember):
    """A member of librdkafka, aiokafka, kafka-python, franz-go or kafkajs."""

    def __init__(self, group: GroupRecord, client: str) -> None:
        super().__init__(group, client)
        self._plan: dict[str, list[str]] | None = None
        self._plan_member = ""
        more: dict[str, Callable[[Observation], None]] = {
            "rejoin": self._rejoin_by_words,
            "rejoin-unnamed": self._rejoin_by_words,
            "rd-rejoin": self._rejoin_by_words,
            "rd-session": self._session_expired,
            "session-expired": self._session_expired,
            "learned": self._learned,
            "rd-member-id": self._learned,
            "rd-joining": self._joining,
            "rd-joined": self._rd_joined,
            "rd-synced": self._rd_synced,
            "rd-owned": self._rd_owned,
            "rd-released": self._rd_released,
            "rd-plan": self._rd_plan,
            "rd-running": self._rd_running,
            "rd-plan-member": self._rd_plan_member,
            "rd-plan-partition": self._rd_plan_partition,
            "rd-left": self._leaving,
            "fg-synced": self._fg_synced,
            "fg-session": self._fg_session,
            "kafkajs-joined": self._kafkajs_joined,
            "kafkajs-rejoin": self._kafkajs_rejoin,
        }
        self.handlers = {**self.handlers, **more}

    # -- joining again ---------------------------------------------------------------------------

    def _rejoin_by_words(self, line: Observation) -> None:
        cause = cause_of(line.fields.get("reason", ""))
        if cause.isupper():
            self._losing = cause
        self._ask(line, cause)

    def _session_expired(self, line: Observation) -> None:
        self._losing = "session-timeout"
        self._ask(line, "session-timeout")

    def _learned(self, line: Observation) -> None:
        if line.fields["member_id"] not in ("", "(not-set)"):
            self._learn(line.fields["member_id"])

    # -- librdkafka ------------------------------------------------------------------------------

    def _rd_joined(self, line: Observation) -> None:
        fields = line.fields
        if fields["generation"] < 0 or fields["error"] not in _NO_ERROR:
            if fields["member_id"]:
                self._learn(fields["member_id"])
            return
        self._joined(line)

    def _rd_synced(self, line: Observation) -> None:
        if line.fields["error"] in _NO_ERROR and self._generation is not None:
            one = self._group.round(self._generation, line)
            one.synced[self._id()] = line
            one.clients[self._id()] = self._client

    def _rd_owned(self, line: Observation) -> None:
        self._own(line, [f"{line.fields['topic']}-{line.fields['partition']}"])

    def _rd_released(self, line: Observation) -> None:
        partition = f"{line.fields['topic']}-{line.fields['partition']}"
        if partition in self._owned:
            self._drop([partition])
            event = member_events.PartitionsRevoked(
                self._group.name, self._client, self._id(), -1, (partition,), (), (), -1, "rebalance"
            )
            self._emit(line, self._nulls(event))

    def _rd_running(self, _line: Observation) -> None:
        """The dump of what members subscribe to looks like that of what they are given."""
        self._plan = None

    def _rd_plan(self, line: Observation) -> None:
        if self._generation is None:
            return
        self._plan = {}
        one = self._group.round(self._generation, line)
        one.finished = line._replace(fields={**line.fields, "assignments": self._plan})
        one.keep(one.finished, self._group.order)
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
        self._given = line.fields["owned_now"]
        self._updated = True
        if self._generation is not None:
            one = self._group.round(self._generation, line)
            one.synced[self._id()] = line
            one.clients[self._id()] = self._client

    def _fg_session(self, line: Observation) -> None:
        lost = [name for name in line.fields["lost_now"] if name in self._owned]
        if lost:
            self._drop(lost)
            event = member_events.PartitionsRevoked(
                self._group.name, self._client, self._id(), -1, tuple(lost), (), (), -1, "assignment"
            )
            self._emit(line, self._nulls(event))
        self._own(line, line.fields["added"])

    # -- kafkajs ---------------------------------------------------------------------------------

    def _kafkajs_joined(self, line: Observation) -> None:
        """It says no generation, and everything that it has now."""
        if "memberId" not in line.fields or "given" not in line.fields:
            return
        self._learn(line.fields["memberId"])
        now: list[str] = line.fields["given"]
        gone = [name for name in self._owned if name not in now]
        if gone:
            self._drop(gone)
            event = member_events.PartitionsRevoked(
                self._group.name, self._client, self._id(), -1, tuple(gone), (), (), -1, "rebalance"
            )
            self._emit(line, self._nulls(event), Why([line], "partitions: the new assignment has not these"))
        self._own(line, [name for name in now if name not in self._owned])

    def _kafkajs_rejoin(self, line: Observation) -> None:
        if line.fields.get("memberId"):
            self._learn(line.fields["memberId"])
        self._ask(line, "group-rebalancing")
