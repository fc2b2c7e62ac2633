"""The commands that start a member of each library, and what the member is ordered to do."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers.jvm import logging_option
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import PROFILES, GroupProtocol
from groupstorm.storms.live.real_clients.libraries import JAVA, library
from tests.conformance.programs.building import java_program
from tests.imports.recording.logging_files import member_logging
from tests.imports.recording.releases import (
    HEARTBEAT_INTERVAL_MS,
    LONG_SESSION_TIMEOUT_MS,
    MAX_POLL_INTERVAL_MS,
    SESSION_TIMEOUT_MS,
    Clients,
)

_SOURCE = Path(__file__).parent / "java" / "RecordedMember.java"
_JVM = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
#: A worker draws its durations from these quantiles: it polls every 50 ms, and works on nothing.
_POLL_US = [50_000] * 101
_NO_TIME_US = [0] * 101
_DURATIONS = {
    "poll_interval": _POLL_US,
    **dict.fromkeys(("revoke_callback", "assign_callback", "restore", "process"), _NO_TIME_US),
}


def command(clients: Clients, release: str, folder: Path) -> Sequence[str]:
    """Starts a process that hosts one member; files that it needs are written into ``folder``.

    Raises ProgramUnavailable or InputError that says what to install.
    """
    if clients.library != JAVA:
        library(clients.library).check_installed()
        return [sys.executable, "-m", "tests.imports.recording.worker", clients.library]
    java = java_program(_SOURCE, f"recorded-member-{release}", release)
    option = logging_option(release, member_logging(release, folder))
    return [str(java.java), *_JVM, option, "-cp", java.classpath, "RecordedMember"]


def order(
    clients: Clients, bootstrap: str, group: str, assignor: str, member: str, instance: str | None
) -> Mapping[str, Any]:
    """The command that starts a member in its process. ``assignor``: of a classic group."""
    used = library(clients.library)
    config = ConsumerConfig(
        group,
        member,
        ("orders",),
        instance,
        (assignor,) if assignor else ("range",),
        session_timeout_ms=SESSION_TIMEOUT_MS if instance is None else LONG_SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS if instance is None else LONG_SESSION_TIMEOUT_MS,
        enable_auto_commit=False,
        group_protocol=clients.protocol,
        profile=PROFILES[used.profile],
    )
    debug = {"debug": "cgrp"} if used.profile == "librdkafka" else {}
    return {
        "do": "start",
        "member": member,
        "topics": list(config.topics),
        "config": {**used.configuration(config, bootstrap, "latest"), **debug},
        "max_poll_records": 500,
        "durations": _DURATIONS,
        "seed": 0,
        "leave_on_close": None,
    }


def assignors(clients: Clients) -> tuple[str, str]:
    """The assignors of the group of dynamic members and of the group of static ones."""
    return ("range", clients.cooperative) if clients.protocol is GroupProtocol.CLASSIC else ("", "")
