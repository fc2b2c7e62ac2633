"""The command lines of transcripts, taken apart; events and answers as lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from groupstorm.coordinator.classic.subscriptions import assigned_partitions
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    ConsumerGroupHeartbeatResponse,
    DescribeConsumerGroupResponse,
    DescribedConsumerMember,
    DescribeGroupResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    Response,
    SyncGroupResponse,
)
from groupstorm.coordinator.script.clients import topic_uuid
from groupstorm.trace.events import coordinator as events

#: The answers themselves say more.
_ANSWERED = (events.JoinAnswered, events.SyncAnswered)
_LEFT_OUT = ("group", "member", "previous_state", "state")


def event_line(event: events.Event) -> str:
    """The event's name and fields as in a trace; empty for the answers' own events."""
    if isinstance(event, _ANSWERED):
        return ""
    words = [re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()]
    if isinstance(event, events.GroupStateChanged):
        words.append(f"{event.previous_state} -> {event.state}")
    elif isinstance(event, events.MemberReconciled):
        words.append(event.state)
    for name, value in event._asdict().items():
        if name not in _LEFT_OUT and value is not None and value != ():
            text = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"{name}={text}")
    return " ".join(words)


def answer_lines(head: str, response: Response) -> list[str]:
    """The answer in a line, and a line for each of its rows."""
    return [f"{head} {_words(response)}", *(f"   {row}" for row in _rows(response))]


def _words(response: Response) -> str:
    error = getattr(response, "error", Error.NONE)
    match response:
        case ConsumerGroupHeartbeatResponse():
            words = _beaten(response)
        case DescribeConsumerGroupResponse(error=Error.NONE):
            words = f"{response.state} epoch={response.epoch} target={response.assignment_epoch}"
            words += f" assignor={response.assignor}"
        case JoinGroupResponse():
            words = _joined(response)
        case SyncGroupResponse(error=Error.NONE):
            words = f"partitions={_partitions(response.assignment)}"
        case DescribeGroupResponse():
            kind = f" type={response.protocol_type}" if response.protocol_type else ""
            protocol = f" protocol={response.protocol}" if response.protocol else ""
            words = f"{response.state}{kind}{protocol}"
        case LeaveGroupResponse(members=(member,)):
            error, words = error or member.error, ""
        case OffsetCommitResponse(partitions=((_, _, only),)):
            error, words = only, ""
        case _:
            words = ""
    return f"{error.name} {words}".rstrip()


def _joined(response: JoinGroupResponse) -> str:
    if response.error:
        return f"id={response.member_id or 'none'}"
    members = f" members={','.join(member.member_id for member in response.members)}"
    skip = " skip-assignment" if response.skip_assignment else ""
    return (
        f"generation={response.generation} id={response.member_id} leader={response.leader}"
        f" protocol={response.protocol}{members if response.members else ''}{skip}"
    )


def _beaten(response: ConsumerGroupHeartbeatResponse) -> str:
    if response.error:
        return ""
    assignment = response.assignment
    if assignment is None:
        return f"epoch={response.member_epoch}"
    names = {topic_uuid("t"): "t"}
    partitions = [
        f"{names[topic]}-{number}" for topic, numbers in assignment.items() for number in sorted(numbers)
    ]
    return f"epoch={response.member_epoch} partitions={','.join(partitions) or 'none'}"


def _described(member: DescribedConsumerMember) -> str:
    words = [f"{member.member_id}{_instance(member.instance)} epoch={member.epoch}"]
    for what, partitions in (("has", member.assignment), ("target", member.target)):
        listed = [f"{topic}-{number}" for topic, numbers in partitions.items() for number in numbers]
        words.append(f"{what}={','.join(listed) or 'none'}")
    return " ".join([*words, *(["classic"] if member.is_classic else [])])


def _rows(response: Response) -> list[str]:
    rows: list[str] = []
    match response:
        case DescribeConsumerGroupResponse():
            rows = [_described(member) for member in response.members]
        case DescribeGroupResponse():
            rows = [
                f"{member.member_id}{_instance(member.group_instance_id)}"
                f" partitions={_partitions(member.assignment)}"
                for member in response.members
            ]
        case ListGroupsResponse():
            rows = [
                f"{group.group} {group.state} type={group.protocol_type or 'none'} kind={group.group_type}"
                for group in response.groups
            ]
        case LeaveGroupResponse() if len(response.members) > 1:
            rows = [
                f"{member.member_id or 'no id'}{_instance(member.group_instance_id)} {member.error.name}"
                for member in response.members
            ]
        case OffsetFetchResponse():
            rows = [
                f"{topic}-{number} offset={committed.offset} {error.name}"
                for topic, number, committed, error in response.partitions
            ]
        case OffsetCommitResponse(partitions=(_,)):
            pass
        case OffsetDeleteResponse() | OffsetCommitResponse():
            rows = [f"{topic}-{number} {error.name}" for topic, number, error in response.partitions]
    return rows


def _instance(instance: str | None) -> str:
    return f" instance={instance}" if instance else ""


def _partitions(assignment: bytes) -> Any:
    return ",".join(assigned_partitions(assignment) or ()) or "none"


class CommandLine(NamedTuple):
    """A command line: ``names`` are its bare words, ``options`` the others."""

    command: str
    names: list[str]
    options: dict[str, str]

    @classmethod
    def of(cls, line: str) -> CommandLine:
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        return cls(command, [word for word in words if "=" not in word], options)

    def offsets(self) -> dict[str, dict[str, int]]:
        """The options that are partitions, as in ``t-0=5``."""
        offsets: dict[str, dict[str, int]] = {}
        for name, value in self.options.items():
            if (match := re.fullmatch(r"(\w+)-(\d+)", name)) is not None:
                offsets.setdefault(match[1], {})[match[2]] = int(value)
        return offsets


def milliseconds(text: str) -> int:
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", text)
    assert match is not None, f"{text} is no duration"
    return int(match[1]) * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}[match[2]]


def value_of(text: str) -> int | str:
    """A number, a text, or "$-1" for "-1": one below the client's own."""
    if text[0] in "+-":
        return f"${text}"
    return int(text) if text.isdigit() else text


def by_topic(partitions: Iterable[str]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, _, number in (partition.rpartition("-") for partition in partitions if partition):
        topics.setdefault(topic, []).append(int(number))
    return topics
