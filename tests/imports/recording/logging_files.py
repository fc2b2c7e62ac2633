"""Configuration files of log4j: Kafka's own pattern, to a file or to the standard error of a member."""

from __future__ import annotations

from pathlib import Path

from groupstorm.clients.brokers.jars import has_log4j_1

#: The pattern of Kafka's config/log4j.properties and config/log4j2.yaml.
_PATTERN = "[%d] %p %m (%c)%n"

_LOG4J_1 = """\
log4j.rootLogger=INFO, {names}
log4j.appender.stream=org.apache.log4j.ConsoleAppender
log4j.appender.stream.Target=System.{stream}
log4j.appender.stream.layout=org.apache.log4j.PatternLayout
log4j.appender.stream.layout.ConversionPattern={pattern}
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={file}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern={pattern}
"""

_LOG4J_2 = """\
Configuration:
  Appenders:
    Console:
      name: stream
      target: SYSTEM_{STREAM}
      PatternLayout:
        pattern: "{pattern}"
    File:
      name: file
      fileName: {file}
      PatternLayout:
        pattern: "{pattern}"
  Loggers:
    Root:
      level: INFO
      AppenderRef:
{references}"""


def broker_logging(release: str, folder: Path, log: Path) -> Path:
    """A configuration in ``folder`` that logs to standard output and to ``log``."""
    return _write(release, folder / "broker", "out", ("stream", "file"), log)


def member_logging(release: str, folder: Path) -> Path:
    """A configuration in ``folder`` that logs to standard error."""
    return _write(release, folder / "member", "err", ("stream",), Path("/dev/null"))


def _write(release: str, place: Path, stream: str, names: tuple[str, ...], log: Path) -> Path:
    values = {"pattern": _PATTERN, "file": log, "stream": stream, "STREAM": stream.upper()}
    if has_log4j_1(release):
        path, text = place.with_suffix(".properties"), _LOG4J_1.format(names=", ".join(names), **values)
    else:
        references = "".join(f"        - ref: {name}\n" for name in names)
        path, text = place.with_suffix(".yaml"), _LOG4J_2.format(references=references, **values)
    path.write_text(text, "utf-8")
    return path
