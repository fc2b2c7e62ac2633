"""What group.protocol does not go together with."""

from __future__ import annotations

from collections.abc import Collection

from groupstorm.clients.group_protocol import GroupProtocol
from groupstorm.clients.profiles import PROFILES
from groupstorm.problems import InputError
from groupstorm.storms.scenario.group_protocol_settings import (
    CONSUMER_SESSION_TIMEOUT,
    GROUP_PROTOCOL,
    UNSUPPORTED,
)
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.streams_settings import STREAMS


def check_group_protocol(settings: Settings) -> None:
    """Raises InputError. ``settings``: those of one client."""
    _check_heartbeats(settings, "group.consumer.heartbeat.interval.ms", CONSUMER_SESSION_TIMEOUT)
    protocol = GroupProtocol(settings.choice(GROUP_PROTOCOL))
    if protocol is GroupProtocol.CLASSIC:
        _check_heartbeats(settings, "heartbeat.interval.ms", "session.timeout.ms")
        _check_session(settings)
        return
    profile = PROFILES[settings.names("client_profile")[0]]
    if protocol not in profile.group_protocols:
        raise InputError(
            f"{GROUP_PROTOCOL}: {protocol}: the members of client_profile {profile.name} speak the classic "
            "protocol only"
        )
    if settings.choice("application") == STREAMS:
        raise InputError(f"{GROUP_PROTOCOL}: {protocol}: the threads of Kafka Streams speak the classic one")


def _check_heartbeats(settings: Settings, heartbeat: str, session: str) -> None:
    heartbeat_ms, session_ms = settings.integer(heartbeat), settings.integer(session)
    if heartbeat_ms >= session_ms:
        raise InputError(f"{heartbeat}: {heartbeat_ms} must be lower than {session} ({session_ms})")


def _check_session(settings: Settings) -> None:
    """The broker has bounds for the sessions of classic members, who choose their own."""
    least = settings.integer("group.min.session.timeout.ms")
    most = settings.integer("group.max.session.timeout.ms")
    session_ms = settings.integer("session.timeout.ms")
    if not least <= session_ms <= most:
        raise InputError(
            f"session.timeout.ms: {session_ms}: the broker allows {least} to {most} "
            "(group.min.session.timeout.ms, group.max.session.timeout.ms)"
        )


def of_protocol(settings: Settings, name: str) -> str:
    """The setting ``name`` of the classic protocol, or what members of these settings have in its place."""
    return UNSUPPORTED[settings.choice(GROUP_PROTOCOL)].get(name, name)


def unused_settings(settings: Settings, given: Collection[str]) -> dict[str, str]:
    """Those of the settings ``given`` on the command line that no member has, because all members speak one
    protocol, with what takes their place."""
    protocols = {own.choice(GROUP_PROTOCOL) for own in settings.of_profiles()}
    if len(protocols) > 1:
        return {}
    return {name: instead for name, instead in UNSUPPORTED[protocols.pop()].items() if name in given}
