"""Spans through OpenTelemetry's SDK: what a collector receives, and what stands in a file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from groupstorm.cli.trace_views import Part, send_spans
from groupstorm.figures.accumulator import WHOLE
from groupstorm.problems import InputError, OutputError
from groupstorm.report.lanes import spans
from groupstorm.trace.reader import read_rows
from tests.command import groupstorm, refused
from tests.imports.importing import import_texts
from tests.imports.test_several_logs import BROKER

NEEDED = "sends spans: pip install 'groupstorm[otel]', or use ./dev test"
BEGIN = "2026-01-31T12:00:00Z"
BEGIN_NS = 1_769_860_800 * 10**9


@pytest.fixture(autouse=True)
def _installed(request: pytest.FixtureRequest) -> None:
    if "without" not in request.node.name:
        pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=NEEDED)


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """A collector on the loopback interface: its URL, and the requests that it got."""
    requests: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, self.headers["Content-Type"], body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Requests are not printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sent(trace: Path, begin: str | None = BEGIN) -> list[Any]:
    """The resources with their spans as a collector parses them."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with collector() as (url, requests):
        send_spans(Part(trace, (), WHOLE), url, begin)
    assert {(path, kind) for path, kind, _ in requests} == {("/v1/traces", "application/x-protobuf")}
    return [one for *_, body in requests for one in ExportTraceServiceRequest.FromString(body).resource_spans]


def of_resources(resources: list[Any]) -> list[Any]:
    return [span for one in resources for scope in one.scope_spans for span in scope.spans]


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_collector_gets_every_span_once(eager: Path) -> None:
    resources = sent(eager)
    found = of_resources(resources)
    by_id = {span.span_id: span for span in found}
    assert len(by_id) == len(found)
    assert len(found) > 100
    names = {span.name.split()[0] for span in found}
    assert names == {"member", "rebalance", "round", "join", "revoke", "sync", "assign"}
    parents = {
        (span.name.split()[0], by_id[span.parent_span_id].name.split()[0])
        for span in found
        if span.parent_span_id
    }
    assert parents == {
        ("round", "rebalance"),
        ("join", "round"),
        ("revoke", "join"),
        ("sync", "join"),
        ("assign", "join"),
    }
    for span in found:
        if span.parent_span_id:
            assert by_id[span.parent_span_id].trace_id == span.trace_id
    (resource,) = {json.dumps(attributes(one.resource)) for one in resources}
    assert json.loads(resource) == {"service.name": "storm", "groupstorm.trace": str(eager)}


def test_every_rebalance_is_a_trace_that_is_linked_to_its_cause(eager: Path) -> None:
    found = of_resources(sent(eager))
    by_id = {span.span_id: span for span in found}
    rebalances = [span for span in found if span.name.startswith("rebalance")]
    assert len({span.trace_id for span in rebalances}) == len(rebalances) > 5
    for span in rebalances:
        (link,) = span.links
        cause = by_id[link.span_id]
        assert cause.name.startswith("member ")
        assert cause.trace_id == link.trace_id != span.trace_id


def test_times_and_attributes(eager: Path) -> None:
    found = of_resources(sent(eager))
    events = {(event.name, (event.time_unix_nano - BEGIN_NS) / 1000) for one in found for event in one.events}
    rows = (json.loads(line) for line in (eager / "trace.jsonl").read_text("utf-8").splitlines())
    rows = (row for row in rows if row.get("event") == "group_state_changed")
    changed = {(row["state"], float(row["time_us"])) for row in rows}
    from_us = 60_000_000  # where the figures of this preset begin
    assert {one for one in changed if one[1] >= from_us} <= events
    (one, *_) = (span for span in found if span.name.startswith("join"))
    known = attributes(one)
    assert known["messaging.system"] == "kafka"
    assert known["messaging.consumer.group.name"] == "storm"
    assert known["messaging.client.id"] == one.name.split()[1]


def test_attributes_have_the_names_of_the_semantic_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import messaging_attributes
    from opentelemetry.semconv.attributes import error_attributes

    assert spans.SYSTEM == messaging_attributes.MESSAGING_SYSTEM
    assert spans.GROUP == messaging_attributes.MESSAGING_CONSUMER_GROUP_NAME
    assert spans.CLIENT == messaging_attributes.MESSAGING_CLIENT_ID
    assert spans.ERROR == error_attributes.ERROR_TYPE


def test_an_imported_trace_has_the_times_of_its_logs(tmp_path: Path) -> None:
    done = import_texts(tmp_path, {"server.log": BROKER})
    found = of_resources(sent(tmp_path / "out", None))
    first_ns = min(span.start_time_unix_nano for span in found)
    assert 0 <= first_ns - done.began_us * 1000 < 60 * 10**9


def test_a_storm_ends_now_unless_its_begin_is_given(eager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lasts_us = max(row["time_us"] for row in read_rows(eager))
    monkeypatch.setattr("groupstorm.cli.trace_views.time_ns", lambda: BEGIN_NS + lasts_us * 1000)
    begins = [
        sorted(span.start_time_unix_nano for span in of_resources(sent(eager, at))) for at in (None, BEGIN)
    ]
    assert begins[0] == begins[1]


def test_a_file_has_the_same_spans_as_lines_of_json(eager: Path, tmp_path: Path) -> None:
    result = groupstorm("trace", str(eager), "--otlp", "out.jsonl", "--begin", BEGIN, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    found = [
        span
        for line in lines
        for one in json.loads(line)["resourceSpans"]
        for scope in one["scopeSpans"]
        for span in scope["spans"]
    ]
    assert result.stdout == f"{len(found):,} spans of 1 group in out.jsonl\n"
    assert sorted(span["name"] for span in found) == sorted(one.name for one in of_resources(sent(eager)))
    for span in found:
        assert len(bytes.fromhex(span["traceId"])) == 16
        assert len(bytes.fromhex(span["spanId"])) == 8
        assert len(bytes.fromhex(span.get("parentSpanId", "00" * 8))) == 8
        assert span["startTimeUnixNano"].isdigit()
        assert all(len(bytes.fromhex(link["traceId"])) == 16 for link in span.get("links", ()))
    ids = {span["spanId"] for span in found}
    assert {span["parentSpanId"] for span in found if "parentSpanId" in span} <= ids


def test_a_collector_that_refuses_is_named(eager: Path) -> None:
    with collector(status=404) as (url, _), pytest.raises(OutputError, match="were not taken") as caught:
        send_spans(Part(eager, (), WHOLE), url, BEGIN)
    assert str(caught.value).startswith(f"--otlp {url}: the spans were not taken: ")
    assert "404" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_half_written_is_left(eager: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        send_spans(Part(eager, (), WHOLE), str(tmp_path / "missing" / "out.jsonl"), BEGIN)

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("groupstorm.report.lanes.otlp.json.dumps", fails)
    with pytest.raises(OutputError, match="No space left on device"):
        send_spans(Part(eager, (), WHOLE), str(tmp_path / "out.jsonl"), BEGIN)
    assert not list(tmp_path.iterdir())


def test_a_time_that_is_none_is_refused(eager: Path) -> None:
    wrong = groupstorm("trace", str(eager), "--otlp", "x", "--begin", "yesterday", cwd=eager)
    assert refused(wrong) == "groupstorm: --begin yesterday: expected a time like 2026-01-31T12:00:00Z"


def test_without_the_sdk_one_line_says_what_to_install(
    eager: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InputError, match=r"pip install 'groupstorm\[otel\]'"):
        send_spans(Part(eager, (), WHOLE), str(tmp_path / "out.jsonl"), BEGIN)
    assert not list(tmp_path.iterdir())
