"""From the texts in a template's holes to what they say: partitions, member ids, reasons, settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from groupstorm.imports.prefixes import Prefix, find_prefix
from groupstorm.imports.templates import BROKER_CONFIG, FRANZ_GO_FIELDS, UNKNOWN_ERROR, WORKER_CONFIG

_TOPIC_PARTITION = re.compile(r"TopicPartition\(topic=u?'(?P<topic>[^']*)', partition=(?P<number>\d+)\)")
_NAMED = re.compile(r"(?P<name>[^,\s\[\]{}()'\"]+-\d+)(?=$|[,\s\]})])")
_AT_OFFSET = re.compile(r"([^\s\[]+)\[(\d+)\]@")
DESCRIBED_MEMBER = re.compile(
    r"memberId=(?P<member_id>.*?), groupInstanceId=(?P<instance>.*?), clientId=(?P<client>.*?), "
    r"clientHost=(?P<host>.*?), sessionTimeoutMs=(?P<session_timeout_ms>\d+), "
    r"rebalanceTimeoutMs=(?P<rebalance_timeout_ms>\d+)(?:, supportedProtocols=List\((?P<protocols>.*?)\))?"
)
_GENERATION = re.compile(r"Generation\{generationId=(-?\d{1,18}), memberId='(.*?)', protocol='(.*?)'\}")
_SETTING = re.compile(r"^\s*([\w.]+) = ?(.*)$", re.MULTILINE)
_NAMED_VALUE = re.compile(r"^\s*([A-Z][^:\n]*?):[ \t]+(.*)$", re.MULTILINE)
_OF_MEMBER = re.compile(
    r"([^\s{,][^={}]*?)=(?:Member)?Assignment\((?:partitions=)?(\{.*?\}|\[.*?\])(?:, userData[^)]*)?\)"
)
_TOPIC_ID = re.compile(r"([\w-]{22})=\[([\d, ]*)\]")
_BY_TOPIC = re.compile(r"([\w.-]+):?\[([\d, ]*)\]")
_TOPIC_OF_PARTITION = re.compile(r"([\w.-]+)\([^\[]*\)\[-?\d+\]")
_QUOTED = re.compile(r"'([^']*)'")
_GO_PARTITION = re.compile(r"\{topic:(\S+) partition:(\d+)\}:")
_ERLANG_PARTITION = re.compile(r"([^\s,]+):(?=[,\n])|partition=(\d+) begin_offset=")
_DECODER = json.JSONDecoder()
#: A line of a record as pino-pretty prints it.
_PRETTY = re.compile(r'^ +(\w+): "(.*)"$', re.MULTILINE)
_CLIENT_REASON = re.compile(r"; client reason: (.*)$")


#: The field of an observation that a worker of Kafka Connect has logged.
WORKER = "worker"
_WORK = re.compile(r"(\w+)=(?:'([^']*)'|\[([^\]]*)\]|(-?\d+))")
_WORK_LISTS = ("connectorIds", "taskIds", "revokedConnectorIds", "revokedTaskIds")


def partition_names(text: str) -> list[str]:
    """The partitions of a printed collection, as topic-partition, in its order."""
    if "]@" in text:  # Confluent's client for Go
        return [f"{topic}-{number}" for topic, number in _AT_OFFSET.findall(text)]
    if "TopicPartition(" in text:
        return [f"{one['topic']}-{one['number']}" for one in _TOPIC_PARTITION.finditer(text)]
    return [found["name"] for found in _NAMED.finditer(text)]


def optional(text: str | None) -> str | None:
    """Read an Option as Scala and Java print it: ``Some(x)``, ``Optional[x]``, ``None``, ``null``."""
    if text is None or text in ("None", "null", "Some(null)", "Optional.empty", ""):
        return None
    for before, after in (("Some(", ")"), ("Optional[", "]")):
        if text.startswith(before) and text.endswith(after):
            return text[len(before) : -len(after)]
    return text


def member_ids(text: str) -> list[str]:
    return [one for one in re.split(r",\s*", text.strip()) if one]


def assignments(text: str) -> dict[str, list[str]]:
    """Member id -> its partitions, of ``{m1=Assignment(partitions=[t-0, t-1]), ...}``."""
    found: dict[str, list[str]] = {}
    for one in _OF_MEMBER.finditer(text):
        inside = one[2]
        by_id = [
            f"{topic}-{number}"
            for topic, numbers in _TOPIC_ID.findall(inside)
            for number in member_ids(numbers)
        ]
        found[one[1].strip()] = by_id or ([] if inside.startswith("{") else partition_names(inside))
    return found


def _reason(fields: dict[str, Any]) -> None:
    reason = fields.get("reason")
    if isinstance(reason, str) and (client := _CLIENT_REASON.search(reason)) is not None:
        fields["reason"], fields["client_reason"] = reason[: client.start()], client[1].removesuffix(".")


def _described(fields: dict[str, Any]) -> None:
    found = DESCRIBED_MEMBER.search(fields.pop("description", ""))
    if found is not None:
        fields.update(found.groupdict())


def _topics(text: str) -> list[str]:
    """``a, b`` of Java, or a collection of Python: ``frozenset({'a', 'b'})``."""
    found = _QUOTED.findall(text) if "'" in text else text.split(",")
    return sorted(one.strip() for one in found if one.strip())


def _topics_of_partitions(text: str) -> list[str]:
    """``orders((null))[-1], other((null))[-1]`` of librdkafka."""
    return sorted({*_TOPIC_OF_PARTITION.findall(text)})


def _partitions_of(text: str) -> list[str]:
    """``topic[0 1 2], other[3]`` of franz-go, or ``topic:[0 1 2] other:[3]`` of sarama-cluster."""
    return [
        f"{topic}-{number}"
        for topic, numbers in _BY_TOPIC.findall(text)
        for number in numbers.replace(",", " ").split()
    ]


def _config(fields: dict[str, Any]) -> None:
    settings = dict(_SETTING.findall(fields.pop("rest")))
    fields["settings"] = settings
    fields["group"] = "" if settings.get("group.id") in (None, "null", "") else settings["group.id"]
    fields["client"] = settings.get("client.id")
    fields["instance"] = optional(settings.get("group.instance.id"))


def _broker_config(fields: dict[str, Any]) -> None:
    """Keep what a broker's configuration says about groups."""
    settings = dict(_SETTING.findall(fields.pop("rest")))
    fields["settings"] = {name: value for name, value in settings.items() if name.startswith("group.")}


