"""The control interface over HTTP: on the fixture, and at `groupstorm serve --control`."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import groupstorm
from groupstorm.coordinator.errors import Error
from groupstorm.testing import EmulatedBroker
from groupstorm.testing import http as limits
from groupstorm.testing.control import METHODS
from groupstorm.testing.http import MAX_BODY_BYTES, MAX_HEAD_BYTES
from tests.broker import wire
from tests.broker.wire import DEADLINE_S, RawClient
from tests.command import ROOT
from tests.processes import next_line, outcome_of, run_process
from tests.testing.members import AT_ONCE, GROUP, RawMember, address

JSON = {"Content-Type": "application/json"}
Answer = tuple[int, Any]


class Http:
    """Asks the control interface at a URL."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        assert place.port is not None
        self.place = (place.hostname, place.port)

    def ask(self, verb: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(*self.place, timeout=DEADLINE_S)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(verb, path, content, JSON if headers is None else headers)
            answer = connection.getresponse()
            assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def send(self, raw: bytes) -> int:
        """The status of the answer to these bytes."""
        with socket.create_connection(self.place, timeout=DEADLINE_S) as connection:
            connection.sendall(raw)
            first = connection.makefile("rb").readline()
        return int(first.split()[1])


@pytest.fixture
def broker() -> Iterator[EmulatedBroker]:
    with groupstorm.broker({"orders": 2}, AT_ONCE, brokers=2, control=True) as running:
        yield running


@pytest.fixture
def control(broker: EmulatedBroker) -> Http:
    assert broker.control_url is not None
    return Http(broker.control_url)


def coordinator_of(broker: EmulatedBroker) -> int:
    """GROUP's coordinator, as the number of its address."""
    with RawClient(address(broker)) as client:
        found = client.ask(wire.FIND_COORDINATOR, 0, key=GROUP)
    return int(found.node_id) - 1


def test_it_lists_what_it_takes(control: Http) -> None:
    status, answer = control.ask("GET", "/")
    assert status == 200
    assert answer["methods"] == {method.title: method.help for method in METHODS}


def test_faults_are_asked_for_seen_and_cleared(broker: EmulatedBroker, control: Http) -> None:
    wanted = {"do": "fail", "api": "Heartbeat", "error": "NOT_COORDINATOR", "count": 2, "group": GROUP}
    status, fault = control.ask("POST", "/faults", wanted)
    assert (status, fault) == (200, wanted | {"client_id": None, "hits": 0})
    with RawMember(broker) as member:
        assert member.heartbeat() == Error.NOT_COORDINATOR
    assert control.ask("GET", "/faults") == (200, {"faults": [fault | {"hits": 1}]})
    delay = {"do": "delay", "api": "Fetch", "delay_ms": 5}
    disconnect = {"do": "disconnect", "api": "Fetch", "client_id": "c"}
    assert control.ask("POST", "/faults", delay)[1].items() >= delay.items()
    assert control.ask("POST", "/faults", disconnect)[1].items() >= disconnect.items()
    slow = {"do": "delay", "delay_ms": 5, "lasting": True}
    assert control.ask("POST", "/faults", slow)[1].items() >= {"api": None, "count": None}.items()
    assert [one["do"] for one in control.ask("GET", "/faults")[1]["faults"]] == [
        "fail",
        "delay",
        "disconnect",
        "delay",
    ]
    assert control.ask("DELETE", "/faults") == (200, {"faults": []})
    assert control.ask("GET", "/faults") == (200, {"faults": []})


def test_a_group_is_seen_and_waited_for(broker: EmulatedBroker, control: Http) -> None:
    assert control.ask("GET", "/groups/none")[1]["state"] == "Dead"
    status, late = control.ask("POST", f"/groups/{GROUP}/wait", {"members": 1, "timeout_ms": 10})
    assert status == 408
    assert late["error"].startswith(f"group {GROUP} was not Stable with 1 member within 0.01 s")
    with RawMember(broker, number=coordinator_of(broker)) as member:
        member.join_alone([0, 1])
        status, group = control.ask("POST", f"/groups/{GROUP}/wait", {"members": 1, "partitions": 2})
        assert (status, group["state"], group["generation"]) == (200, "Stable", 1)
        (seen,) = control.ask("GET", f"/groups/{GROUP}")[1]["members"]
        assert (seen["member_id"], seen["partitions"]) == (member.member_id, ["orders-0", "orders-1"])
        status, expired = control.ask("POST", "/expire-member", {"group": GROUP, "member": "raw"})
        assert (status, expired) == (200, {"expired": member.member_id})
        assert control.ask("POST", f"/groups/{GROUP}/wait", {"state": "Empty"})[0] == 200


def test_the_names_of_groups_in_a_path_are_decoded(control: Http) -> None:
    _, answer = control.ask("POST", "/groups/a%2Fb%20c/wait", {"timeout_ms": 0})
    assert answer["error"].startswith("group a/b c was not Stable")


def test_the_trace_from_a_number_on(broker: EmulatedBroker, control: Http) -> None:
    with RawMember(broker, number=coordinator_of(broker)) as member:
        member.join_alone([0])
    _, everything = control.ask("GET", "/trace")
    assert everything["rows"] == json.loads(json.dumps(broker.trace))
    assert everything["next"] == len(broker.trace)
    _, rest = control.ask("GET", f"/trace?since={everything['next'] - 2}")
    assert rest["rows"] == everything["rows"][-2:]


def test_brokers_pause_and_go_on_and_coordinators_move(broker: EmulatedBroker, control: Http) -> None:
    assert control.ask("POST", "/pause", {"broker": 2}) == (200, {"paused": [2]})
    assert control.ask("POST", "/pause") == (200, {"paused": [1, 2]})
    assert control.ask("POST", "/resume") == (200, {"paused": []})
    before = coordinator_of(broker) + 1
    with RawMember(broker, number=before - 1) as member:
        member.join_alone([0])
    assert control.ask("POST", "/move-coordinator", {"group": GROUP}) == (200, {"coordinator": 3 - before})
    moved = control.ask("POST", "/move-coordinator", {"group": GROUP, "broker": before})
    assert moved == (200, {"coordinator": before})


def test_connections_are_dropped(broker: EmulatedBroker, control: Http) -> None:
    with RawMember(broker, "one") as one, RawMember(broker, "other") as other:
        one.heartbeat()
        other.heartbeat()
        assert control.ask("POST", "/drop-connections", {"client_id": "one"}) == (200, {"dropped": 1})
        assert one.is_closed_by_server()
        assert control.ask("POST", "/drop-connections") == (200, {"dropped": 1})
        assert other.is_closed_by_server()


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/faults", {}, "POST /faults: do: is missing; expected a text"),
        ("/faults", {"do": "explode", "api": "Fetch"}, "do: 'explode': expected fail, delay or disconnect"),
        ("/faults", {"do": "disconnect"}, "POST /faults: api: is missing; expected a text"),
        ("/faults", {"do": "delay", "api": "Fetch"}, "delay_ms: is missing; expected a whole number"),
        ("/faults", {"do": "disconnect", "api": "Fetch", "count": "2"},
         "count: '2': expected a whole number"),
        ("/move-coordinator", {"group": "none"}, "group: 'none': there is no such group; there are: none"),
        ("/move-coordinator", {}, "group: is missing; expected a text"),
        ("/faults", {"do": "disconnect", "api": "Fetch", "times": 2},
         "times: no such field; there are do, lasting, api"),
        ("/faults", {"do": "disconnect", "api": 1}, "api: 1: expected a text"),
        ("/faults", {"do": "disconnect", "lasting": 1}, "lasting: 1: expected true or false"),
        ("/faults", {"do": "disconnect", "lasting": False}, "api: is missing; expected a text"),
        ("/resume", {"broker": "1"}, "broker: '1': expected a whole number"),
    ],
)  # fmt: skip
def test_wrong_input_is_400_with_one_sentence(
    control: Http, path: str, body: dict[str, object], sentence: str
) -> None:
    status, answer = control.ask("POST", path, body)
    assert status == 400
    assert list(answer) == ["error"]
    assert sentence in answer["error"]
    assert "\n" not in answer["error"]


