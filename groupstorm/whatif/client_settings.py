"""Settings as each client library spells them (a table of `clients`, from its own sources), to be pasted.

kafka-clients 4.3.1 (ConsumerConfig), librdkafka 2.16 (CONFIGURATION.md), kafka-python 3.0.12
(consumer/group.py), aiokafka 0.14.0 (consumer/consumer.py), franz-go 1.22 (kgo/config.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from groupstorm.coordinator.config import OPTIONS, bounds_beside
from groupstorm.storms.runs.choices import client_defaults
from groupstorm.storms.scenario.setting_names import SHARE, STREAMS, STREAMS_PROTOCOL, UNSUPPORTED
from groupstorm.storms.scenario.settings import Settings
from groupstorm.tables import rows
from groupstorm.whatif.inference import INSTANCE, STRATEGY

#: Settings of the deployment. Those of the broker, in server.properties, are the options of its coordinator.
DEPLOYMENT: Final[Mapping[str, str]] = {
    "max_surge": "maxSurge",
    "max_unavailable": "maxUnavailable",
    "order": "the order in which processes are replaced",
}
POLL_RECORDS: Final = "max.poll.records"
#: Kafka Streams ignores its own number in a streams group (StreamsConfig).
STANDBYS_OF_GROUPS: Final = "group.streams.num.standby.replicas"
#: The default of `client_profile`, also where nothing says which library the members have.
_ASSUMED: Final = ["java"]
_UNKNOWN: Final = Settings(("", {}))
#: The place of a name that a process has of its own and keeps over restarts.
_OWN_NAME: Final = "<a name of its own that it keeps>"


class Library(NamedTuple):
    """The settings of one library. ``names``: Kafka's name -> its own; missing: it has no such setting.

    ``assignors``: name -> the value that stands for it; missing: the library has no such assignor.
    ``line``: one setting as it is written; ``between``: what stands between several assignors.
    """

    name: str
    names: Mapping[str, str]
    assignors: Mapping[str, str]
    line: Callable[[str, Any], str]
    between: str = ","


def _property(name: str, value: Any) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def _argument(name: str, value: Any) -> str:
    if name.endswith("strategy"):
        return f"{name}=[{value}],"
    return f'{name}="{value}",' if isinstance(value, str) else f"{name}={value},"


def _franz_go(name: str, value: Any) -> str:
    if name == "Balancers":
        return f"kgo.Balancers(kgo.{value}()),"
    if name == "InstanceID":
        return f'kgo.InstanceID("{value}"),'
    if name == "ServerSideBalancer":  # which other balancers than range and sticky switch off
        own = "kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()),"
        return own if value == "consumer" else "# no kgo.ServerSideBalancer()"
    if name == "PollRecords":
        return f"client.PollRecords(ctx, {value})"
    return f"kgo.{name}({value} * time.Millisecond),"


_ASSIGNOR: Final = "assignor "
_, *_ROWS = rows("groupstorm.clients", "client_settings")


def _library(column: int, name: str, line: Callable[[str, Any], str], between: str = ",") -> Library:
    own = {row[0]: row[column] for row in _ROWS if row[column] != "-"}
    names = {one: spelled for one, spelled in own.items() if not one.startswith(_ASSIGNOR)}
    assignors = {one.removeprefix(_ASSIGNOR): own[one] for one in own if one not in names}
    return Library(name, names, assignors, line, between)


LIBRARIES: Final = (
    _library(1, "java", _property),
    _library(2, "librdkafka", _property),
    _library(3, "aiokafka", _argument, between=", "),
    _library(4, "kafka-python", _argument, between=", "),
    _library(5, "franz-go", _franz_go, between="(), kgo."),
)
#: Of all its settings only some are a consumer's (StreamsConfig).
KAFKA_STREAMS: Final = _library(6, "kafka-streams", _property)


class Lines(NamedTuple):
    """``of_clients``: library -> its lines. ``of_broker``, ``of_deployment``: lines for these."""

    of_clients: Mapping[str, tuple[str, ...]]
    of_broker: tuple[str, ...]
    of_deployment: tuple[str, ...]


def library_of(members: Settings) -> Library:
    """The library of the first members."""
    if members.choice("application") == STREAMS:
        return KAFKA_STREAMS
    return next(one for one in LIBRARIES if one.name == members.names("client_profile")[0])


def lines_of(changed: Mapping[str, Any], members: Settings = _UNKNOWN) -> Lines:
    """Settings of a scenario as libraries, the broker and the deployment take them; for the broker with the
    bounds without which it does not start.

    ``members``: their settings. The default of `client_profile` says nothing: then all libraries have lines.
    """
    libraries: Sequence[Library] = [KAFKA_STREAMS]
    if members.choice("application") != STREAMS:
        profiles = members.names("client_profile")
        known = () if list(profiles) == _ASSUMED else profiles
        libraries = [one for one in LIBRARIES if one.name in known] or LIBRARIES
    if members.choice("group.protocol") == SHARE:
        libraries = LIBRARIES[:1]  # no other one has share consumers
    if members.choice("group.protocol") == STREAMS_PROTOCOL:
        changed = {
            STANDBYS_OF_GROUPS if name == "num.standby.replicas" else name: changed[name] for name in changed
        }
    own = {name: value for name, value in changed.items() if name not in OPTIONS and name not in DEPLOYMENT}
    of_broker = {name: value for name, value in changed.items() if name in OPTIONS}
    for name, value in [*of_broker.items()]:
        of_broker |= bounds_beside(name, value)
    defaults = dict(client_defaults(members).written())
    given = members.changed(UNSUPPORTED.get(changed.get("group.protocol", ""), {}))
    gone = [name for name, value in given if value != defaults.get(name)]
    return Lines(
        {library.name: _of_library(library, own, gone) for library in libraries} if own else {},
        tuple(_property(name, value) for name, value in of_broker.items()),
        tuple(f"{DEPLOYMENT[name]}: {value}" for name, value in changed.items() if name in DEPLOYMENT),
    )


def _of_library(library: Library, settings: Mapping[str, Any], gone: Iterable[str]) -> tuple[str, ...]:
    """``gone``: settings in use with which Kafka's consumers, and librdkafka's, do not start then."""
    is_strict = library.names.get("group.protocol") == "group.protocol"
    lines = [f"# remove {name}" for name in gone if is_strict]
    for name, value in settings.items():
        own = library.names.get(name)
        if own is None:
            lines.append(f"# no {name}={_plain(value)}: {library.name} has no such setting")
        elif name == STRATEGY:
            assignor = library.assignors.get(value[0])
            if assignor is None:
                lines.append(f"# no {value[0]}: {library.name} has no such assignor")
            else:
                lines.append(library.line(own, assignor))
        elif name == INSTANCE:
            lines.append(f"# no {own}" if value == "none" else library.line(own, _OWN_NAME))
        else:
            lines.append(library.line(own, value))
    return tuple(lines)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
