"""Takes off whatever stands around a message in a log: one grammar for every program's lines.

The time in front of a message that is nearest to it counts, so what a collector puts before a line does no
harm; only if a line has none, the collector's time or one behind the message does. Behind a message stand the
ends of what its front has begun (a quotation, a cell, a box), and the logger. `--pattern` names the time of
an unusual log. `Framing` joins the lines that a terminal or a box has broken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html import unescape
from itertools import pairwise
from typing import Any, Final

from groupstorm.imports.times import FORMS, Instant, Order, completed, day_in, instant, number_in, sights
from groupstorm.problems import InputError

_DECODER = json.JSONDecoder()
_OBJECT = re.compile(r'\{\s*"|^\s*\[\s*["\[{]|"\{\s*\\"')
#: Keys of JSON logs that hold a time.
_TIME_KEY = re.compile(r"(?i)time|date|ts\b|instant|epoch|^@?t$")
#: Keys of JSON logs that name the pod of a line, or its log stream (CloudWatch); Datadog's tag.
_POD_KEY = re.compile(r"(?i)[._]pod(?:[._-]?name)?$|[.@]logStream(?:Name)?$")
_POD_TAG = re.compile(r"pod_name:(.+)")
_DATE = re.compile(r"[-/_.]?\d{4}[-/]\d\d[-/]\d\d")  # a log stream may begin anew each day
_POD_LABEL = re.compile(r'[{, ]pod="(?P<label>[^"]+)"')  # of Loki's logcli
_MILLISECONDS = re.compile(r"[.,](\d{3})(?!\d)")
_EPOCH_SECOND = re.compile(r"1\d{9}")
_NESTED_MAX: Final = 20
#: What editors make of quotation marks and spaces.
_TYPESET: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " "})
_ENTITY = re.compile(r"&(?:gt|lt|quot|amp|apos|nbsp|#x?[0-9a-fA-F]{2,4});")
_COLOUR = re.compile(r"(?:\x1b|␛|\^\[|\\u001b|\\x1b|\\033|\\e)\[[\d;]*[A-Za-z]|\[\d{1,3}(?:;\d{1,3})*m")
#: What begins the lines of one of several processes: kubectl's --prefix, docker compose, kubetail, stern.
#: Levels and threads stand there, too.
_NAME = r"[a-z][a-z0-9.]*(?:-[a-z0-9.]+)+"
_ORIGIN = re.compile(
    r"[^\w\[]*(?:\[pod/(?P<pod>[^/\]\s]+)/[^\]\s]+\] "
    r"|(?!(?i:trace|debug|info|warn|warning|error|fatal|critical)\b)(?P<service>[a-zA-Z][\w.-]*) +\| "
    rf"|\[(?![^\]]*(?:thread|pool|exec|sched|task|nio|main))(?P<tail>{_NAME})(?: [\w.-]+)?\] "
    rf"|(?P<stern>{_NAME}) [a-z][\w.-]* )"
)


def user_envelope(pattern: str) -> re.Pattern[str]:
    """The envelope of `--pattern`. Raises InputError."""
    try:
        front = re.compile(pattern + "$")
    except re.error as problem:
        raise InputError(f"--pattern {pattern!r}: not a regular expression: {problem}") from problem
    if "time" not in front.groupindex:
        raise InputError(
            f"--pattern {pattern!r}: expected a regular expression of the text in front of a message, "
            "with the group (?P<time>...)"
        )
    return front


class FrontReader:
    """Finds the times of one log's lines.

    ``own``: the envelope that the user names. ``order``: of the numbers of the log's dates.
    """

    def __init__(self, own: re.Pattern[str] | None, order: Order) -> None:
        self._own = own
        self._order = order
        #: Form of the last time, where it stood, and what stood between it and the message.
        self._last = ("iso", 1, "] INFO ")
        #: The last text up to its milliseconds, the text behind them, and the time without them.
        self._second: tuple[str, str, Instant] | None = None

    def time(self, front: str) -> Instant | None:
        """The time that the text in front of a message says; None if it says none."""
        found = None if self._own is None else self._own.search(front)
        if found is not None:
            return instant(found["time"], "", self._order)
        if self._second is not None:  # lines of one second differ in three digits
            before, behind, second = self._second
            at = len(before)
            digits = front[at : at + 3]
            if front.startswith(before) and front[at + 3 :] == behind and digits.isdecimal():
                return Instant(second.us + int(digits) * 1_000, second.is_utc, second.step_us)
        form, start, rest = self._last
        found = FORMS[form].pattern.match(front, start)
        if found is None or front[found.end() :] != rest:
            seen = sights(front)
            if not seen:
                return number_in(front)
            form, start, end = seen[-1]
            own = instant(front[start:end], form, self._order)
            if own is not None and own.lacks:
                whole = (instant(front[one.start : one.end], one.form, self._order) for one in seen[:-1])
                by = next((one for one in whole if one is not None and not one.lacks), None)
                by = by or day_in(front, self._order)
                return own if by is None else completed(own, by)
            self._last = form, start, front[end:]
        else:
            end = found.end()
            own = instant(found[0], form, self._order)
        self._keep_second(front, start, end, own)
        return own

    def _keep_second(self, front: str, start: int, end: int, said: Instant | None) -> None:
        fraction = _MILLISECONDS.search(front, start, end)
        if said is not None and fraction is not None and not said.lacks:
            at, us = fraction.start(1), said.us - int(fraction[1]) * 1_000
            self._second = front[:at], front[at + 3 :], said._replace(us=us)


#: The logger, its line and the thread; then the time of a collector that puts its own behind.
_COLLECTED = r'[,;|\t] ?"?\d[\dT., /-]{0,30}\d\d:\d\d[\d:.,]*(?: ?Z| ?[+-]\d\d:?\d\d)?"?'
_LOGGER = re.compile(
    r"(?: [\[(](?:kafka|org\.apache|io\.)[\w.$]*(?::\d+|\([\w.]*(?::\d+)?\))?[\])](?: \[[^\]]*\])?"
    rf"(?: - \w+=[\w.-]+(?:, \w+=[\w.-]+)*)?(?:{_COLLECTED})?|{_COLLECTED})\s*$"
)
#: What a logger knows of the thread or the host, as ``{host=a, pod=b}``. Maps of Kafka's have brackets.
_CONTEXT = re.compile(r" \{[A-Za-z_][\w.]*=[^\s{}()\[\],=]*(?:, ?[A-Za-z_][\w.]*=[^\s{}()\[\],=]*)*\}$")
#: As structlog and Monolog print it: ``[aiokafka.conn]``, ``[] []``; Debezium's log has spaces in front.
_BRACKETS = re.compile(r' +(?:\[[a-z_]\w*(?:\.\w+)+\]|(?:\[\]|\{"[^{}]*\}) (?:\[\]|\{"[^{}]*\}))$')
#: What begins in front of a message and ends behind it.
_PAIRS: Final = (
    ("{{", "}}"),
    ("{noformat}", "{noformat}"),
    ("{code", "{code}"),
    ("<![CDATA[", "]]>"),
    ("Str(", ")"),
)
_OPENING = re.compile(r"[\"'`|\t]|\*\*|[,;](?!\d{3}\b| )")
#: The comma in front of a cell, which is none of a time's.
_CELL = re.compile(r'([,;])(?!\d{3}\b| )[^",;]*$')
_TAGS = re.compile(r"(?:<(?:br ?/?|/\w+)>)+$")
#: A quotation mark that ends a cell, or a value of logfmt or JSON.
_CLOSING = re.compile(r'"(?=\s*$|\s*[,;\t|}\])]|\s+[\w.@-]+=)')
_ESCAPES: Final[Mapping[str, str]] = {'\\"': '"', "\\\\": "\\", "\\n": "\n", "\\t": "\t"}


def split_message(front: str, text: str) -> tuple[str, str]:
    """The message that ``text`` begins with, and what stands behind it."""
    message = text
    if _OPENING.search(front):
        if len(re.findall(r'(?<!\\)"', front)) % 2:
            message = _unquoted(text)
        elif "\t" in front:
            message = re.split(r"(?<!\n)\t", text, maxsplit=1)[0]
        elif (cell := _CELL.search(front)) and f"{cell[1]} " not in text:
            message = text.partition(cell[1])[0]  # a cell with commas in it has quotation marks
        if any(front.count(mark) % 2 for mark in ("'", "`", "**")) or front.lstrip().startswith("|"):
            message = re.sub(r"(?:[`'|]|\*\*)[\s,)\]}]*$", "", message)
    for opening, closing in _PAIRS:
        if opening in front:
            message = message.rpartition(closing)[0] or message
    message = message.rstrip(" \r\n│┃\\").removesuffix("```")
    if message.endswith(">"):
        message = _TAGS.sub("", message)
    if message.endswith("}"):
        message = _CONTEXT.sub("", message)
    if message.endswith(("]", "}")):
        message = _BRACKETS.sub("", message)
    at = message.rfind(" (")  # where the logger of most lines begins
    if at < 0 or not _is_logger(message[at:]):
        found = _LOGGER.search(message)
        at = found.start() if found else len(message)
    message = message[:at].rstrip() if at < len(message) else message
    return message, text[len(message) :]


@lru_cache(maxsize=4096)
def _is_logger(text: str) -> bool:
    return _LOGGER.match(text) is not None


def _unquoted(text: str) -> str:
    """The rest of a quotation. Quotation marks in it have a backslash, are doubled, or are as they were."""
    if '\\"' in text:
        end = re.search(r'(?<!\\)"', text)
        return re.sub(r'\\["\\nt]', lambda one: _ESCAPES[one[0]], text[: end.start()] if end else text)
    doubled = text.replace('""', "\0")
    end = re.search('"', doubled)
    if "\0" in doubled and (end is None or _CLOSING.match(doubled, end.start())):
        return (doubled[: end.start()] if end else doubled).replace("\0", '"')
    end = _CLOSING.search(text)
    return text[: end.start()] if end else text


def as_written(text: str) -> str:
    """The text without a terminal's codes of colours, and with what a page made of its characters undone."""
    if "\x1b" in text or "[0m" in text or "^[[" in text:
        text = _COLOUR.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda one: unescape(one[0]), text)
    return text if text.isascii() else text.translate(_TYPESET)


