"""The scenarios that a service of one's own can be put through."""

from __future__ import annotations

from typing import Final

from groupstorm.problems import InputError
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.steps import CHAOS_STEPS, COORDINATOR_FAILOVER, SERVICE_STEPS
from groupstorm.storms.scenario.streams_settings import STREAMS

#: So many instances are processes of their own on this machine.
INSTANCES_MAX: Final = 50
#: Steps that are faults of connections and brokers: in front of real brokers a proxy carries them out.
_CARRIED_OUT_BY_PROXY: Final = CHAOS_STEPS | {"disconnect", "reconnect-storm"}


def needs_proxy(scenario: ResolvedScenario) -> bool:
    """Whether a real broker needs a proxy in front of it."""
    return any(step.do in _CARRIED_OUT_BY_PROXY for step in scenario.steps)


def check_scenario(scenario: ResolvedScenario, on_emulator: bool) -> None:
    """Raises InputError for settings and steps that only emulated members, or emulated brokers, have."""
    settings = scenario.settings
    if settings.choice("application") == STREAMS:
        raise InputError("application: streams: expected consumer: a service of your own is a consumer")
    members = settings.integer("members")
    if members > INSTANCES_MAX:
        raise InputError(
            f"members: {members}: expected at most {INSTANCES_MAX} processes of a service: --instances 3"
        )
    if settings.integer("members_per_pod") > 1:
        raise InputError("members_per_pod: expected 1: a service of your own has the consumers that it has")
    for name in ("drain_ms", "gc_pause_ms"):
        if settings.distribution(name).largest_us:
            raise InputError(f"{name}: expected 0: a service of your own takes its own time")
    for number, step in enumerate(scenario.steps, start=1):
        where = f"steps: {number}: do: {step.do}"
        if step.do not in SERVICE_STEPS:
            raise InputError(
                f"{where}: not for a service of your own: expected {', '.join(sorted(SERVICE_STEPS))}"
            )
        if step.do == COORDINATOR_FAILOVER and not on_emulator:
            raise InputError(f"{where}: expected --on emulator: only there a coordinator moves on command")
        if step.settings:
            raise InputError(f"{where}: settings: a service of your own has its own settings")
