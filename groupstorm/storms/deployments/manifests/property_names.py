"""Settings in the files that ConfigMaps hold and a container mounts (YAML, JSON, `.properties`), and the
Kafka property that a variable, a key of a file or an argument sets, by its name.

A nested name counts with dots (`spring.kafka.consumer.group-id`). Spring reads some files and YAML documents
only if a profile is active (`application-prod.yaml`, `spring.config.activate.on-profile`), and puts values in
for `${NAME:default}`.

A property such as `session.timeout.ms` is found as itself, as KAFKA_SESSION_TIMEOUT_MS (also with other words
in front, if KAFKA or CONSUMER is one of them), as Spring's `spring.kafka.consumer...` in relaxed binding, and
in the channels, bindings and groups of SmallRye, Spring Cloud Stream and Micronaut. .NET's names count, too
(`Kafka__SessionTimeoutMs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from groupstorm.java_properties import parse_java_properties
from groupstorm.storms.deployments.manifests.objects import Fields
from groupstorm.yaml_documents import parse_yaml_stream

#: The number of consumers in a process: of Spring, and of an application of one's own.
LISTENER_CONCURRENCY, CONSUMER_THREADS = "spring.kafka.listener.concurrency", "consumer.threads"
#: When the container of a Spring listener commits, and its interval for TIME.
ACK_MODE = "spring.kafka.listener.ack-mode"
ACK_TIME = "spring.kafka.listener.ack-time"
#: When a channel of SmallRye commits, unless enable.auto.commit is true.
COMMIT_STRATEGY = "commit-strategy"
OF_LISTENERS = frozenset({LISTENER_CONCURRENCY, CONSUMER_THREADS, ACK_MODE, ACK_TIME, COMMIT_STRATEGY})

#: `leave_on_close` of a scenario. Kafka's clients have it for Kafka Streams, which sets it to false.
LEAVE_GROUP = "internal.leave.group.on.close"
#: Properties of share consumers alone.
OF_SHARES = frozenset({"share.acquire.mode", "share.acknowledgement.mode"})
#: Properties of a client that are settings of a scenario, too, and those that are only said or asked about.
SETTINGS_OF_CLIENTS = frozenset(
    {
        "group.protocol",
        "group.remote.assignor",
        "group.instance.id",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "request.timeout.ms",
        "metadata.max.age.ms",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        LEAVE_GROUP,
        *OF_SHARES,
    }
)
#: Properties of a Kafka Streams application that are settings of a scenario, and its id.
SETTINGS_OF_STREAMS = frozenset(
    {
        "num.stream.threads",
        "num.standby.replicas",
        "acceptable.recovery.lag",
        "max.warmup.replicas",
        "probing.rebalance.interval.ms",
        "state.cleanup.delay.ms",
    }
)
APPLICATION_ID, PROCESSING_GUARANTEE = "application.id", "processing.guarantee"
OF_STREAMS = SETTINGS_OF_STREAMS | {APPLICATION_ID, PROCESSING_GUARANTEE}
_PROPERTIES = (
    SETTINGS_OF_CLIENTS
    | SETTINGS_OF_STREAMS
    | {"group.id", "topic", "topics", LISTENER_CONCURRENCY, CONSUMER_THREADS, PROCESSING_GUARANTEE}
)
#: Spring's own names of some of them (spring.kafka.consumer.*), dashes left out.
_SPRING = {
    "heartbeatinterval": "heartbeat.interval.ms",
    "autocommitinterval": "auto.commit.interval.ms",
    "autooffsetreset": "auto.offset.reset",
    "enableautocommit": "enable.auto.commit",
    "maxpollrecords": "max.poll.records",
    "maxpollinterval": "max.poll.interval.ms",
    "groupid": "group.id",
}
#: Spring Boot's consumer has these names alone, beside properties.*, and passes others by in silence; of its
#: Kafka Streams it passes all by.
_SPRING_CONSUMER = "spring.kafka.consumer."
SPRING_STREAMS = "spring.kafka.streams."
_PREFIXES = (
    "spring.kafka.consumer.properties.", "spring.kafka.properties.", _SPRING_CONSUMER,
    "kafka.consumer.", "consumer.", "kafka.", "",
)  # fmt: skip
#: Spring takes all clients' properties first, its own names over them, then the consumer's properties.
SPRING_RANKS = {
    "spring.kafka.properties.": 1,
    _SPRING_CONSUMER: 2,
    "spring.kafka.consumer.properties.": 3,
    f"{SPRING_STREAMS}properties.": 3,
}
#: Without a prefix these words mean something else in other programs.
_NEED_PREFIX = frozenset({"topic", "topics", "request.timeout.ms"})
#: Names of consumers' properties, and those of their connections, which change no rebalance.
OF_CONSUMERS = re.compile(
    r"(?i)(?:spring[._])?kafka[._](?:consumer|listener|fetch|isolation)[._]|spring[._]kafka[._]properties[._]"
)
OF_CONNECTIONS = re.compile(
    r"(?i)bootstrap|serializer|sasl|ssl|security|schema|password|secret|key|trusted|spring.json"
)
#: A framework's words before a property, with the name of a channel (SmallRye), of a binding (Spring Cloud
#: Stream) or of a group (Micronaut); or an application's own words, of which one is Kafka or consumer.
_OF_KAFKA = re.compile(
    r"(?:mp\.messaging|spring\.cloud\.stream)\..+|(?:.+\.)?(?:kafka|kafka-streams|streams|ksql|consumers?)\..+"
)
#: A framework's own words for a property: of a binding of Spring Cloud Stream, or of a channel of SmallRye.
_OWN_WORDS = {
    re.compile(r"spring\.cloud\.stream\.bindings\..+\.consumer\.concurrency"): LISTENER_CONCURRENCY,
    re.compile(r"mp\.messaging\.incoming\..+\.(?:concurrency|partitions)"): LISTENER_CONCURRENCY,
    re.compile(r"spring\.cloud\.stream\.(?:bindings\..+|default)\.group"): "group.id",
    re.compile(r"mp\.messaging\.incoming\..+\.topics?"): "topic",
    re.compile(r"mp\.messaging\.incoming\..+\.commit[.-]strategy"): COMMIT_STRATEGY,
    # Spring's and Quarkus' names of a Kafka Streams application, and ksqlDB's
    re.compile(r"(?:.+\.)?(?:kafka[.-])?(?<!event\.)streams\.(?:.+\.)?application[.-]?id"): APPLICATION_ID,
    re.compile(r"(?:.+\.)?kafka\.application[.-]id|(?:ksql\.)?ksql\.service\.id"): APPLICATION_ID,
}
#: Consumers of their own in one process.
CHANNELS = re.compile(
    r"(?i)mp[._]messaging[._]incoming|spring[._]cloud[._]stream[._](?:kafka[._])?bindings|kafka[._]consumers"
)
#: A word of .NET's names begins with a capital, and two underscores stand for a level (Kafka__GroupId).
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: A unit behind a name.
_UNIT = re.compile(r"\.(?:ms|millis|s|secs?|seconds|minutes)$")
_OF_OTHER_CLIENTS = re.compile(r"producer|outgoing|admin")


def property_named(name: str) -> tuple[str, str] | None:
    """The Kafka property that a name sets, and the prefix that the name has; None for any other name."""
    for of_listener in (ACK_MODE, ACK_TIME):
        if relaxed(name) == relaxed(of_listener):
            return of_listener, ""
    dotted = _dotted(name)
    dotted = dotted if "." in dotted else dotted.replace("-", ".")  # an argument: --kafka-group-id
    for own_words, of_framework in _OWN_WORDS.items():
        if own_words.fullmatch(dotted):
            return of_framework, ""
    for prefix in _PREFIXES:
        if not dotted.startswith(prefix):
            continue
        rest = dotted[len(prefix) :]
        squeezed = rest.replace("-", "").replace(".", "")
        if prefix.startswith("spring.kafka.consumer") and squeezed in _SPRING:
            return _SPRING[squeezed], prefix
        plain = rest.replace("-", ".")
        if prefix.endswith(("kafka.", "consumer.")) and plain in ("threads", "concurrency"):
            plain = CONSUMER_THREADS
        if plain in ("consumer.group", "consumer.group.id", "group"):
            plain = "group.id"
        if plain in _PROPERTIES and (prefix or plain not in _NEED_PREFIX):
            return plain, prefix
    undashed = dotted.replace("-", ".")
    endings = [one for one in _PROPERTIES - {"topic", "topics"} if dotted.endswith(f".{one}")]
    # nothing but Kafka Streams has these words, however an application joins them: num-stream-threads
    of_streams = [one for one in OF_STREAMS - {APPLICATION_ID} if undashed.endswith(f".{one}")]
    if _OF_OTHER_CLIENTS.search(dotted) or not (of_streams or (endings and _OF_KAFKA.fullmatch(dotted))):
        return None
    ending = [*of_streams, *endings][0]
    return ending, dotted[: -len(ending)]


def passed_by(named: tuple[str, str], name: str, value: str | None) -> str | None:
    """The reason why Spring Boot does not take a name under spring.kafka; None if it does.

    Source: KafkaProperties.Consumer and .Streams of Spring Boot 3 and 4.
    """
    setting, prefix = named
    squeezed = relaxed(name).removeprefix(relaxed(_SPRING_CONSUMER))
    of_consumer = prefix == _SPRING_CONSUMER and setting in SETTINGS_OF_CLIENTS and squeezed not in _SPRING
    if not of_consumer and prefix != SPRING_STREAMS:
        return None
    return (
        f"Spring Boot has no such property and passes it by: {prefix}properties.{setting} is "
        f"its name; if the application itself reads it, --set {setting}={value}"
    )


def resembled(name: str) -> str | None:
    """The setting that a name may set, though nothing says that it is Kafka's, or in which unit."""
    dotted = _dotted(name).replace("-", ".")
    if _OF_OTHER_CLIENTS.search(dotted):
        return None
    for one in SETTINGS_OF_CLIENTS - _NEED_PREFIX:
        if dotted.endswith(f".{one}"):
            return one
        if _OF_KAFKA.fullmatch(dotted) and _UNIT.sub("", dotted).endswith(f".{one.removesuffix('.ms')}"):
            return one
    return None


