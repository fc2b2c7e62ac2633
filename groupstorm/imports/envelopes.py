"""What stands around a message in a log: the table of envelopes, and how to take one off.

An envelope is recognized by the text in front of the message. Times that an unknown envelope prints are found
all the same: the one nearest to the message counts. `--pattern` adds an envelope.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from groupstorm.imports.times import FORMS, Instant, instant, nearest_to_the_end
from groupstorm.problems import InputError

_ISO, _SHORT, _EPOCH, _SYSLOG, _CLOCK = (
    FORMS[name].pattern for name in ("iso", "short", "epoch", "syslog", "clock")
)


class Envelope(NamedTuple):
    """``front``: the end of the text in front of a message, with the group ``time``. ``form``: of the time;
    "" for any, or if there is none. ``example``: a line's beginning."""

    name: str
    form: str
    front: re.Pattern[str]
    example: str


def _row(name: str, form: str, front: str, example: str) -> Envelope:
    return Envelope(name, form, re.compile(front + r"$"), example)


#: The first that fits counts; each log remembers the last one that fitted.
ENVELOPES: tuple[Envelope, ...] = (
    _row("log4j", "iso", rf"\[(?P<time>{_ISO})\] [A-Z]+ +", "[2024-11-18 14:36:14,337] INFO "),
    _row("strimzi", "iso", rf"(?P<time>{_ISO}) [A-Z]+ +", "2021-05-04 16:41:31,006 INFO "),
    _row(
        "confluent-operator",
        "iso",
        rf"\[[A-Z]+ *\] (?P<time>{_ISO}) \[[^\]]*\] \S+ \S+ - (?:\w+=\S*,? )*- ",
        "[INFO] 2026-07-23 19:36:22,834 [thread] class method - app=kafka, clusterId=x, server=0 - ",
    ),
    _row(
        "hadoop",
        "short",
        rf"(?P<time>{_SHORT}) [A-Z]+ [\w.$]+: ",
        "19/07/12 11:01:54 INFO group.GroupCoordinator: ",
    ),
    _row(
        "spring-boot",
        "iso",
        rf"(?P<time>{_ISO}) +[A-Z]+ \d+ --- (?:\[[^\]]*\] ?)+ *[\w.$\[\]/]+ *: ",
        "2023-04-24 20:21:29.202  INFO 22292 --- [thread] o.a.k.c.c.internals.ConsumerCoordinator  : ",
    ),
    _row(
        "logback",
        "iso",
        rf"(?P<time>{_ISO}) +[A-Z]+ +\[[^\]]*\] [\w.$]+ - ",
        "2026-03-16 16:48:36.276 INFO  [thread] o.a.k.c.c.i.ShareMembershipManager - ",
    ),
    _row(
        "log4j-clock",
        "clock",
        rf"(?P<time>{_CLOCK}) \[[A-Z]+ *\] (?:\[[^\]]*\] ?)+ *- ",
        "22:33:44.055 [INFO] [class:1072] [thread] - ",
    ),
    _row("csv", "iso", rf'^"(?P<time>{_ISO})"(?:,"[^"]*")*,"', '"2025-08-31T21:03:18.622Z","host","app","'),
    _row(
        "python-logging",
        "iso",
        rf"(?P<time>{_ISO}) - [\w.]+ - [A-Z]+ - ",
        "2019-04-10 07:43:54,677 - kafka.coordinator - INFO - ",
    ),
    _row(
        "python-thread", "iso", rf"(?P<time>{_ISO}) \S+ [A-Z]+ +", "2017-04-08 13:01:04,838 MainThread INFO "
    ),
    _row(
        "librdkafka",
        "epoch",
        rf"%\d\|(?P<time>{_EPOCH})\|\w+\|[^|]*\| ?",
        "%7|1647975767.929|REBALANCE|rdkafka#consumer-1| ",
    ),
    _row("librdkafka-net", "iso", rf"(?P<time>{_ISO}) \w+ \| ?", "2022-03-03T19:31:50.528477043Z Debug | "),
    _row(
        "librdkafka-ruby",
        "iso",
        rf"[A-Z], \[(?P<time>{_ISO}) #\d+\] +[A-Z]+ -- : (?:rdkafka: )?",
        "D, [2023-06-09T09:35:10.457254 #1] DEBUG -- : rdkafka: ",
    ),
    _row(
        "librdkafka-cpp",
        "iso",
        rf"(?P<time>{_ISO}): LOG-\d-\w+: ",
        "2021-02-10 08:49:47.862: LOG-7-CGRPJOINSTATE: ",
    ),
    _row("librdkafka-node", "", r"\{ severity: \d, fac: '\w+' \} ", "{ severity: 7, fac: 'JOINGROUP' } "),
    _row(
        "rdkafka-cpp-event", "", r"RDKAFKA-\d-\w+: [^:]*: ", "RDKAFKA-7-CGRPJOINSTATE: rdkafka#consumer-1: "
    ),
    _row(
        "librdkafka-old",
        "iso",
        rf"\d\|(?P<time>{_ISO})\|[^|]*\|\w+\| ",
        "7|2016-09-15 09:13:58.648|rdkafka#consumer-1|SYNCGROUP| ",
    ),
    _row("franz-go", "syslog", rf"(?P<time>{_SYSLOG}) ?\[[A-Z]+\] ", "Feb 27 09:17:17.924[INFO] "),
    _row("go-log", "iso", rf"\[[A-Z]+\] (?P<time>{_ISO}) ", "[INFO] 2022/08/17 21:03:02 "),
    _row(
        "logstash",
        "",
        r"\[[A-Z]+ *\]\[[\w.$]+\] ",
        "[INFO ][org.apache.kafka.clients.consumer.internals.AbstractCoordinator] ",
    ),
)

