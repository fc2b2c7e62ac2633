"""The client libraries of `--with`: profile, requirements, configuration, and orders for worker processes."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jars import kafka_classpath, kafka_jars, quick_start
from groupstorm.clients.brokers.jvm import MINIMUM_JAVA
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.javaruntime import cache_folder, runtimes
from groupstorm.problems import InputError
from groupstorm.storms.scenario.randomness import DRAW_SPAN, Distribution
from groupstorm.storms.scenario.setting_names import STREAMS
from groupstorm.storms.scenario.settings import BY_NAME, Settings

_SOURCE = Path(__file__).parent / "workers" / "java" / "Host.java"
_OPTIONS = ("-Xmx128m", "-Dlog4j2.level=ERROR")
_COMPILE_TIMEOUT_S = 120


def java_command() -> Sequence[str]:
    """The command of a process that hosts Kafka's Java consumers. Raises InputError without JDK or jars."""
    runtime = next(runtimes(MINIMUM_JAVA, []), None)
    if runtime is None or not runtime.java.with_name("javac").exists():
        raise InputError(
            f"--with java: needs a JDK of Java {MINIMUM_JAVA} or newer "
            "(Debian: apt install openjdk-17-jdk-headless)"
        )
    try:
        jars = kafka_jars()
    except BrokerUnavailable as missing:
        raise InputError(f"--with java: {missing}") from missing
    classes = _compiled(runtime.java.with_name("javac"), kafka_classpath(jars))
    options = [*_OPTIONS, *quick_start(runtime.java, jars)]
    return [str(runtime.java), *options, "-cp", kafka_classpath(jars, classes), "Host"]


def _compiled(compiler: Path, classpath: str) -> Path:
    def compile_into(folder: Path) -> None:
        answer = subprocess.run(
            [str(compiler), "-cp", classpath, "-d", str(folder), str(_SOURCE)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMPILE_TIMEOUT_S,
            check=False,
        )
        if answer.returncode != 0:
            said = (answer.stderr or answer.stdout).strip().splitlines() or ["javac wrote nothing"]
            raise InputError(f"--with java: the worker cannot be compiled: {said[0]}")

    return built_once("java-worker", _SOURCE.read_bytes() + classpath.encode(), compile_into)


def built_once(name: str, content: bytes, build: Callable[[Path], None]) -> Path:
    """The folder that ``build`` has filled for this ``content``: the sources, and what else decides.

    A folder appears under its name only when it is complete: several processes may build at once. An error
    that ``build`` raises leaves nothing behind.
    """
    place = cache_folder() / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="building-") as folder:
        building = Path(folder, "built")
        building.mkdir()
        build(building)
        try:
            building.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was faster: its folder has the same content
                raise
    return place


JAVA = "java"

#: Java's assignors by the names of `partition.assignment.strategy`.
_JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@dataclass(frozen=True, slots=True)
class Library:
    """One library. ``configuration``: its own options for a consumer, by the library's names. It takes the
    bootstrap servers and auto.offset.reset, too.
    """

    name: str
    profile: str
    configuration: Callable[[ConsumerConfig, str, str], Mapping[str, Any]]
    assignors: frozenset[str]
    #: The Python module to import, and the package of it.
    module: str | None = None
    package: str = ""
    #: Whether a member may offer eager and cooperative assignors together (KIP-429's way to upgrade).
    mixes_protocols: bool = True

    def check_installed(self) -> None:
        """Raises InputError that says what to install."""
        if self.name == JAVA:
            _ = java_command()
        for module, package in ((self.module, self.package), ("confluent_kafka", "confluent-kafka")):
            if module is not None and find_spec(module) is None:
                why = "" if module == self.module else " (it writes the records)"
                raise InputError(
                    f"--with {self.name}: {package} is not installed{why}: pip install 'groupstorm[kafka]'"
                )

    def check_settings(self, settings: Settings) -> None:
        """Raises InputError for a setting that this library cannot follow."""
        if settings.choice("application") == STREAMS:
            raise InputError("application: streams: --with runs plain consumers only")
        for index in range(settings.integer("members")):
            self._check_member(settings.of_member(index))

    def _check_member(self, settings: Settings) -> None:
        (profile, *others) = settings.names("client_profile")
        if others or profile != self.profile:
            named = ", ".join((profile, *others))
            raise InputError(
                f"client_profile: {named}: --with {self.name} runs members of {self.profile} only"
            )
        if GroupProtocol(settings.choice("group.protocol")) is GroupProtocol.CLASSIC:
            self._check_classic(settings)
        for name in ("assign_ms", "assign_ns_per_member_partition"):
            if dict(settings.written())[name] != 0:
                raise InputError(f"{name}: a real assignor takes its own time: leave it out with --with")
        for name, remedy in _OF_EMULATED_WORK.items():
            if dict(settings.written())[name] != BY_NAME[name].default:
                raise InputError(f"{name}: {remedy}: leave it out with --with")
        if settings.optional_flag("leave_on_close") is not None and self.name != JAVA:
            raise InputError(f"leave_on_close: {self.name} has no such option: leave it out with --with")

    def _check_classic(self, settings: Settings) -> None:
        offered = settings.names("partition.assignment.strategy")
        for name in offered:
            if name not in self.assignors:
                raise InputError(
                    f"partition.assignment.strategy: {name}: {self.name} has "
                    f"{', '.join(sorted(self.assignors))}, and --with takes none of yours"
                )
        if not self.mixes_protocols and len(offered) > 1 and "cooperative-sticky" in offered:
            raise InputError(
                f"partition.assignment.strategy: {', '.join(offered)}: {self.name} does not take eager and "
                "cooperative assignors together: choose one kind"
            )