def margin(text: str) -> str:
    """The beginning of a line that names its pod or container; "" if it names none."""
    found = _ORIGIN.match(text)
    return "" if found is None else found[0]


def pod_in(text: str) -> str:
    """The pod or container that the text in front of a message names."""
    found = _ORIGIN.match(text) or _POD_LABEL.search(text)
    return "" if found is None else str(found[found.lastgroup or 0])


def json_in(text: str, end: int) -> tuple[str, Any] | None:
    """The text in front of a line's JSON value that begins before ``end``, and the value."""
    if '{""' in text:  # in a cell of a CSV file
        text = text.replace('""', '"')
    found = _OBJECT.search(text, 0, end)
    if found is None:
        return None
    try:
        value, _ = _DECODER.raw_decode(text.lstrip() if found.start() == 0 else text[found.start() :])
    except (ValueError, RecursionError):
        return None
    return text[: found.start()], value


_LOGFMT = re.compile(r'(?:^|\s)([\w@.-]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))')


def logfmt_in(text: str) -> dict[str, str]:
    """The fields of a line of logfmt."""
    fields = {}
    for name, quoted, plain in _LOGFMT.findall(text):
        fields[name] = re.sub(r'\\["\\nt]', lambda one: _ESCAPES[one[0]], quoted) or plain
    return fields