#: Keys of JSON logs that hold the time and the message.
_JSON_TIMES = ("@timestamp", "timestamp", "time", "ts", "datetime", "instant")
_JSON_MESSAGES = ("message", "msg", "log", "MESSAGE")


def user_envelope(pattern: str) -> Envelope:
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
    return Envelope("--pattern", "", front, "")


class EnvelopeReader:
    """Takes envelopes off the lines of one log, and counts which there were."""

    def __init__(self, own: Envelope | None = None) -> None:
        self._table = ENVELOPES if own is None else (own, *ENVELOPES)
        self._last: Envelope = self._table[0]
        self.counts: dict[str, int] = {}

    def time(self, front: str) -> Instant | None:
        """The time that the text in front of a message says; None if it says none."""
        found = self._last.front.search(front)
        if found is None:
            for envelope in self._table:
                found = envelope.front.search(front)
                if found is not None:
                    self._last = envelope
                    break
            else:
                self._count("other" if front.strip() else "none")
                return nearest_to_the_end(front)
        self._count(self._last.name)
        if "time" not in self._last.front.groupindex:
            return None
        return instant(found["time"], self._last.form)

    def json(self, record: dict[str, Any]) -> tuple[Instant | None, str | None]:
        """The time and the message of a JSON log's record."""
        message = next((record[key] for key in _JSON_MESSAGES if isinstance(record.get(key), str)), None)
        said = next((record[key] for key in _JSON_TIMES if isinstance(record.get(key), str)), None)
        if message is not None:
            self._count("json")
        return (None if said is None else instant(said)), message

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


#: What may stand behind a message: the logger, its line, the thread; the second time of a CloudWatch export.
_LOGGER = re.compile(r" \((?:kafka|org\.apache|io\.)[\w.$]*(?::\d+)?\)(?: \[[^\]]*\])?(?:,[-\d :.]+)?\s*$")


def without_tail(message: str) -> str:
    """The message without what envelopes put behind it."""
    found = _LOGGER.search(message)
    return (message[: found.start()] if found else message).rstrip()