def _named_values(fields: dict[str, Any]) -> None:
    """``Assigned partitions: [...]`` of a message of several lines."""
    values: Mapping[str, str] = dict(_NAMED_VALUE.findall(fields.pop("rest", "")))
    for name, value in values.items():
        key = name.split(" (")[0].strip().lower().replace(" ", "_").replace("-", "_")
        fields[key] = value.strip() if key == "member" else partition_names(value)


def _work(fields: dict[str, Any]) -> None:
    """``Assignment{error=0, leader='w-1', ..., connectorIds=[a], taskIds=[a-0], ...}`` of Connect."""
    found = {name: (text, names, number) for name, text, names, number in _WORK.findall(fields.pop("work"))}
    fields["leader"] = found.get("leader", ("",))[0]
    fields["error"] = found.get("error", ("", "", "0"))[2]
    fields["offset"] = found.get("offset", ("", "", ""))[2]
    for name in _WORK_LISTS:
        fields[name] = member_ids(found.get(name, ("", ""))[1])


def _generation(fields: dict[str, Any]) -> None:
    """``Generation{generationId=3, memberId='m', protocol='range'}``, or in old releases the number alone."""
    text = fields.pop("described_generation")
    found = _GENERATION.search(text)
    if found is not None:
        fields["generation"], fields["member_id"], fields["protocol"] = int(found[1]), found[2], found[3]
    elif re.fullmatch(r"-?[0-9]{1,18}", text):
        fields["generation"] = int(text)


def _record(fields: dict[str, Any]) -> None:
    """Read the record that kafkajs has beside the message, if a framework's logger puts it behind, or each
    field into a line."""
    text = fields.pop("record")
    found: Any = dict(_PRETTY.findall(text))
    try:
        if not found:
            found, _ = _DECODER.raw_decode(text, text.index("{"))
        elif (given := text.find("{")) >= 0:
            found["memberAssignment"], _ = _DECODER.raw_decode(text, given)
    except ValueError:
        fields.setdefault("said", text)
        return
    if isinstance(found, dict):
        fields.update(json_fields(found))


def _go_map(text: str) -> list[str]:
    """``{topic:t partition:0}:10 {topic:t partition:1}:-1`` of segmentio/kafka-go."""
    return [f"{topic}-{number}" for topic, number in _GO_PARTITION.findall(text)]


def _go_plan(fields: dict[str, Any]) -> None:
    """``member/topic/[0 1 2`` of segmentio/kafka-go: the id of a member has slashes, too."""
    placed, _, numbers = fields.pop("go_plan").rpartition("/[")
    fields["member_id"], _, topic = placed.rpartition("/")
    fields["given"] = [f"{topic}-{number}" for number in numbers.split()]


