"""Regular expressions in subscriptions: RE2's syntax, matched against whole topic names.

Kafka uses RE2/J; google-re2 is RE2 itself. Kafka: TopicRegexResolver,
Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from groupstorm.coordinator.consumer.group import ResolvedRegex
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import hash_order

#: The least time between two resolutions of a group's expressions
#: (GroupMetadataManager.REGEX_BATCH_REFRESH_MIN_INTERVAL_MS).
REFRESH_INTERVAL_MIN_MS = 10_000


@lru_cache(maxsize=1 << 10)
def _compiled(regex: str) -> Any:
    """The expression for `re2`; None if RE2 does not take it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except (re2.error, UnicodeEncodeError):
        return None


def is_valid(regex: str) -> bool:
    """Whether RE2 takes the expression."""
    return _compiled(regex) is not None


def resolve(topics: Topics, regexes: Iterable[str], now_ms: int) -> dict[str, ResolvedRegex]:
    """The topics that each expression matches; none for one that RE2 does not take."""
    found = {}
    for regex in hash_order(regexes):
        pattern = _compiled(regex)
        matched = [] if pattern is None else [name for name in topics.by_name if pattern.fullmatch(name)]
        found[regex] = ResolvedRegex(frozenset(matched), topics.version, now_ms)
    return found
