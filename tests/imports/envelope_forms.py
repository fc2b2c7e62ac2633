"""The forms in which people paste and collectors store the lines of a log."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple


class Line(NamedTuple):
    """``text``: as its program writes it. ``message``: without its envelope and logger."""

    time: datetime
    text: str
    message: str

    def at(self, form: str) -> str:
        return self.time.strftime(form)[:-3] if form.endswith("%f") else self.time.strftime(form)

    @property
    def collected(self) -> str:
        """The time at which a collector has read the line."""
        return (self.time + timedelta(seconds=6.5)).isoformat() + "Z"

    @property
    def epoch_ms(self) -> int:
        return round((self.time - datetime(1970, 1, 1)).total_seconds() * 1000)


def _csv(*cells: str) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="").writerow(cells)
    return written.getvalue()


def _cell(text: str) -> str:
    """As programs write it that quote only what has to be."""
    return _csv(text) if "," in text or '"' in text else text


def _wrapped(line: str, width: int) -> str:
    return "\n".join(line[at : at + width] for at in range(0, len(line), width))


def _boxed(line: str) -> str:
    return "\n".join(f"│ {part:<120} │" for part in _wrapped(line, 120).split("\n"))


#: Name -> a line in this form. The text's own time counts, or else the one that the form adds.
FORMS: Mapping[str, Callable[[Line], str]] = {
    # -- as the program wrote it, and something around it
    "plain": lambda one: one.text,
    "ANSI colours": lambda one: f"\x1b[32m{one.text}\x1b[0m",
    "ANSI colours without their first character": lambda one: f"[32m{one.text}[0m",
    "backticks": lambda one: f"`{one.text}`",
    "quoted, with a comma": lambda one: f'    "{one.text}",',
    "Markdown quotation": lambda one: f"> {one.text}",
    "Markdown table": lambda one: f"| {one.text} |",
    "k9s": lambda one: _boxed(one.text),
    "wrapped at 80": lambda one: _wrapped(one.text, 80),
    "wrapped at 120": lambda one: _wrapped(one.text, 120),
    "kubectl --timestamps": lambda one: f"{one.collected} {one.text}",
    "kubectl --prefix": lambda one: f"[pod/app-a-7d9f/app] {one.text}",
    "docker compose": lambda one: f"app-1  | {one.text}",
    "stern": lambda one: f"app-a-7d9f app {one.text}",
    "CSV, time first": lambda one: _csv(one.collected, one.text),
    "CSV, message first": lambda one: _csv(one.text, one.collected),
    "Docker JSON": lambda one: json.dumps(
        {"log": one.text + "\n", "stream": "stdout", "time": one.collected}
    ),
    "Datadog": lambda one: json.dumps({"content": {"message": one.text, "timestamp": one.collected}}),
    "Elastic": lambda one: json.dumps({"_source": {"message": one.text, "@timestamp": one.collected}}),
    "GCP textPayload": lambda one: json.dumps({"textPayload": one.text, "timestamp": one.collected}),
    "GCP jsonPayload": lambda one: json.dumps({"jsonPayload": {"message": one.text}, "t": one.collected}),
    "Loki": lambda one: json.dumps({"line": one.text, "timestamp": str(one.epoch_ms * 1_000_000)}),
    "journald": lambda one: json.dumps({"MESSAGE": one.text, "__REALTIME_TIMESTAMP": "1700000000000000"}),
    "JSON in JSON": lambda one: json.dumps({"log": json.dumps({"msg": one.text}), "time": one.collected}),
    "pretty-printed JSON": lambda one: json.dumps(
        {"@timestamp": one.collected, "message": one.text}, indent=2
    ),
    "Loki's streams": lambda one: json.dumps(
        {"streams": [{"stream": {"pod": "a"}, "values": [[str(one.epoch_ms * 1_000_000), one.text]]}]}
    ),
    "YAML": lambda one: f"  textPayload: '{one.text}'",
    "HTML": lambda one: html.escape(one.text),
    "typeset": lambda one: one.text.replace('"', "\u201c").replace(" ", "\u00a0"),
    "something behind": lambda one: f"{one.text} {{host=a}}",
    "grep -n": lambda one: f"server.log:12:{one.text}",
    "syslog": lambda one: f"<134>1 {one.collected} host app 12 - - {one.text}",
    "fenced by backticks": lambda one: f"{one.text}```",
    "Markdown, with a line break": lambda one: f"{one.text}\\",
    "Jira": lambda one: "{noformat}" + one.text + "{noformat}",
    "Confluence": lambda one: "{{" + one.text + "}}",
    "XML": lambda one: f"<event><message><![CDATA[{one.text}]]></message></event>",
    "OpenTelemetry": lambda one: f"Timestamp: {one.collected}\nBody: Str({one.text})\nTrace ID:",
    "Monolog": lambda one: f'[{one.collected}] app.INFO: {one.text} {{"host":"a"}} []',
    "structlog": lambda one: f"{one.collected} [info     ] {one.text} [app.kafka]",
    # -- with a time of the form's own
    "logfmt": lambda one: (
        f'time="{one.time.isoformat()}Z" level=info msg={json.dumps(one.message)} caller=x.go:1'
    ),
    "Kibana": lambda one: (
        f"{one.time:%b} {one.time.day}, {one.at('%Y @ %H:%M:%S.%f')}\t{one.message}\tINFO\tpod-a"
    ),
    "two-digit year": lambda one: f"[{one.at('%y-%m-%d %H:%M:%S.%f')}] [ INFO] {one.message}",
    "day first": lambda one: f"{one.at('%d/%m/%Y %H:%M:%S.%f')} INFO {one.message}",
    "day first, full stops": lambda one: f"{one.at('%d.%m.%Y %H:%M:%S,%f')} INFO {one.message}",
    "common log format": lambda one: f"{one.at('%d/%b/%Y:%H:%M:%S.%f')} +0000 {one.message}",
    "date and time in two columns": lambda one: _csv(
        one.at("%Y-%m-%d"), one.at("%H:%M:%S.%f"), "INFO", one.message
    ),
    "milliseconds since 1970": lambda one: f"{one.epoch_ms} INFO {one.message}",
    "Logstash JSON": lambda one: json.dumps(
        {"@timestamp": one.time.isoformat() + "Z", "message": one.message}
    ),
    "pretty-printed, with its time": lambda one: json.dumps(
        {"message": one.message, "timeMillis": one.epoch_ms}, indent=4
    ),
    "log4j JsonLayout": lambda one: json.dumps(
        {
            "instant": {"epochSecond": one.epoch_ms // 1000, "nanoOfSecond": one.epoch_ms % 1000 * 1_000_000},
            "message": one.message,
        }
    ),
    "GELF": lambda one: json.dumps({"short_message": one.message, "timestamp": one.epoch_ms / 1000}),
    "Grafana CSV, labels first": lambda one: ",".join(
        (_csv('{"app": "a"}'), one.time.isoformat(), _cell(one.message), str(one.epoch_ms), "id")
    ),
    "fields of Elastic": lambda one: json.dumps(
        {"fields": {"@timestamp": [one.time.isoformat() + "Z"], "message": [one.message]}}
    ),
    "CloudWatch's insights": lambda one: json.dumps(
        [
            {"field": "@timestamp", "value": one.at("%Y-%m-%d %H:%M:%S.%f")},
            {"field": "@message", "value": one.message},
        ]
    ),
    "Log Analytics": lambda one: json.dumps(
        {"TimeGenerated": one.at("%m/%d/%Y, %I:%M:%S.%f") + " AM", "LogMessage": one.message}
    ),
    "Debezium": lambda one: (
        f"{one.at('%Y-%m-%d %H:%M:%S,%f')} INFO   ||  {one.message}   [org.apache.kafka.Any]"
    ),
    "time in the line above": lambda one: f"{one.time.isoformat()} info: Kafka[0]\n      {one.message}",
    "time behind the message": lambda one: _csv(one.message, one.at("%Y-%m-%d %H:%M:%S.%f")),
}
