"""A small HTTP server for programs on this machine: JSON in, JSON out, one request per connection.

The server listens on the loopback interface only. A web page must not reach it through the user's browser:
the server refuses requests that name another host (DNS rebinding), that come from a page (Origin), or that
bring anything but JSON. Sizes, times and connections have limits.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

LOOPBACK = "127.0.0.1"

MAX_HEAD_BYTES = 16_384
MAX_BODY_BYTES = 65_536
MAX_CONNECTIONS = 64
#: The time that a client may take to send its request.
READ_TIMEOUT_S = 10.0

_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
_REQUEST_LINE = re.compile(r"(?P<method>[A-Z]{1,16}) (?P<target>/[\x21-\x7e]*) HTTP/1\.[01]")
_HEADER = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[\x20-\x7e\x80-\xff\t]*)")


class HttpError(Exception):
    """A request that is refused: a status and one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class HttpRequest(NamedTuple):
    """``path``: its parts, decoded; ``body``: the JSON object, empty if there is none."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    body: Mapping[str, Any]


#: Returns a value for JSON; raises HttpError.
Respond = Callable[[HttpRequest], Awaitable[Any]]


class HttpServer:
    """Answers requests with ``respond`` from `start` to `stop`, on the event loop that calls them."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self._listener: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> str:
        """Listen; return the URL. Raises OSError."""
        self._listener = await asyncio.start_server(self._accept, LOOPBACK, port, limit=MAX_HEAD_BYTES)
        bound: Any = self._listener.sockets[0].getsockname()
        return f"http://{LOOPBACK}:{bound[1]}"

    async def stop(self) -> None:
        """Close the listener and cancel the requests that are being served."""
        if self._listener is not None:
            self._listener.close()
        serving = tuple(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            status, content = await self._answer(reader)
            writer.write(_response(status, content))
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the server ends: there is nobody to answer
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Any]:
        try:
            if len(self._serving) > MAX_CONNECTIONS:
                raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_CONNECTIONS} requests are under way")
            async with asyncio.timeout(READ_TIMEOUT_S):
                request = await read_request(reader)
        except HttpError as problem:
            return problem.status, {"error": str(problem)}
        except TimeoutError:
            late = f"the request was not there within {READ_TIMEOUT_S:g} s"
            return HTTPStatus.REQUEST_TIMEOUT, {"error": late}
        try:
            return HTTPStatus.OK, await self._respond(request)
        except HttpError as problem:
            return problem.status, {"error": str(problem)}


async def read_request(reader: asyncio.StreamReader) -> HttpRequest:
    """Read one request. Raises HttpError if it is refused."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        too_long = f"a head of more than {MAX_HEAD_BYTES} bytes"
        raise HttpError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_long) from None
    except asyncio.IncompleteReadError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the request ended before its head did") from None
    method, target, headers = _read_head(head.decode("latin-1"))
    _check_sender(headers)
    body = await _read_body(reader, headers)
    url = urlsplit(target)
    path = tuple(unquote(part) for part in url.path.split("/") if part)
    return HttpRequest(method, path, dict(parse_qsl(url.query, keep_blank_values=True)), body)


def _read_head(head: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the first line is not METHOD /PATH HTTP/1.1")
    headers: dict[str, str] = {}
    for text in lines:
        header = _HEADER.fullmatch(text)
        if header is None or header["name"].lower() in headers:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"header {text[:40]!r}: cannot be read, or came before")
        headers[header["name"].lower()] = header["value"].strip()
    return line["method"], line["target"], headers


def _check_sender(headers: Mapping[str, str]) -> None:
    host = headers.get("host", "")
    if not _HOST.fullmatch(host):
        sentence = f"Host {host!r}: expected localhost or 127.0.0.1: nobody else is answered"
        raise HttpError(HTTPStatus.FORBIDDEN, sentence)
    if "origin" in headers:
        raise HttpError(HTTPStatus.FORBIDDEN, "Origin: requests of web pages are not answered")


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> dict[str, Any]:
    if "transfer-encoding" in headers:
        raise HttpError(HTTPStatus.NOT_IMPLEMENTED, "Transfer-Encoding: send the body with a Content-Length")
    length = headers.get("content-length", "0")
    if not re.fullmatch(r"[0-9]{1,10}", length):
        raise HttpError(HTTPStatus.BAD_REQUEST, f"Content-Length {length[:40]!r}: expected a number")
    if int(length) > MAX_BODY_BYTES:
        sentence = f"a body of {int(length)} bytes: at most {MAX_BODY_BYTES} are read"
        raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)
    if int(length) == 0:
        return {}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        sentence = f"Content-Type {kind!r}: expected application/json"
        raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence)
    try:
        content = json.loads(await reader.readexactly(int(length)))
    except asyncio.IncompleteReadError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the request ended before its body did") from None
    except (ValueError, RecursionError) as problem:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {problem}") from None
    if not isinstance(content, dict):
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body: expected a JSON object")
    return content


def _response(status: HTTPStatus, content: Any) -> bytes:
    body = json.dumps(content, ensure_ascii=False).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: application/json; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body