def _dotted(name: str) -> str:
    return re.sub("_+", ".", _CAPITAL.sub("_", name)).lower()


def is_of_dotnet(name: str, setting: str) -> bool:
    """Whether the name of a setting is that of Confluent's client for .NET: Kafka__GroupId of group.id."""
    return "." in setting and re.split("[_.]", name)[-1] == setting.title().replace(".", "")


def relaxed(name: str) -> str:
    """Spring takes a variable for a name with dots and dashes."""
    return re.sub(r"[._\-]", "", name).lower()


_READ = frozenset({".yaml", ".yml", ".json", ".properties"})
#: A name and its value.
Setting = tuple[str, str]
ConfigMaps = Mapping[str, Mapping[str, str]]

_PROFILE_FILE = re.compile(r"application-(?P<profile>.+)")
ACTIVE_PROFILES = "spring.profiles.active"
_ON_PROFILE = ("spring.config.activate.on-profile", "spring.profiles")
_PLACEHOLDER = re.compile(r"\$\{(?P<name>[^{}:]+)(?::(?P<default>[^{}]*))?\}")
#: Placeholders may stand for placeholders, in a circle too.
_REPLACED_MAX = 20
#: The certificate of the cluster, in a ConfigMap that Kubernetes itself makes.
_KUBERNETES_OWN = "kube-root-ca.crt"


