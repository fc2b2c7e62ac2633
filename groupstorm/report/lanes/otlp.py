"""Spans through OpenTelemetry's SDK: to a collector over HTTP, or as the JSON lines of its file exporter."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from groupstorm.problems import InputError, OutputError, writing
from groupstorm.report.lanes.spans import Span
from groupstorm.trace.writer import complete_or_absent
from groupstorm.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, Tracer
    from opentelemetry.trace import SpanContext

#: So many spans are sent, or written, at once.
BATCH: Final = 512
#: Seconds for which a request to a collector is repeated.
_TIMEOUT_SECONDS: Final = 10.0
_HTTP: Final = ("http://", "https://")
#: Ids are hexadecimal in OTLP's JSON, where protobuf's own mapping has base64.
_IDS: Final = ("traceId", "spanId", "parentSpanId")

#: Takes spans that have ended.
Export = Callable[[Sequence["ReadableSpan"]], None]


def check_installed() -> None:
    """Raises InputError that says what to install."""
    for name in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"):
        try:
            import_module(name)
        except ImportError as problem:
            raise InputError(
                "--otlp needs OpenTelemetry's SDK and its OTLP exporter: pip install 'groupstorm[otel]'"
            ) from problem


@contextmanager
def destination(target: str) -> Iterator[Export]:
    """Where spans go: to a collector at an http URL, else into a file that is complete or not there.

    Raises OutputError if the collector does not take them, or the file cannot be written.
    """
    if target.startswith(_HTTP):
        yield from _collector(target)
    else:
        yield from _file(Path(target))


class Exporter:
    """Makes spans of one group. ``begun_ns``: when the trace began, in nanoseconds since 1970."""

    def __init__(self, group: str, trace: str, begun_ns: int, export: Export) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        resource = Resource(_utf8({"service.name": group, "groupstorm.trace": trace}))
        provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._tracer: Tracer = provider.get_tracer("groupstorm", __version__)
        self._begun_ns = begun_ns
        #: Until there are enough for a batch: the SDK's own batches drop what comes too fast.
        self._ended: list[ReadableSpan] = []
        self._export = export
        self._contexts: dict[int, SpanContext] = {}
        self.count = 0

    def add(self, root: Span) -> None:
        """Make the spans of a trace. Spans that it is linked to were added before, or are in it."""
        self._make(root, None)
        while len(self._ended) >= BATCH:
            self._send(BATCH)

    def finish(self) -> None:
        """Send what is left."""
        while self._ended:
            self._send(BATCH)

    def _send(self, count: int) -> None:
        self._export(self._ended[:count])
        self.count += len(self._ended[:count])
        del self._ended[:count]

    def _make(self, span: Span, parent: Any) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, Status, StatusCode, set_span_in_context

        made = self._tracer.start_span(
            _utf8(span.name),
            context=Context() if parent is None else set_span_in_context(parent, Context()),
            start_time=self._ns(span.from_us),
            attributes=_utf8(span.attributes),
            links=[Link(self._contexts[id(one)]) for one in span.links],
        )
        self._contexts[id(span)] = made.get_span_context()
        for name, time_us in span.events:
            made.add_event(_utf8(name), timestamp=self._ns(time_us))
        if span.error:
            made.set_status(Status(StatusCode.ERROR, _utf8(span.error)))
        for child in span.children:
            self._make(child, made)
        made.end(self._ns(span.to_us))
        self._ended.append(made)

    def _ns(self, time_us: int) -> int:
        return self._begun_ns + time_us * 1000


def _utf8(value: Any) -> Any:
    """``value`` with an escape for half a surrogate pair, which JSON can hold and Protobuf cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {name: _utf8(one) for name, one in value.items()}
    return [*map(_utf8, value)] if isinstance(value, list | tuple) else value


def _collector(url: str) -> Iterator[Export]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    exporter = OTLPSpanExporter(endpoint=url, timeout=_TIMEOUT_SECONDS)
    with _messages("opentelemetry") as messages:

        def export(spans: Sequence[ReadableSpan]) -> None:
            if exporter.export(spans) is not SpanExportResult.SUCCESS:
                why = "; ".join(messages[-2:]) or "no reason was given"
                raise OutputError(f"--otlp {url}: the spans were not taken: {why}")

        try:
            yield export
        finally:
            exporter.shutdown()


@contextmanager
def _messages(logger_name: str) -> Iterator[list[str]]:
    """The library's messages in the block, which are not printed: an exporter only logs why it fails."""
    messages: list[str] = []
    logger = logging.getLogger(logger_name)

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(" ".join(record.getMessage().split()))

    keep, propagated = Keep(), logger.propagate
    logger.addHandler(keep)
    logger.propagate = False
    try:
        yield messages
    finally:
        logger.removeHandler(keep)
        logger.propagate = propagated


def _file(path: Path) -> Iterator[Export]:
    with complete_or_absent(path) as partial:
        with writing(path):
            file = partial.open("w", encoding="utf-8", newline="\n")
        with file:
            yield lambda spans: _write_line(path, file, spans)
            with writing(path):
                file.flush()


def _write_line(path: Path, file: IO[str], spans: Sequence[ReadableSpan]) -> None:
    """One request as a line, as OTLP's JSON encoding has it."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    request = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for span in _spans_of(request):
        for holder in (span, *span.get("links", ())):
            holder.update({name: base64.b64decode(holder[name]).hex() for name in _IDS if name in holder})
    with writing(path):
        file.write(json.dumps(request, ensure_ascii=False, separators=(",", ":")) + "\n")


def _spans_of(request: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for of_resource in request["resourceSpans"]:
        for of_scope in of_resource["scopeSpans"]:
            yield from of_scope["spans"]