#: The objects and lists around a text, the outermost first.
Around = tuple[Any, ...]


def texts_in(value: Any, path: str = "", around: Around = ()) -> Iterator[tuple[str, str, Around]]:
    """Every text of a JSON value: its key with those around it, the text, and what stands around it."""
    if isinstance(value, str):
        yield path, value, around
    elif isinstance(value, dict | list) and len(around) < _NESTED_MAX:
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(each, f"{path}.{key}", (*around, value))


def record_of(around: Around) -> Any:
    """The innermost element of a list that a text is in, or else the whole value: it has one message."""
    inner = (one for outer, one in reversed([*pairwise(around)]) if isinstance(outer, list))
    return next(inner, around[0] if around else None)


def collectors_time(around: Around, order: Order) -> Instant | None:
    """The time that a JSON record says beside a text, or else farther out. ``order``: of a date's numbers."""
    for container in reversed(around):
        for key, value in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(key, int) or _TIME_KEY.search(key):
                said = _time_of(value, order)
                if said is not None:
                    return said
    return None


def _time_of(value: Any, order: Order) -> Instant | None:
    if isinstance(value, list) and len(value) == 1:  # fields of Elastic
        value = value[0]
    if isinstance(value, dict) and _TIME_KEY.search(str(value.get("field", ""))):  # CloudWatch's insights
        value = value.get("value")
    if isinstance(value, dict) and "epochSecond" in value:  # log4j's JsonLayout
        value = f"{value['epochSecond']}.{str(value.get('nanoOfSecond', 0)).zfill(9)}"
    if isinstance(value, int) and _EPOCH_SECOND.fullmatch(str(value)):
        value = f"{value}.0"
    return instant(str(value), "", order) if isinstance(value, str | int | float) else None


def pod_of(record: Any) -> str:
    """The pod that a JSON record names; "" if it names none."""
    named = ((_POD_TAG.match(text), _POD_KEY.search(key), text) for key, text, _ in texts_in(record))
    pod = next((tag[1] if tag else text for tag, key, text in named if tag or key), "")
    return _DATE.sub("", pod)


