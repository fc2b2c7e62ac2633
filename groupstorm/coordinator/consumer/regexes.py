"""Regular expressions in subscriptions: RE2's syntax, matched against whole topic names.

Kafka uses RE2/J 1.8; google-re2 is RE2 itself. `_as_re2_reads_it` evens out where RE2/J reads a text in
another way. RE2 alone refuses nested repetitions of more than 1,000 in all, as ``(a{50}){50}``. Kafka:
TopicRegexResolver, Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

import re
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
    text = _as_re2_reads_it(regex)
    if text is None:
        return None
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeEncodeError):
        return None


#: What can change the meaning of the text behind it: quoted text, an escape, a class, a named group.
_PIECE = re.compile(
    r"\\Q.*?(?:\\E|$) | \\. | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\] | \(\?P?<(?P<name>\w+)>",
    re.DOTALL | re.VERBOSE,
)


def _as_re2_reads_it(regex: str) -> str | None:
    """The expression for RE2; None if RE2/J alone refuses it.

    RE2/J has no ``\\C`` and no two groups of one name, and takes an escaped character that is not ASCII as
    the character.
    """
    names: set[str] = set()
    pieces, at = [], 0
    for piece in _PIECE.finditer(regex):
        text, name = piece.group(), piece["name"]
        if text == "\\C" or name in names:
            return None
        if name is not None:
            names.add(name)
        escapes_itself = len(text) == 2 and text[0] == "\\" and not text[1].isascii()
        pieces += [regex[at : piece.start()], text[1] if escapes_itself else text]
        at = piece.end()
    return "".join([*pieces, regex[at:]])


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