#: The settings that the application of a worker process does not follow, and why.
_OF_EMULATED_WORK: Mapping[str, str] = {
    "concurrency": "a worker process works on one record at a time",
    "slow_records": "a worker process works process_ms on every record",
    "machines": "worker processes run on this machine, as fast as it is",
    "gc_pause_ms": "a library's pauses are its own",
}


def _protocol_options(config: ConsumerConfig, strategy: str) -> Mapping[str, str]:
    """The options of one group protocol, which the other one refuses. ``strategy``: the library's classes."""
    if config.group_protocol is GroupProtocol.CLASSIC:
        return {
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": str(config.session_timeout_ms),
            "heartbeat.interval.ms": str(config.heartbeat_interval_ms),
        }
    assignor = config.group_remote_assignor
    named = {} if assignor is None else {"group.remote.assignor": assignor}
    return {"group.protocol": config.group_protocol.value, **named}


def _kafkas_names(config: ConsumerConfig, bootstrap: str, reset: str, strategy: str) -> dict[str, Any]:
    """The options that librdkafka and Java's consumer share. ``strategy``: the assignors as the library has
    them."""
    static = {} if config.group_instance_id is None else {"group.instance.id": config.group_instance_id}
    return {
        "bootstrap.servers": bootstrap,
        "group.id": config.group_id,
        "client.id": config.client_id,
        **static,
        **_protocol_options(config, strategy),
        "max.poll.interval.ms": config.max_poll_interval_ms,
        "retry.backoff.ms": config.retry_backoff_ms,
        "metadata.max.age.ms": config.metadata_max_age_ms,
        "enable.auto.commit": config.enable_auto_commit,
        "auto.commit.interval.ms": config.auto_commit_interval_ms,
        "auto.offset.reset": reset,
    }


def _confluent_kafka(config: ConsumerConfig, bootstrap: str, reset: str) -> Mapping[str, Any]:
    return {
        **_kafkas_names(config, bootstrap, reset, ",".join(config.partition_assignment_strategy)),
        "socket.timeout.ms": config.request_timeout_ms,
        "topic.metadata.refresh.interval.ms": config.metadata_max_age_ms,
    }


def _java(config: ConsumerConfig, bootstrap: str, reset: str) -> Mapping[str, Any]:
    """The worker takes texts."""
    assignors = ",".join(_JAVA_ASSIGNORS[name] for name in config.partition_assignment_strategy)
    options = {
        **_kafkas_names(config, bootstrap, reset, assignors),
        "request.timeout.ms": config.request_timeout_ms,
    }
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()
    }


def _python_names(config: ConsumerConfig, bootstrap: str, reset: str) -> dict[str, Any]:
    """The options that kafka-python and aiokafka share."""
    return {
        "bootstrap_servers": bootstrap.split(","),
        "group_id": config.group_id,
        "client_id": config.client_id,
        "group_instance_id": config.group_instance_id,
        "partition_assignment_strategy": list(config.partition_assignment_strategy),
        "session_timeout_ms": config.session_timeout_ms,
        "heartbeat_interval_ms": config.heartbeat_interval_ms,
        "max_poll_interval_ms": config.max_poll_interval_ms,
        "request_timeout_ms": config.request_timeout_ms,
        "retry_backoff_ms": config.retry_backoff_ms,
        "metadata_max_age_ms": config.metadata_max_age_ms,
        "enable_auto_commit": config.enable_auto_commit,
        "auto_commit_interval_ms": config.auto_commit_interval_ms,
        "auto_offset_reset": reset,
    }


_EAGER = frozenset({"range", "roundrobin"})

LIBRARIES: Mapping[str, Library] = {
    library.name: library
    for library in (
        Library(
            "confluent-kafka",
            "librdkafka",
            _confluent_kafka,
            _EAGER | {"cooperative-sticky"},
            "confluent_kafka",
            "confluent-kafka",
            mixes_protocols=False,
        ),
        Library("aiokafka", "aiokafka", _python_names, _EAGER | {"sticky"}, "aiokafka", "aiokafka"),
        Library(
            "kafka-python",
            "kafka-python",
            _python_names,
            _EAGER | {"sticky", "cooperative-sticky"},
            "kafka",
            "kafka-python",
        ),
        Library(JAVA, "java", _java, frozenset(_JAVA_ASSIGNORS)),
    )
}


def library(name: str) -> Library:
    """The library of that name. Raises InputError."""
    if name not in LIBRARIES:
        raise InputError(f"--with {name}: expected {', '.join(LIBRARIES)}")
    return LIBRARIES[name]


#: A distribution is handed over as so many quantiles, at equal distances from 0 to 100 %.
_QUANTILES = 101

#: The distributions that a member draws from, by the names that workers know.
_DURATIONS = {
    "poll_interval": "poll_interval_ms",
    "revoke_callback": "revoke_callback_ms",
    "assign_callback": "assign_callback_ms",
    "restore": "restore_ms",
    "process": "process_ms",
}


def order(
    library: Library, settings: Settings, config: ConsumerConfig, bootstrap: str, seed: int
) -> dict[str, Any]:
    """The command that starts the consumer of ``config`` in a worker process."""
    durations = {name: _quantiles_us(settings.distribution(setting)) for name, setting in _DURATIONS.items()}
    return {
        "member": config.client_id,
        "topics": list(config.topics),
        "config": dict(library.configuration(config, bootstrap, settings.choice("auto.offset.reset"))),
        "max_poll_records": settings.integer("max.poll.records"),
        "durations": durations,
        "seed": seed,
        "leave_on_close": config.leave_group_on_close,
    }


def _quantiles_us(distribution: Distribution) -> list[int]:
    last = _QUANTILES - 1
    return [distribution.at(min(DRAW_SPAN - 1, DRAW_SPAN * number // last)) for number in range(_QUANTILES)]