#: No terminal is narrower.
_WIDTH_MIN: Final = 40
#: Looked at where a log's lines begin without a time.
_BEGINNING: Final = 12
#: The time of a line's beginning ends before this character.
_FRONT_MAX: Final = 100
#: The first line of a record of java.util.logging: when, and in which class and method; the message follows.
_JUL = re.compile(r"\w{3} \d\d?, \d{4},? \d\d?:\d\d:\d\d\s[AP]M [\w.$]+(?: [\w.$<>]+)?$")
#: A line of a container runtime (CRI, Docker's json-file), which cuts texts at 16 KB: P, or so long a text
#: without an end of line, goes on in the next one. Collectors take the ends of all lines away.
_RUNTIME = re.compile(r'\S+ std(?:out|err) [FP] |\{"log": ?"')
_UNENDED = re.compile(r'(?<!\\n)", ?"stream": ?"std[^{}]*\}$')
_CUT = re.compile(rf'\S+ std(?:out|err) P |\{{"log": ?".{{16000,}}{_UNENDED.pattern}')
#: The frame of a line: Markdown's quotation, or a box.
_FRAME = re.compile(r"^\s*(?:(?:> ?)+|[│┃║])|\s*[│┃║]\s*$")


class Framing:
    """Sees in the beginning of a log whether its lines are framed, and at which width they are wrapped."""

    def __init__(self, head: str) -> None:
        lines = [line for line in map(as_written, head.splitlines()) if line.strip()]
        self._has_objects = any(line.strip() == "{" for line in lines[:3])
        #: Further lines of a message have the margin, too, and so no indentation.
        self._has_margin = any(map(margin, lines[:3]))
        self._has_headers = any(map(_JUL.match, lines))
        self._has_parts = any(map(_RUNTIME.match, lines[:3]))
        self._is_framed = bool(lines) and _FRAME.search(lines[0]) is not None
        self._padding = 0
        lines = [self._unframed(line) for line in lines]
        if self._is_framed and all(line.startswith(" ") for line in lines):
            self._padding = 1
            lines = [line[1:] for line in lines]
        first = next(filter(_begins_record, lines), lines[0] if lines else "")  # a page may have words above
        self._shape = _shape(first)
        self._width = self._wrapped_at(lines)

    @property
    def is_plain(self) -> bool:
        has_more = self._has_objects or self._has_margin or self._has_headers or self._has_parts
        return not (self._width or self._is_framed or has_more)

    def joined(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Each line as it was, with the number of its first part."""
        first, line, last = 0, "", ""
        for number, raw in lines:
            part = self._unframed(as_written(raw.rstrip("\r\n")))
            if first and self._has_objects and not _ends_object(line, last):
                line += part  # of a JSON record that is printed over several lines
            elif first and self._has_headers and _JUL.match(last):
                first, line = number, f"{line} {part}"
            elif first and self._has_parts and _CUT.match(last):
                line = _UNENDED.sub("", line) + _RUNTIME.sub("", part, count=1)
            elif first and self._goes_on(last, part):
                line = line + " " * (self._width - len(last)) + part  # copies have no spaces at line ends
            else:
                if first:
                    yield first, line
                first, line = number, part
            last = part
        if first:
            yield first, line

    def _unframed(self, line: str) -> str:
        return _FRAME.sub("", line)[self._padding :] if self._is_framed else line

    def _goes_on(self, line: str, following: str) -> bool:
        return 0 <= self._width - len(line) <= 1 and _shape(following) != self._shape

    def _wrapped_at(self, lines: Sequence[str]) -> int:
        """The width of the longest lines, if lines that begin like no other mostly stand behind them.

        0 if the log is not wrapped.
        """
        self._width = max(map(len, lines), default=0)
        if self._width < _WIDTH_MIN:
            return 0
        wrapped = sum(self._goes_on(line, following) for line, following in pairwise(lines))
        unlike = (line for line in lines if _shape(line) != self._shape)
        others = sum(not line.startswith("\t") for line in unlike) - wrapped  # settings are indented
        full = sum(len(line) == self._width for line in lines)
        is_usual = self._is_framed or self._width % 10 == 0 or full > 1
        return self._width if wrapped > others and is_usual else 0


def _ends_object(line: str, last: str) -> bool:
    """Whether ``last`` is the last line of a JSON record that ``line`` begins with, if it begins with one."""
    indentation = line[: len(line) - len(line.lstrip())]
    return not line.lstrip().startswith("{") or last.rstrip(" ,") == f"{indentation}}}"


def _begins_record(line: str) -> bool:
    """Whether a line has a time, or an object."""
    return line.lstrip().startswith("{") or bool(sights(line[:_FRONT_MAX]))


def _shape(line: str) -> str:
    """The beginning that a log's lines have in common: the text before the first time, without its words."""
    seen = [] if line.lstrip().startswith("{") else sights(line[:_FRONT_MAX])
    front, form = (line[: seen[0].start], seen[0].form) if seen else (line[:_BEGINNING], "")
    return re.sub(r"[\w.-]+", "w", front) + form
