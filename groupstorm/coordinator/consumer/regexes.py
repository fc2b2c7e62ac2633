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
from typing import Any, NamedTuple

from groupstorm.coordinator.consumer.group import ResolvedRegex
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


#: The most that RE2 repeats, with everything around (RE2's max_repeat), and RE2/J by one repetition.
MOST = 1_000
#: Longer expressions are not written: their programs would be too large.
_LONGEST = 100_000

_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|$)
    | (?P<open>\((?:\?(?:P?<\w+>|[A-Za-z-]*:))?) | (?P<close>\)) | (?P<flags>\(\?[A-Za-z-]+\))
    | (?P<count>\{(?P<least>\d+)(?P<comma>,(?P<most>\d*))?\}\??) | (?P<mark>[*+?]\??)
    | \\[pPx]\{[^}]*\} | \\. | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*(?:\]|$) | .""",
    re.DOTALL | re.VERBOSE,
)


class _Part(NamedTuple):
    """``repeated``: how often its innermost part is repeated by RE2's count."""

    text: str
    repeated: int = 1


def split_repetitions(regex: str, most: int = MOST) -> str | None:
    """The expression without repetitions of more than ``most`` in all; None if it cannot be written so.

    RE2/J takes nested repetitions of which RE2 itself refuses more than 1,000 in all, as ``(a{50}){50}``. One
    that is too large is written as several in a row, each small enough: ``x{1,30}`` is
    ``x{1}x{0,15}x{0,14}``. They match the same texts; nobody asks which part has matched what.
    """
    groups: list[tuple[str, list[_Part]]] = [("", [])]
    for token in _TOKEN.finditer(regex):
        parts, text = groups[-1][1], token.group()
        if token["quoted"] is not None:
            parts += [_Part(re.escape(sign)) for sign in token["quoted"]]
        elif token["open"]:
            groups.append(("(" if "<" in text else text, []))  # a name may stand once only
        elif token["close"] and len(groups) > 1:
            start, inside = groups.pop()
            groups[-1][1].append(_joined(start, inside, ")"))
        elif token["mark"] and parts:
            parts[-1] = parts[-1]._replace(text=parts[-1].text + text)
        elif token["count"] and parts:
            repeated = _repeated(parts[-1], token, most)
            if repeated is None:
                return None
            parts[-1] = repeated
        else:
            parts.append(_Part(text))
    whole = _joined("", groups[0][1], "") if len(groups) == 1 else None
    return None if whole is None or len(whole.text) > _LONGEST else whole.text


def _joined(start: str, parts: list[_Part], end: str) -> _Part:
    inside = "".join(part.text for part in parts)
    return _Part(f"{start}{inside}{end}", max((part.repeated for part in parts), default=1))


def _repeated(part: _Part, token: re.Match[str], most: int) -> _Part | None:
    least = int(token["least"])
    upper = least if not token["comma"] else int(token["most"] or -1)
    count = max(least, upper)
    if count > MOST or -1 < upper < least:
        return None
    at_once = most // part.repeated
    if count <= at_once:
        return _Part(part.text + token["count"], part.repeated * max(count, 1))
    if not at_once or len(part.text) * count > _LONGEST:
        return None
    optional = [f"{{0,{size}}}" for size in _sizes(upper - least, at_once)] if upper >= 0 else ["*"]
    counts = [*(f"{{{size}}}" for size in _sizes(least, at_once)), *optional]
    return _Part("".join(part.text + one for one in counts), part.repeated * at_once)


def _sizes(count: int, most: int) -> list[int]:
    """``count`` in parts of at most ``most``."""
    return [most] * (count // most) + [count % most] * (count % most > 0)
