"""Changes that the owner of a consumer could make before a rollout, their scenarios and outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from groupstorm.clients.profiles import PROFILES, consumer_protocol_needs
from groupstorm.coordinator.config import OPTIONS, parse_options
from groupstorm.history.coordinator_view import is_cooperative
from groupstorm.history.rounds import is_rebalance
from groupstorm.storms.deployments.manifests.choice import STATIC_STREAMS
from groupstorm.storms.deployments.manifests.plan import Plan
from groupstorm.storms.deployments.rolling_update import limits_of, stateful_set_limits
from groupstorm.storms.deployments.rollout import COMPLETE, STUCK
from groupstorm.storms.runs.contradictions import closing_us
from groupstorm.storms.scenario.consistency import is_shared, longest_session_ms, of_protocol
from groupstorm.storms.scenario.member_rules import STRATEGY, named_code
from groupstorm.storms.scenario.quantities import PodCount
from groupstorm.storms.scenario.setting_names import (
    CLASSIC,
    CONSUMER,
    DEPLOYMENT,
    IDLE_IN_STREAMS_GROUPS,
    POLLS,
    RUNS,
    STATEFUL_SET,
    STREAMS,
    STREAMS_PROTOCOL,
    UNSUPPORTED,
)
from groupstorm.storms.scenario.settings import Settings
from groupstorm.trace.reader import read_entries
from groupstorm.verdicts.alternatives import AS_IT_IS, Alternative
from groupstorm.wording import counted, seconds

COOPERATIVE: Final = "cooperative-sticky"
INSTANCE: Final = "group.instance.id"
SESSION: Final = "session.timeout.ms"
#: The step of all alternatives, whatever the rollout as it is.
ROLLING: Final = "rolling-restart"

_ROLLING_UPDATE: Final = "rolling-update"
_VOLUMES: Final = "a volume for each pod, which keeps its state"
_SIDE_BY_SIDE: Final = "old and new pods run side by side"
_EACH_POD: Final = "each pod that goes or comes causes a rebalance and moves partitions"

#: A StatefulSet that replaces several pods at once replaces so many.
_SEVERAL: Final = PodCount(25, is_percentage=True)
#: The period of a readiness probe, if nothing says otherwise (Kubernetes).
_PROBE_PERIOD_MS: Final = 10_000


def scenarios_of(plan: Plan, alternatives: Sequence[Alternative]) -> dict[str, dict[str, Any]]:
    """The scenarios by the kinds of their rollouts, with the alternatives as variants.

    Their figures are those of the rollout alone: groups of two protocols do not begin alike.
    """
    found: dict[str, dict[str, Any]] = {plan.step: {AS_IT_IS: {}}}
    for one in alternatives:
        found.setdefault(ROLLING, {})[one.name] = dict(one.settings)
    return {
        step: {**replace(plan, step=step).scenario(), "variants": variants}
        for step, variants in found.items()
    }


def alternatives_to(plan: Plan, settings: Settings) -> Iterator[Alternative]:
    """Yield the alternatives that apply to this workload. ``settings``: those of the plan, resolved.

    All of them roll, which is a part of the price for a workload that does not.
    """
    for one in _alternatives(plan, settings):
        rolls_only_here = plan.step != ROLLING and one.name != _ROLLING_UPDATE
        are_several = settings.processes > 1 or one.settings.get("max_surge") != 0
        yield one._replace(price=f"{_SIDE_BY_SIDE}; {one.price}") if rolls_only_here and are_several else one


def _alternatives(plan: Plan, settings: Settings) -> Iterator[Alternative]:
    if plan.alarms:
        # all else first needs pods that do not fence each other; those of a Deployment keep no name
        if settings.choice("deployment") == STATEFUL_SET:
            price = _until_noticed(settings, settings.integer(of_protocol(settings, SESSION)))
            yield Alternative("ids-of-their-own", 0, price, {"member_settings": [], INSTANCE: "podname"})
        else:
            yield Alternative("dynamic-members", 0, _EACH_POD, {"member_settings": [], INSTANCE: "none"})
        return
    clients = [PROFILES[name] for name in settings.names("client_profile")]
    strategies = settings.names(STRATEGY)
    is_classic = settings.choice("group.protocol") == CLASSIC
    if settings.choice("application") == STREAMS:
        yield from _of_streams(settings, is_classic)
        yield from _of_kubernetes(plan, settings)
        return
    is_known = named_code({STRATEGY: list(strategies)}) is None
    has_cooperative = all(client.has_cooperative for client in clients)
    if is_classic and has_cooperative and is_known and not all(map(is_cooperative, strategies)):
        price = (
            f"{way_to(COOPERATIVE, settings)}; wrong if the application has to give up all partitions in "
            "each rebalance, as for work across partitions"
        )
        yield Alternative(COOPERATIVE, 2, price, {STRATEGY: [COOPERATIVE]})
    if not is_shared(settings):
        yield from _membership(settings)
    if is_classic and (needs := consumer_protocol_needs(settings.names("client_profile"))):
        price = f"it needs {needs}; wrong if the group needs an assignor of its own, as the broker assigns"
        yield Alternative("kip-848", 3, price, {"group.protocol": CONSUMER})
    yield from _of_kubernetes(plan, settings)


def _of_streams(settings: Settings, is_classic: bool) -> Iterator[Alternative]:
    """A copy of the state, LeaveGroup on close, static members, and streams groups (KIP-1071).

    Instances of the classic protocol leave no group when they close (StreamsConfig), so their tasks wait for
    the session timeout; those of a streams group leave it.
    """
    if not settings.integer("num.standby.replicas") and _has_state(settings) and settings.processes > 1:
        price = "disks, and traffic, for a second copy of all state"
        yield Alternative("standbys", 1, price, {"num.standby.replicas": 1})
    if not settings.flag("state_outlasts_process"):
        yield Alternative("volumes", 2, _VOLUMES, {"state_outlasts_process": True})
    if is_classic and not settings.optional_flag("leave_on_close") and settings.choice(INSTANCE) == "none":
        price = "an instance that comes back at once has given its tasks away meanwhile"
        if _has_state(settings):
            price += ", and who has no copy of their state restores it"
        yield Alternative("leave-on-close", 1, price, {"leave_on_close": True})
    yield from _membership(settings)
    # Kafka Streams of a streams group passes the session timeout of the classic protocol by
    idle = IDLE_IN_STREAMS_GROUPS.keys() - UNSUPPORTED[STREAMS_PROTOCOL].keys()
    if is_classic and not any(settings.changed(idle)):
        release = "4.2" if settings.choice(INSTANCE) == "none" else "4.4"
        price = (
            f"it needs Apache Kafka {release} or later (brokers and kafka-streams), and all instances stop "
            "once for it; wrong with much state and no standbys, as no warm-up builds it up before a task "
            "moves"
        )
        yield Alternative("streams-group", 3, price, {"group.protocol": STREAMS})


def _has_state(settings: Settings) -> bool:
    """Whether any task of a Kafka Streams application keeps state."""
    of_streams = settings.choice("application") == STREAMS
    return of_streams and settings.integer("stateless_topics") < settings.integer("topics")


def _membership(settings: Settings) -> Iterator[Alternative]:
    """Dynamic members; static members in a StatefulSet, whose sessions outlast a restart."""
    is_stateful = settings.choice("deployment") == STATEFUL_SET
    is_static = settings.choice(INSTANCE) != "none"
    if is_static:
        yield Alternative("dynamic-members", 1, _EACH_POD, {INSTANCE: "none"})
    session = of_protocol(settings, SESSION)
    in_use_ms = settings.integer(session)
    wanted_ms = _session_ms(settings, in_use_ms)
    if is_static and is_stateful and wanted_ms == in_use_ms:
        return
    price = _until_noticed(settings, wanted_ms)
    if settings.choice("group.protocol") == STREAMS_PROTOCOL:
        price += f"; {STATIC_STREAMS}"
    overlay: dict[str, Any] = {INSTANCE: "podname"}
    if wanted_ms != in_use_ms:
        overlay[session] = wanted_ms
    if not is_stateful:
        overlay |= {"deployment": STATEFUL_SET, "max_surge": 0, "max_unavailable": 1}
        price = f"pods are replaced one at a time, without surge; {price}"
    if _has_state(settings) and not (is_stateful and settings.flag("state_outlasts_process")):
        overlay["state_outlasts_process"] = True
        price = f"{_VOLUMES}; {price}"
    name = "longer-session" if is_static and is_stateful else "static-members"
    yield Alternative(name, 1 if is_stateful else 4, price, overlay)


def _until_noticed(settings: Settings, session_ms: int) -> str:
    session = f"{of_protocol(settings, SESSION)} is over ({seconds(session_ms / 1000)})"
    return f"nobody takes the partitions of a dead pod before {session}"


def _session_ms(settings: Settings, in_use_ms: int) -> int:
    """A session timeout with which a pod is back in time: a quarter longer than it takes, in whole 10 s.

    The one in use if it is long enough. That of the newer protocols is the broker's: it accepts no longer one
    for a group than its own bound, which is taken for the default, or for the session in use.
    """
    session = of_protocol(settings, SESSION)
    heartbeat_ms = settings.integer(of_protocol(settings, "heartbeat.interval.ms"))
    away_ms = heartbeat_ms + settings.distribution("start_ms").largest_us // 1000
    if in_use_ms * 4 >= away_ms * 5:
        return in_use_ms
    most_ms = longest_session_ms(settings)
    if session in OPTIONS:
        most_ms = max(in_use_ms, int(parse_options({})[session.replace(".session.", ".max.session.")]))
    return min(-(-away_ms * 5 // 40_000) * 10_000, most_ms)


def _of_kubernetes(plan: Plan, settings: Settings) -> Iterator[Alternative]:
    """Other fields of the workload: its grace, its strategy, its surge, a readiness probe."""
    closing_ms = settings.integer("pre_stop_ms") - (-closing_us(settings) // 1000)
    grace_ms = settings.optional_integer("termination_grace_ms")
    if plan.step == ROLLING and grace_ms is not None and closing_ms >= grace_ms:
        wanted_ms = -(-closing_ms * 5 // 40_000) * 10_000
        price = f"a pod that hangs while it closes is killed only after {seconds(wanted_ms / 1000)}"
        yield Alternative("longer-grace", 1, price, {"termination_grace_ms": wanted_ms})
    pods = settings.processes
    limits = limits_of(settings, pods)
    several = stateful_set_limits(_SEVERAL, pods).unavailable
    if plan.step != ROLLING:
        yield Alternative(_ROLLING_UPDATE, 1, _SIDE_BY_SIDE, {})
    elif settings.choice("deployment") == DEPLOYMENT:
        if limits.surge < pods or limits.unavailable:
            price = f"room for {counted(pods, 'more pod')} during the rollout, and twice the connections"
            yield Alternative("more-surge", 1, price, {"max_surge": "100%", "max_unavailable": 0})
    elif several > limits.unavailable:
        gate = "the feature gate MaxUnavailableStatefulSet (on from Kubernetes 1.35 on)"
        price = f"up to {several} pods are missing; needs {gate}"
        yield Alternative("several-at-once", 1, price, {"max_unavailable": _SEVERAL.as_written})
    if settings.choice("ready_when") == RUNS:
        price = "a longer rollout, and an endpoint that is ready only once the consumer polls"
        probe = {"ready_when": POLLS, "ready_ms": {"uniform": [0, _PROBE_PERIOD_MS]}}
        yield Alternative("readiness-probe", 1, price, probe)


def way_to(assignor: str, settings: Settings) -> str:
    """The deployments after which the members use the assignor."""
    if _changes_kind(assignor, settings):
        return "all consumers stop once for it, as librdkafka does not mix eager and cooperative assignors"
    if is_mixed_first(settings, assignor):
        first = "two deployments to get there, the first with both assignors"
        return f"{first}, and only those after them cost this"
    return "one deployment to get there, and only those after it cost this"


def _changes_kind(assignor: str, settings: Settings) -> bool:
    is_cooperative = COOPERATIVE in settings.names(STRATEGY)
    is_librdkafka = settings.names("client_profile")[0] == "librdkafka"
    return is_librdkafka and (assignor == COOPERATIVE) != is_cooperative


def is_mixed_first(settings: Settings, assignor: str = COOPERATIVE) -> bool:
    """Whether the way to the assignor is a deployment with both assignors, then one without the old.

    Members that know the assignor already (Java's default, KIP-726) need only the second one.
    """
    return assignor not in settings.names(STRATEGY) and not _changes_kind(assignor, settings)


class Outcome(NamedTuple):
    """``seconds`` from the rollout's step until the last pod is available; None if it is stuck.

    ``stuck``: why, and when Kubernetes reports it, as a sentence. ``killed`` pods got SIGKILL before their
    consumers had sent LeaveGroup.
    ``late_s``: seconds from the step until the first progress deadline passes; None if none does.
    """

    seconds: float | None
    stuck: str | None
    rebalances: int
    killed: int
    late_s: float | None = None


def read_outcome(trace: Path, step: str) -> Outcome:
    """The outcome of the one rollout in the trace, whose kind of step is ``step``."""
    begun_us: int | None = None
    seconds, stuck, late_s = None, None, None
    rebalances, kills, were_members = 0, list[int](), dict[int, bool]()
    for row, entry in read_entries(trace):
        if row["event"] == "step_taken":
            if row["cause"] == step and begun_us is None:
                begun_us = row["time_us"]
            elif row["cause"] == COMPLETE and begun_us is not None:
                seconds, stuck = (row["time_us"] - begun_us) / 1e6, None
            elif row["cause"] == STUCK and begun_us is not None:
                late_s = late_s or (row["time_us"] - begun_us) / 1e6
                stuck = row["detail"].partition(": ")[2]
            if row["cause"] == step and row["detail"].startswith("SIGKILL"):
                kills.append(row["time_us"])
            continue
        if row["event"] == "member_crashed":
            were_members[row["time_us"]] = bool(row["member_id"]) or were_members.get(row["time_us"], False)
        if begun_us is not None and entry is not None:
            rebalances += is_rebalance(entry[2])
    killed = sum(were_members.get(at_us, True) for at_us in kills)
    return Outcome(seconds, stuck, rebalances, killed, late_s)


class Remedy(NamedTuple):
    """``change`` as a manifest has it; ``step``: the kind of the step that is the rollout."""

    name: str
    change: str
    step: str
    scenario: dict[str, Any]


def remedies_for(plan: Plan) -> Iterator[Remedy]:
    """Changes that may end a rollout that never completes, in the order in which people would try them."""
    is_deployment = plan.settings["deployment"] == DEPLOYMENT
    if is_deployment and plan.step == "rolling-restart":
        if plan.may_be_full:
            yield _with(plan, "no-surge", "maxSurge: 0, maxUnavailable: 1", max_surge=0, max_unavailable=1)
        yield _with(plan, "max-unavailable", "maxUnavailable: 1", max_unavailable=1)
        recreated = replace(plan, step="recreate")
        yield Remedy("recreate", "strategy: Recreate", "recreate", recreated.scenario())
    if plan.settings["ready_when"] != POLLS:
        yield _with(plan, "ready-when-polls", "a readiness probe that needs no partition", ready_when=POLLS)


def _with(plan: Plan, name: str, change: str, **settings: Any) -> Remedy:
    changed = replace(plan, settings={**plan.settings, **settings})
    return Remedy(name, change, plan.step, changed.scenario())
