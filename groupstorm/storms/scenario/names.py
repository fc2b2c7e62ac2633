"""The names that Kafka allows for topics, and those that scenarios and variants may have."""

from __future__ import annotations

import re
from typing import Final

TOPIC_NAME_EXPECTED: Final = "expected letters, digits, . _ and -, at most 249 of them"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Whether Kafka allows a topic of this name (org.apache.kafka.common.internals.Topic)."""
    return _TOPIC_NAME.fullmatch(text) is not None and text not in (".", "..")


def is_name(text: str) -> bool:
    """Whether a folder can have this name: scenarios and variants give theirs to the folders of runs."""
    return _NAME.fullmatch(text) is not None