class MountedFile(NamedTuple):
    """A file of a ConfigMap. ``name``: as the container sees it; ``text`` None: all of an unknown map."""

    config_map: str
    name: str
    text: str | None

    def __str__(self) -> str:
        return f"ConfigMap {self.config_map}: {self.name}"


def mounted_files(pod: Fields, container: Fields, config_maps: ConfigMaps) -> list[MountedFile]:
    """The files with a known ending, files of Spring's profiles last; all of an unknown ConfigMap as one."""
    mounts = {mount.text("name"): mount.text("subPath") for mount in container.objects("volumeMounts")}
    found = []
    for volume in pod.objects("volumes"):
        name = volume.text("name")
        if name not in mounts:
            continue
        projected = volume.at("projected").objects("sources")
        for source in (volume.at("configMap"), *(one.at("configMap") for one in projected)):
            found += [
                file
                for file in _files(source, config_maps)
                if file.text is None or mounts[name] in ("", file.name)
            ]
    return sorted(found, key=lambda file: _profile(file) is not None)


def _files(source: Fields, config_maps: ConfigMaps) -> Iterator[MountedFile]:
    config_map = source.text("name")
    if not config_map or config_map == _KUBERNETES_OWN:
        return
    items = {item.text("key"): item.text("path") for item in source.objects("items")}
    if config_map not in config_maps:
        if not items or any(_is_read(path) for path in items.values()):
            yield MountedFile(config_map, "", None)
        return
    for key, text in config_maps[config_map].items():
        path = items.get(key, "" if items else key)
        if _is_read(path):
            yield MountedFile(config_map, path, text)


def _is_read(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _READ


def _profile(file: MountedFile) -> str | None:
    match = _PROFILE_FILE.fullmatch(PurePosixPath(file.name).stem)
    return None if match is None else match["profile"]


def file_settings(file: MountedFile, profiles: frozenset[str]) -> list[Setting]:
    """The settings of a file; none if it belongs to a profile that is not active.

    Raises InputError if the file is not what its ending says.
    """
    profile = _profile(file)
    if profile is not None and profile not in profiles:
        return []
    text = file.text or ""
    if file.name.lower().endswith(".properties"):
        documents: Iterable[Any] = [parse_java_properties(text)]
    else:
        documents = parse_yaml_stream(text, str(file))  # JSON is YAML
    found: list[Setting] = []
    for document in documents:
        settings = list(flattened(document))
        named = ",".join(value for name, value in settings if name in _ON_PROFILE)
        wanted = [part.strip() for part in named.split(",") if part.strip()]
        if not wanted or any((part.lstrip("!") in profiles) != part.startswith("!") for part in wanted):
            found += settings
    return found


def flattened(content: Any, name: str = "") -> Iterator[Setting]:
    """Nested names joined by dots; a list of texts and numbers joined by commas."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            # Spring keeps a name with dots whole in brackets: "[session.timeout.ms]"
            plain = str(key).strip("[]")
            yield from flattened(value, f"{name}.{plain}" if name else plain)
    elif isinstance(content, list):
        if all(isinstance(one, str | int | float) for one in content):
            yield name, ",".join(_text(one) for one in content)
    elif content is not None:
        yield name, _text(content)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def filled_in(value: str, look_up: Callable[[str], str | None]) -> str | None:
    """The value with its placeholders replaced; None if one of them has neither a value nor a default."""
    for _ in range(_REPLACED_MAX):
        match = _PLACEHOLDER.search(value)
        if match is None:
            return value
        put_in = look_up(match["name"])
        if put_in is None:
            put_in = match["default"]
        if put_in is None:
            return None
        value = value[: match.start()] + put_in + value[match.end() :]
    return None
