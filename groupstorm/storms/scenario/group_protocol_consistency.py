"""What group.protocol does not go together with."""

from __future__ import annotations

from groupstorm.clients.group_protocol import GroupProtocol
from groupstorm.clients.profiles import PROFILES
from groupstorm.problems import InputError
from groupstorm.storms.scenario.group_protocol_settings import CONSUMER_SESSION_TIMEOUT, GROUP_PROTOCOL
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.streams_settings import STREAMS


def check_group_protocol(settings: Settings) -> None:
    """Raises InputError. ``settings``: those of one client."""
    protocol = GroupProtocol(settings.choice(GROUP_PROTOCOL))
    heartbeat_ms = settings.integer("group.consumer.heartbeat.interval.ms")
    session_ms = settings.integer(CONSUMER_SESSION_TIMEOUT)
    if heartbeat_ms >= session_ms:
        raise InputError(
            f"group.consumer.heartbeat.interval.ms: {heartbeat_ms} must be lower than "
            f"{CONSUMER_SESSION_TIMEOUT} ({session_ms})"
        )
    if protocol is GroupProtocol.CLASSIC:
        return
    profile = PROFILES[settings.names("client_profile")[0]]
    if protocol not in profile.group_protocols:
        raise InputError(
            f"{GROUP_PROTOCOL}: {protocol}: the members of client_profile {profile.name} speak the classic "
            "protocol only"
        )
    if settings.choice("application") == STREAMS:
        raise InputError(f"{GROUP_PROTOCOL}: {protocol}: the threads of Kafka Streams speak the classic one")
    largest_us = settings.distribution("net_latency_ms").largest_us
    drift_ppm = settings.integer("clock_drift_ppm")
    if largest_us * (1_000_000 + drift_ppm) >= heartbeat_ms * 10**9:
        raise InputError(
            f"net_latency_ms: up to {largest_us / 1000:g} ms must stay below "
            "group.consumer.heartbeat.interval.ms"
        )
