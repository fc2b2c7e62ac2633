"""Kafka's errors, in the words of the programs that log them."""

from __future__ import annotations

import re
from typing import Final

UNKNOWN_ERROR: Final = "unknown"
#: Error -> a pattern of the letters of what programs say: names and messages of Kafka, librdkafka, sarama,
#: segmentio/kafka-go, kafka-python, kafkajs. The first that fits counts.
_WORDS: Final = (
    ("NOT_COORDINATOR", "notcoordinator|notthecorrectcoordinator|notcoordinatedbythisbroker"),
    ("COORDINATOR_NOT_AVAILABLE", "coordinator(is)?notavailable"),
    ("COORDINATOR_LOAD_IN_PROGRESS", "(coordinator|group)loadinprogress|coordinatorisloading"),
    ("MEMBER_ID_REQUIRED", "memberidrequired|need(s|sto|sa|stohave|stohavea)validmemberid"),
    ("UNKNOWN_MEMBER_ID", "unknownmember|notawareofthismember|memberisnotknown|memberidwasnotrecognized"),
    ("ILLEGAL_GENERATION", "illegalgeneration|generationidisnot"),
    ("REBALANCE_IN_PROGRESS", "rebalanceinprogress|rebalanceforthegroupisinprogress|rebalancing|undergoinga"),
    (
        "FENCED_INSTANCE_ID",
        "instanceid.*fenced|staticconsumerfenced|rejectedthisstaticconsumer|fencedinstance",
    ),
    ("FENCED_MEMBER_EPOCH", "fencedmemberepoch|memberepochisfenced|memberfenced"),
    ("STALE_MEMBER_EPOCH", "stalememberepoch|memberepochisstale"),
    ("UNRELEASED_INSTANCE_ID", "unreleasedinstanceid|instanceidisstillused"),
    ("INCONSISTENT_GROUP_PROTOCOL", "inconsistentgroupprotocol|protocolsareincompatible"),
    ("GROUP_MAX_SIZE_REACHED", "groupmaxsizereached|reached(its)?max(imum)?size"),
    ("GROUP_AUTHORIZATION_FAILED", "groupauthorizationfailed|notauthorizedtoaccessgroup"),
    ("INVALID_SESSION_TIMEOUT", "invalidsessiontimeout|sessiontimeoutisnotwithin"),
    ("REQUEST_TIMED_OUT", "requesttimedout"),
    ("CommitFailedException", "commitfailed|notpartofanactivegroup|groupha(s|d)alreadyrebalanced"),
)
_PATTERNS: Final = tuple((name, re.compile(words)) for name, words in _WORDS)
_OTHER: Final = re.compile("[^a-z]+")


def error_of(text: str) -> str:
    """The error that ``text`` is about, by Kafka's name; "unknown" if its words are not known."""
    letters = _OTHER.sub("", text.lower())
    return next((name for name, words in _PATTERNS if words.search(letters)), UNKNOWN_ERROR)
