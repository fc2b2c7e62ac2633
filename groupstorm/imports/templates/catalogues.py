"""The catalogues that the tables make: one per kind of prefix, and one for messages without; and Kafka's
errors in the words of the programs that log them.

A table has a template a line: its kind (with a + if more lines belong to the message), its source, the only
program that writes it (if no prefix of the message tells), and its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from groupstorm.imports.prefixes import Writer
from groupstorm.imports.template import Catalogue, Template
from groupstorm.tables import rows

#: The kind of a broker's own configuration, which it logs when it starts.
BROKER_CONFIG: Final = "broker-config"
#: The kind of the configuration of a worker of Kafka Connect.
WORKER_CONFIG: Final = "worker-config"
#: The kinds of exceptions that a Java application logs: they name no client.
EXCEPTIONS: Final = frozenset(
    {"commit-exception", "fenced-exception", "join-exception", "rebalance-exception"}
)
#: The kinds of lines about a request that had no answer in time.
LATE: Final = ("heartbeat-late", "join-late", "sync-late", "commit-late", "leave-late")
#: The kind of a broker's line about a partition of __consumer_offsets that takes no records.
APPEND_REFUSED: Final = "append-refused"


def table(name: str) -> tuple[Template, ...]:
    """The templates of one table."""
    return tuple(
        Template(kind.removesuffix("+"), text, where, kind.endswith("+"), program)
        for kind, where, program, text in rows(__package__, name)
    )


_CLASSIC: Final = table("broker_classic")
_OTHER_CLIENTS: Final = table("other_clients")
#: A broker logs these without its prefix: the object `GroupMetadata` writes them.
_WITHOUT_PREFIX: Final = ("Loaded member MemberMetadata", "Static member MemberMetadata", "given member.id")
_BARE: Final = (
    *(template for template in _CLASSIC if template.text.startswith(_WITHOUT_PREFIX)),
    *_OTHER_CLIENTS,
    *table("bare"),
)
TABLES: Final[Mapping[Writer, tuple[Template, ...]]] = {
    Writer.BROKER: (*_CLASSIC, *table("broker_java"), *table("broker_groups")),
    Writer.JAVA: table("java_client"),
    Writer.STREAMS: table("streams"),
    Writer.RDKAFKA: table("librdkafka"),
    Writer.BARE: _BARE,
}

CATALOGUES: Final[Mapping[Writer, Catalogue]] = {
    writer: Catalogue(templates) for writer, templates in TABLES.items()
}
BARE: Final = CATALOGUES[Writer.BARE]


def _beginnings(templates: tuple[Template, ...]) -> re.Pattern[str]:
    literals = {template.text.partition("{")[0] for template in templates}
    return re.compile("|".join(re.escape(one) for one in sorted(literals, key=lambda one: (-len(one), one))))


BARE_BEGINNING: Final = _beginnings(_BARE)
#: Kinds of lines that only coordinators write.
BROKER_KINDS: Final = frozenset(template.kind for template in TABLES[Writer.BROKER]) - {"noted"}
#: The messages of franz-go -> the names of their fields.
FRANZ_GO_FIELDS: Final[Mapping[str, list[str]]] = {
    template.text.partition(";")[0]: re.findall(r"(\w+): ?\{", template.text)
    for template in _OTHER_CLIENTS
    if template.program == Writer.FRANZ_GO
}


UNKNOWN_ERROR: Final = "unknown"
#: Error -> a pattern of the letters of what programs say: names and messages of Kafka, librdkafka, sarama,
#: segmentio/kafka-go, kafka-python, kafkajs. The first that fits counts.
_WORDS: Final = (
    (
        "NOT_COORDINATOR",
        "notcoordinator|notthecorrectcoordinator|notcoordinatedbythisbroker|coordinator.*isincorrect",
    ),
    ("COORDINATOR_NOT_AVAILABLE", "coordinator.*notavailable|^notavailable$"),
    (
        "COORDINATOR_LOAD_IN_PROGRESS",
        "(coordinator|group)loadinprogress|coordinator.*isloading|coordinator.*isstillloading",
    ),
    ("MEMBER_ID_REQUIRED", "memberidrequired|need(s|sto|sa|stohave|stohavea)validmemberid"),
    (
        "UNKNOWN_MEMBER_ID",
        "unknownmember|notawareofthismember|memberisnotknown|member.*isunknown|memberidwasnotrecognized",
    ),
    ("ILLEGAL_GENERATION", "illegalgeneration|generationidisnot"),
    ("REBALANCE_IN_PROGRESS", "rebalanceinprogress|rebalanceforthegroupisinprogress|rebalancing|undergoinga"),
    (
        "FENCED_INSTANCE_ID",
        "instanceid.*fenced|staticconsumerfenced|rejectedthisstaticconsumer|fencedinstance",
    ),
    ("FENCED_MEMBER_EPOCH", "fencedmemberepoch|epochisfenced|memberfenced"),
    ("STALE_MEMBER_EPOCH", "stalememberepoch|memberepochisstale"),
    ("UNRELEASED_INSTANCE_ID", "unreleasedinstanceid|instanceidisstillused"),
    ("INCONSISTENT_GROUP_PROTOCOL", "inconsistentgroupprotocol|protocolsareincompatible"),
    ("GROUP_MAX_SIZE_REACHED", "groupmaxsizereached|reached(its)?max(imum)?size"),
    ("GROUP_AUTHORIZATION_FAILED", "groupauthorizationfailed|notauthorizedtoaccessgroup"),
    ("INVALID_SESSION_TIMEOUT", "invalidsessiontimeout|sessiontimeoutisnotwithin"),
    ("REQUEST_TIMED_OUT", "requesttimedout"),
    ("NOT_LEADER_OR_FOLLOWER", "notleader"),
    ("UNKNOWN_TOPIC_OR_PARTITION", "unknowntopic|doesnothostthistopic"),
    (
        "CommitFailedException",
        "commitfailed|notpartofanactivegroup|groupha(s|d)alreadyrebalanced|membershipoutofdate",
    ),
)
_PATTERNS: Final = tuple((name, re.compile(words)) for name, words in _WORDS)
_OTHER: Final = re.compile("[^a-z]+")


def error_of(text: str) -> str:
    """The error that ``text`` is about, by Kafka's name; "unknown" if its words are not known."""
    letters = _OTHER.sub("", text.lower())
    return next((name for name, words in _PATTERNS if words.search(letters)), UNKNOWN_ERROR)
