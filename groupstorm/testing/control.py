"""The control interface: `ServerControl` over HTTP, for tests in any language; `METHODS` is all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from groupstorm.broker.shell import Server
from groupstorm.problems import InputError
from groupstorm.testing.faults import Delay, Disconnect, Effect, Fail, Fault, error_named
from groupstorm.testing.groups import GroupCondition, GroupTimeout, GroupView, failure, known_state
from groupstorm.testing.http import HttpError, HttpRequest, HttpServer
from groupstorm.testing.server_control import ServerControl
from groupstorm.testing.waiting import until

if TYPE_CHECKING:
    from groupstorm.broker.service import Companion

_INT64_MAX = 2**63 - 1
_DEFAULT_TIMEOUT_MS = 30_000
_MAX_TIMEOUT_MS = 3_600_000
#: Longer digits are not read as a number.
_DIGITS = 20

#: The number of events that are kept for GET /trace: the broker may run for days.
KEPT_EVENTS = 100_000

_T = TypeVar("_T")


class Arguments:
    """The fields of a request, each read once; `end` refuses the others."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = dict(values)
        self._where = where
        self._known: list[str] = []

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise InputError(f"{self._where}: {name}: is missing; expected a text")
        return value

    def optional_text(self, name: str) -> str | None:
        return self._take(name, str, "a text")

    def number(self, name: str, default: _T, least: int = 0, most: int = _INT64_MAX) -> int | _T:
        value = self._take(name, int, "a whole number")
        if value is None:
            return default
        if isinstance(value, bool) or not least <= value <= most:
            raise InputError(f"{self._where}: {name}: {value}: expected a number from {least} to {most}")
        return value

    def flag(self, name: str) -> bool:
        """False if the field is missing."""
        return bool(self._take(name, bool, "true or false"))

    def end(self) -> None:
        if self._values:
            name = next(iter(self._values))
            known = ", ".join(self._known) or "none"
            raise InputError(f"{self._where}: {name}: no such field; there are {known}")

    def _take(self, name: str, kind: type[_T], what: str) -> _T | None:
        self._known.append(name)
        value = self._values.pop(name, None)
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{self._where}: {name}: {value!r}: expected {what}")
        return value


_Run = Callable[[ServerControl, Arguments], Awaitable[Any]]


class Method(NamedTuple):
    """One method. ``path``: its parts, GROUP for any group; ``help``: for people."""

    verb: str
    path: tuple[str, ...]
    run: _Run
    help: str

    @property
    def title(self) -> str:
        return f"{self.verb} /{'/'.join(self.path)}"


async def _overview(_control: ServerControl, arguments: Arguments) -> Any:
    arguments.end()
    return {"methods": {method.title: method.help for method in METHODS}}


async def _group(control: ServerControl, arguments: Arguments) -> Any:
    group = arguments.text("group")
    arguments.end()
    return _shown(control.view(group)) | {"committed": control.all_committed(group)}


async def _wait(control: ServerControl, arguments: Arguments) -> Any:
    group = arguments.text("group")
    state = known_state(arguments.optional_text("state") or "Stable")
    members = arguments.number("members", None)
    wanted = GroupCondition(state, members, arguments.number("partitions", None))
    timeout_ms = arguments.number("timeout_ms", _DEFAULT_TIMEOUT_MS, most=_MAX_TIMEOUT_MS)
    arguments.end()

    def make_timeout(timeout_s: float) -> GroupTimeout:
        text = failure(group, wanted, timeout_s, control.view(group), control.last_events(group))
        return GroupTimeout(text)

    await until(control.wait_for(group, wanted), timeout_ms / 1000, make_timeout)
    return _shown(control.view(group))


async def _trace(control: ServerControl, arguments: Arguments) -> Any:
    since = arguments.number("since", 0)
    arguments.end()
    rows = control.trace(since)
    return {"rows": rows, "next": control.forgotten + len(control.events)}


async def _faults(control: ServerControl, arguments: Arguments) -> Any:
    arguments.end()
    return {"faults": [_fault_shown(fault) for fault in control.faults.waiting]}


async def _add_fault(control: ServerControl, arguments: Arguments) -> Any:
    effect = _effect(arguments)
    lasts = arguments.flag("lasting")
    fault = Fault(
        arguments.optional_text("api") if lasts else arguments.text("api"),
        effect,
        None if lasts else arguments.number("count", 1),
        arguments.optional_text("group"),
        arguments.optional_text("client_id"),
    )
    arguments.end()
    control.faults.add(fault)
    return _fault_shown(fault)


def _effect(arguments: Arguments) -> Effect:
    """The effect that ``do`` names."""
    what = arguments.text("do")
    match what:
        case "fail":
            return Fail(error_named(arguments.text("error")))
        case "delay":
            delay_ms = arguments.number("delay_ms", None)
            if delay_ms is None:
                raise InputError("delay_ms: is missing; expected a whole number")
            return Delay(delay_ms)
        case "disconnect":
            return Disconnect()
    raise InputError(f"do: {what!r}: expected fail, delay or disconnect")


async def _clear_faults(control: ServerControl, arguments: Arguments) -> Any:
    arguments.end()
    control.faults.clear()
    return {"faults": []}


