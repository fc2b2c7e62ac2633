"""Regular expressions in subscriptions: RE2's syntax, matched against whole topic names.

Kafka uses RE2/J 1.8; google-re2 is RE2 itself. `_as_re2_reads_it` evens out where RE2/J reads a text in
another way. RE2 alone refuses programs that are larger than `PROGRAM_BYTES` allows, some 40,000
instructions: a match takes the longer the larger its program.
Kafka: TopicRegexResolver, Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from groupstorm.coordinator.consumer.group import ResolvedRegex
from groupstorm.coordinator.consumer.repetitions import split_repetitions
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import hash_order, string_hash
from groupstorm.problems import InputError
from groupstorm.turns import Turns

#: The least time between two resolutions of a group's expressions
#: (GroupMetadataManager.REGEX_BATCH_REFRESH_MIN_INTERVAL_MS).
REFRESH_INTERVAL_MIN_MS = 10_000


#: The memory that a program and its automata may take (RE2's max_mem).
PROGRAM_BYTES = 1 << 20
#: RE2 looks at every instruction for every character at worst: so many take the time of a unit of work.
_STEPS_PER_WORK = 2_000
#: So many instructions are compiled in the time of a unit of work.
_INSTRUCTIONS_PER_WORK = 40


#: RE2's errors, by their beginnings -> RE2/J's descriptions (com.google.re2j.Parser).
_DESCRIPTIONS = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid UTF-8": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator: (?<": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class _Invalid(Exception):
    """RE2/J does not take the expression; the message is its description."""


@lru_cache(maxsize=1 << 10)
def _compiled(regex: str) -> Any:
    """The expression for `re2`, or `_Invalid` if RE2/J does not take it."""
    # Only groups that subscribe by an expression need it, and it is compiled for few platforms.
    try:
        import re2
    except ImportError as problem:
        raise InputError(f"regular expression {regex!r}: needs google-re2: {problem}") from problem
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_BYTES
    options.never_capture = True  # nobody asks for groups, and they take RE2's slowest way
    try:
        return _compile(re2, _as_re2_reads_it(regex), options)
    except _Invalid as problem:
        return problem
    except UnicodeEncodeError:
        return _Invalid("regexp/syntax: internal error")
    except re2.error as problem:
        said = problem.args[0].decode(errors="replace")
        descriptions = (text for start, text in _DESCRIPTIONS.items() if said.startswith(start))
        return _Invalid(next(descriptions, said))


def _compile(re2: Any, regex: str, options: Any) -> Any:
    """Raises re2.error. RE2/J takes nested repetitions that RE2 refuses, if none is too large by itself."""
    try:
        return re2.compile(regex, options)
    except re2.error as problem:
        is_repetition = problem.args[0].startswith(b"invalid repetition size")
        split = split_repetitions(regex) if is_repetition else None
        if split is None:
            raise
        return re2.compile(split, options)


#: Signs that can change the meaning of the text behind them: quoted text, an escape, a class, a named group.
_PIECE = re.compile(
    r"\\Q.*?(?:\\E|$) | \\. | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*(?:\]|$) | \(\?P?<(?P<name>\w+)>",
    re.DOTALL | re.VERBOSE,
)


def _as_re2_reads_it(regex: str) -> str:
    """The expression for RE2. Raises `_Invalid` if RE2/J alone refuses it.

    RE2/J has no ``\\C`` and no two groups of one name, and takes an escaped character that is not ASCII as
    the character.
    """
    names: set[str] = set()
    pieces, at = [], 0
    for piece in _PIECE.finditer(regex):
        text, name = piece.group(), piece["name"]
        if text == "\\C":
            raise _Invalid("invalid escape sequence")
        if name in names:
            raise _Invalid("duplicate capture group name")
        if name is not None:
            names.add(name)
        escapes_itself = len(text) == 2 and text[0] == "\\" and not text[1].isascii()
        pieces += [regex[at : piece.start()], text[1] if escapes_itself else text]
        at = piece.end()
    return "".join([*pieces, regex[at:]])


def problem_of(regex: str) -> str | None:
    """Why RE2/J does not take the expression, in its words; None if it does."""
    pattern = _compiled(regex)
    return str(pattern) if isinstance(pattern, _Invalid) else None


def matcher_of(regex: str) -> Callable[[str], bool]:
    """Whether the expression matches a text. Raises InputError if RE2/J does not take it."""
    pattern = _compiled(regex)
    if isinstance(pattern, _Invalid):
        raise InputError(f"regular expression {regex!r}: {pattern}")
    return lambda text: pattern.fullmatch(text) is not None


def resolve(
    topics: Topics, regexes: Iterable[str], now_ms: int, may_match: Callable[[str], bool] | None = None
) -> Turns[dict[str, ResolvedRegex]]:
    """The topics that each expression matches now; none for one that RE2 does not take. ``may_match``: which
    topics it may match, None: every one."""
    found = {}
    names, version = tuple(topics.by_name), topics.version
    for regex in hash_order(regexes):
        pattern = _compiled(regex)
        matched = []
        yield 0 if isinstance(pattern, _Invalid) else pattern.programsize // _INSTRUCTIONS_PER_WORK
        for name in () if isinstance(pattern, _Invalid) else names:
            if pattern.fullmatch(name) and (may_match is None or may_match(name)):
                matched.append(name)
                # Both are kept: the group needs the hashes of all of them at once.
                topics.hash_of((name,))
                string_hash(name)
            yield 1 + pattern.programsize * len(name) // _STEPS_PER_WORK
        found[regex] = ResolvedRegex(frozenset(matched), version, now_ms)
    return found