def test_unknown_methods(control: Http) -> None:
    assert control.ask("GET", "/nothing") == (404, {"error": "/nothing: no such method; GET / lists them"})
    status, answer = control.ask("PUT", "/faults")
    assert (status, answer) == (405, {"error": "/faults takes GET, POST, DELETE, not PUT"})


def test_another_body_than_a_json_object_is_refused(control: Http) -> None:
    assert control.ask("POST", "/faults", [1]) == (400, {"error": "the body: expected a JSON object"})
    status, answer = control.ask("POST", "/faults", {}, headers={"Content-Type": "text/plain"})
    assert (status, answer) == (415, {"error": "Content-Type 'text/plain': expected application/json"})
    head = b"POST /faults HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert control.send(head + b"Content-Length: 3\r\n\r\n{x}") == 400
    deep = b"[" * 60_000
    assert control.send(head + b"Content-Length: %d\r\n\r\n" % len(deep) + deep) == 400


@pytest.mark.parametrize(
    "host", ["example.com", "127.0.0.1.example.com", "localhost.example.com:80", "192.168.0.1", "", "[::2]"]
)
def test_a_host_that_is_not_this_machine_is_refused(control: Http, host: str) -> None:
    """DNS rebinding: a page of that name could otherwise ask through the browser."""
    status, answer = control.ask("GET", "/", headers={"Host": host})
    assert status == 403
    assert answer["error"].startswith(f"Host {host!r}: expected localhost")


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1", "LOCALHOST", "[::1]:80"])
def test_this_machine_has_several_names(control: Http, host: str) -> None:
    assert control.ask("GET", "/faults", headers={"Host": host})[0] == 200