async def _drop_connections(control: ServerControl, arguments: Arguments) -> Any:
    client_id = arguments.optional_text("client_id")
    arguments.end()
    return {"dropped": control.drop_connections(client_id)}


async def _move_coordinator(control: ServerControl, arguments: Arguments) -> Any:
    group, broker = arguments.text("group"), arguments.number("broker", None)
    arguments.end()
    return {"coordinator": control.move_coordinator(group, broker)}


async def _expire_member(control: ServerControl, arguments: Arguments) -> Any:
    group, member = arguments.text("group"), arguments.text("member")
    arguments.end()
    return {"expired": control.expire_member(group, member)}


async def _pause(control: ServerControl, arguments: Arguments) -> Any:
    broker = arguments.number("broker", None)
    arguments.end()
    control.pause(broker)
    return {"paused": control.paused}


async def _resume(control: ServerControl, arguments: Arguments) -> Any:
    broker = arguments.number("broker", None)
    arguments.end()
    control.resume(broker)
    return {"paused": control.paused}


METHODS: tuple[Method, ...] = (
    Method("GET", (), _overview, "this list"),
    Method("GET", ("groups", "GROUP"), _group, "state, generation, members and committed offsets"),
    Method(
        *("POST", ("groups", "GROUP", "wait"), _wait),
        "wait until the group is so: state (Stable), members, partitions, timeout_ms (30000)",
    ),
    Method("GET", ("trace",), _trace, "the coordinator's events as rows of a trace, from number ?since= on"),
    Method("GET", ("faults",), _faults, "the faults that wait for requests"),
    Method(
        *("POST", ("faults",), _add_fault),
        "do: fail (with error), delay (with delay_ms) or disconnect; api; count (1), or lasting: true, then"
        " without api for all; group, client_id",
    ),
    Method("DELETE", ("faults",), _clear_faults, "cancel all faults"),
    Method("POST", ("drop-connections",), _drop_connections, "close those of client_id, or all"),
    Method("POST", ("move-coordinator",), _move_coordinator, "of group, to broker, or to the next one"),
    Method("POST", ("expire-member",), _expire_member, "end the session of member (any of its ids) of group"),
    Method("POST", ("pause",), _pause, "broker, or all: read nothing and answer nothing"),
    Method("POST", ("resume",), _resume, "broker, or all: go on"),
)


class ControlServer:
    """Serves the control interface of one server, on its event loop."""

    def __init__(self, control: ServerControl) -> None:
        self._control = control
        self._http = HttpServer(self._respond)

    async def start(self, port: int) -> str:
        """Listen on the loopback interface; return the URL. Raises OSError."""
        return await self._http.start(port)

    async def stop(self) -> None:
        await self._http.stop()

    async def _respond(self, request: HttpRequest) -> Any:
        method = _method(request)
        arguments = Arguments(_given(request, method), method.title)
        try:
            return await method.run(self._control, arguments)
        except InputError as problem:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(problem)) from None
        except GroupTimeout as problem:
            raise HttpError(HTTPStatus.REQUEST_TIMEOUT, str(problem)) from None


def control_beside(port: int, on_ready: Callable[[str], None]) -> Companion:
    """Opens a control interface beside a server, as long as it serves; ``on_ready`` receives the URL."""

    @asynccontextmanager
    async def controlled(server: Server) -> AsyncIterator[None]:
        beside = ControlServer(ServerControl(server, KEPT_EVENTS))
        try:
            on_ready(await beside.start(port))
        except OSError as problem:
            reason = problem.strerror or problem
            raise InputError(f"--control {port}: cannot listen there: {reason}") from problem
        try:
            yield
        finally:
            await beside.stop()

    return controlled


def _method(request: HttpRequest) -> Method:
    """Raises HttpError if there is none."""
    there = [method for method in METHODS if _fits(method.path, request.path)]
    for method in there:
        if method.verb == request.method:
            return method
    path = "/" + "/".join(request.path)
    if there:
        verbs = ", ".join(method.verb for method in there)
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {verbs}, not {request.method}")
    raise HttpError(HTTPStatus.NOT_FOUND, f"{path}: no such method; GET / lists them")


def _fits(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(pattern) == len(path) and all(
        part in ("GROUP", asked) for part, asked in zip(pattern, path, strict=True)
    )


def _given(request: HttpRequest, method: Method) -> dict[str, Any]:
    """The fields of the body and of the query, with digits as numbers, and the group of the path."""
    query = {
        name: int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else text
        for name, text in request.query.items()
    }
    named = {
        part.lower(): asked for part, asked in zip(method.path, request.path, strict=True) if part == "GROUP"
    }
    return dict(request.body) | query | named


def _shown(view: GroupView) -> dict[str, Any]:
    return view._asdict() | {"members": [member._asdict() for member in view.members]}


def _fault_shown(fault: Fault) -> dict[str, Any]:
    match fault.effect:
        case Fail(error):
            effect: dict[str, Any] = {"do": "fail", "error": error.name}
        case Delay(delay_ms):
            effect = {"do": "delay", "delay_ms": delay_ms}
        case Disconnect():
            effect = {"do": "disconnect"}
    whose = {"api": fault.api, "group": fault.group, "client_id": fault.client_id}
    return effect | whose | {"count": fault.count, "hits": fault.hits}