def _erlang_list(text: str) -> list[str]:
    """Each topic and the partitions behind it, of brod: in lines of their own, or between commas."""
    topic, given = "", []
    for name, number in _ERLANG_PARTITION.findall(f"{text}\n"):
        topic = name or topic
        given += [f"{topic}-{number}"] if number else []
    return given


def as_printed(text: str, beside: Mapping[str, Any]) -> str:
    """A message behind its prefix, if that stands beside it; one of franz-go as its BasicLogger prints it:
    other loggers have its fields beside it."""
    for other in beside.values():
        if isinstance(other, str) and other.startswith("[") and other is not text:
            prefix = find_prefix(f"{other.rstrip()} ")
            if prefix is not None and prefix.message == len(other.rstrip()) + 1:
                return f"{other.rstrip()} {text}"
    names = FRANZ_GO_FIELDS.get(text)
    if not names or not isinstance(beside.get(names[0]), str):
        return text
    return f"{text}; {', '.join(f'{name}: {_go_value(beside.get(name))}' for name in names)}"


def _go_value(value: Any) -> str:
    if isinstance(value, dict):
        topics = [(topic, numbers) for topic, numbers in value.items() if isinstance(numbers, list)]
        if value and not topics:
            return UNKNOWN_ERROR  # zerolog prints the fields of an error that has none that it knows
        return ", ".join(f"{topic}[{' '.join(map(str, numbers))}]" for topic, numbers in topics)
    return "" if value is None else str(value)


#: Hole -> what its text says.
_VALUES: Mapping[str, Callable[[str], Any]] = {
    "member_ids": member_ids,
    **dict.fromkeys(("partitions", "revoking", "adding"), partition_names),
    **dict.fromkeys(("targets", "assignments"), assignments),
    "topics": _topics,
    **dict.fromkeys(("owned_now", "added", "lost_now"), _partitions_of),
}
#: Hole -> the field that its text says, and how.
_RENAMED: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "topic_partitions": ("topics", _topics_of_partitions),
    "go_map": ("given", _go_map),
    "erlang_list": ("given", _erlang_list),
    "by_topic": ("given", _partitions_of),
    "by_topic_gone": ("partitions", _partitions_of),
}
#: Hole -> how its text is read into other fields.
_READERS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "reason": _reason,
    "description": _described,
    "described_generation": _generation,
    "work": _work,
    "record": _record,
    "go_plan": _go_plan,
}
_BY_KIND: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "config": _config,
    WORKER_CONFIG: _config,
    BROKER_CONFIG: _broker_config,
    "assignment-update": _named_values,
    "reconciling": _named_values,
}


def details(kind: str, fields: dict[str, Any], prefix: Prefix | None) -> tuple[str, dict[str, Any]]:
    """The group and the fields of an observation, read as far as they can be."""
    for name in [*fields]:
        if name in _VALUES:
            fields[name] = _VALUES[name](fields[name])
        elif name in _RENAMED:
            said, read = _RENAMED[name]
            fields[said] = read(fields.pop(name))
        elif name in _READERS:
            _READERS[name](fields)
    if kind in _BY_KIND:
        _BY_KIND[kind](fields)
    if "instance" in fields:
        fields["instance"] = optional(fields["instance"])
    if prefix is not None:
        if prefix.client is not None:
            fields["client"] = prefix.client
            fields.setdefault("instance", prefix.instance)
        if prefix.is_worker:
            fields[WORKER] = True
        if prefix.place is not None:
            fields["place"] = prefix.place.rstrip("]")
    group = fields.pop("group", None)
    return (prefix.group if prefix is not None and prefix.group else str(group or "")), fields


def json_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a client's JSON log says beside the message (kafkajs), as far as it is of the right types."""
    fields: dict[str, Any] = {}
    for inner in record.values():  # some loggers have an object for what is beside the message
        if isinstance(inner, dict):
            fields |= json_fields(inner)
    fields |= {
        name: record[name]
        for name in ("groupId", "memberId", "clientId")
        if isinstance(record.get(name), str)
    }
    if isinstance(record.get("error"), str):
        fields["said"] = record["error"]
    given = record.get("memberAssignment")
    if isinstance(given, dict):
        fields["given"] = [
            f"{topic}-{number}"
            for topic, numbers in given.items()
            if isinstance(numbers, list)
            for number in numbers
            if isinstance(number, int)
        ]
    return fields