def test_web_pages_are_refused(control: Http) -> None:
    status, answer = control.ask("GET", "/", headers={"Origin": "http://localhost:3000"})
    assert (status, answer) == (403, {"error": "Origin: requests of web pages are not answered"})


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 403),
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.com\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
    ],
)
def test_malformed_http_is_refused(control: Http, raw: bytes, status: int) -> None:
    assert control.send(raw) == status


def test_it_listens_on_the_loopback_interface_alone(control: Http) -> None:
    assert control.place[0] == "127.0.0.1"
    hosts = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for host in hosts - {"127.0.0.1"}:
        with pytest.raises(OSError, match=r"."):
            socket.create_connection((host, control.place[1]), timeout=1)


def test_no_more_requests_at_once_than_the_limit(control: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 1)
    with socket.create_connection(control.place, timeout=DEADLINE_S) as silent:
        silent.sendall(b"GET / HTTP/1.1\r\n")
        assert control.ask("GET", "/faults") == (503, {"error": "1 requests are under way"})
        silent.sendall(b"Host: localhost\r\n\r\n")
        assert silent.recv(12) == b"HTTP/1.1 200"


def test_an_unfinished_request_times_out(control: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_TIMEOUT_S", 0.05)
    assert control.send(b"GET / HTTP/1.1\r\n") == 408


def test_a_client_that_waits_does_not_hold_up_the_end() -> None:
    with groupstorm.broker(control=True) as broker:
        assert broker.control_url is not None
        control = Http(broker.control_url)
        waiting = socket.create_connection(control.place, timeout=DEADLINE_S)
        waiting.sendall(b"POST /groups/g/wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        assert control.ask("GET", "/faults")[0] == 200
    with waiting:
        assert waiting.recv(1) == b""


@pytest.mark.slow
def test_serve_takes_orders_with_control(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "groupstorm", "serve", "--port", "0", "--control", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            listening = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", next_line(process))
            url = re.fullmatch(r"control on (http://127\.0\.0\.1:\d+)\n", next_line(process))
            assert listening is not None
            assert url is not None
            control = Http(url[1])
            control.ask("POST", "/faults", {"do": "disconnect", "api": "ApiVersions"})
            with RawClient(("127.0.0.1", int(listening[1]))) as client:
                client.send(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\x00\x00")
                assert client.is_closed_by_server()
            assert control.ask("GET", "/faults") == (200, {"faults": []})
        finally:
            process.send_signal(signal.SIGTERM)
        _ = outcome_of(process)
        assert process.returncode == 0


@pytest.mark.slow
def test_serve_names_a_control_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "groupstorm", "serve", "--port", "0", "--control", str(port)]
        answer = run_process(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 2
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith(f"groupstorm: --control {port}: cannot listen there: ")
