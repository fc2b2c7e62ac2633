"""The settings of a group that its trace measures, for rollouts that are not those of the trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from groupstorm.clients.profiles import PROFILES
from groupstorm.figures.percentiles import percentile
from groupstorm.storms.scenario.knowledge import How, Known, Measured, inferred, observed
from groupstorm.storms.scenario.settings import BY_NAME
from groupstorm.whatif.inference import (
    CONSUMER_ASSIGNMENT,
    CONSUMER_HEARTBEAT,
    CONSUMER_SESSION,
    HEARTBEAT,
    INITIAL_DELAY,
    INSTANCE,
    POLL_INTERVAL,
    PROTOCOL,
    SESSION,
    STRATEGY,
    differs_from_default,
    infer_settings,
    timeouts_of,
)
from groupstorm.whatif.knobs import POLL_RECORDS
from groupstorm.whatif.lives import Lives, lives_of
from groupstorm.whatif.reading import JOINED, REMOVED, REPLACED, Reading, Sign, read_run
from groupstorm.whatif.waves import QUIET_US, Restart, restarts_of
from groupstorm.wording import counted

#: Settings that logs say, or from which they follow.
_OF_LOGS: Final = (
    "client_profile",
    PROTOCOL,
    STRATEGY,
    SESSION,
    HEARTBEAT,
    CONSUMER_SESSION,
    CONSUMER_HEARTBEAT,
    CONSUMER_ASSIGNMENT,
    POLL_INTERVAL,
    INITIAL_DELAY,
    "assign_ms",
)
#: Settings of a storm that its group keeps in another deployment.
_OF_STORM: Final = (
    *_OF_LOGS,
    "start_ms",
    "stop_grace_ms",
    "drain_ms",
    "record_rate",
    "record_skew",
    INSTANCE,
    POLL_RECORDS,
    "process_ms",
    "poll_interval_ms",
    "concurrency",
    "revoke_callback_ms",
    "assign_callback_ms",
    "restore_ms",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "commits",
    "commit_interval_ms",
    "gc_pause_ms",
    "gc_interval_ms",
    "net_latency_ms",
)
#: Settings of a storm that count even if they are the defaults: nothing else says them.
_ALWAYS: Final = frozenset({"start_ms", "record_rate"})
#: A partition with so many times the mean rate is named.
_BUSY: Final = 2
#: Settings that no log says -> why.
_NOT_IN_LOGS: Final = {
    "stop_grace_ms": "no log says when a process got SIGTERM",
    "drain_ms": "no log says for how long a process works on after SIGTERM",
    "process_ms": "no log says how long the application works on a record",
}


def measure(run: Path, group: str | None) -> Measured:
    """Measure one group of the trace at ``run``. Raises InputError.

    ``group``: its id; needed if the trace has several.
    """
    reading = read_run(run, group)
    settings = infer_settings(reading, {})
    lives = lives_of(reading, timeouts_of(reading, settings))
    shared = {name for name, signs in reading.signs.items() if _is_shared(signs)}
    restarts = [
        one
        for one in restarts_of(lives)
        if one.name not in shared and 0 <= one.start_us - one.stop_us <= QUIET_US
    ]
    if reading.is_storm:
        found = {
            name: observed(value, "the run's own setting")
            for name, value in reading.scenario.items()
            if name in _OF_STORM and (name in _ALWAYS or differs_from_default(name, value))
        }
    else:
        found = {
            name: known._replace(why=known.why.rsplit("/", 1)[-1])  # the name of the log, without its folder
            for name, known in settings.items()
            if name in _OF_LOGS and known.how != How.ASSUMED
        }
        default = PROFILES[str(settings["client_profile"].value[0])].defaults.get(
            STRATEGY, BY_NAME[STRATEGY].default
        )
        if STRATEGY in found and found[STRATEGY].value == default[:1]:
            del found[STRATEGY]  # the group chooses one, and its members may have the default's others, too
        found |= _record_rate(reading)
        if lives.stints and all(stint.name in reading.instances for stint in lives.stints):
            kept = "ordinal" if restarts else "podname"
            why = "its members are static"
            found[INSTANCE] = observed(kept, f"{why}, and come back under their ids" if restarts else why)
    if reading.topics:
        topics = dict(sorted(reading.topics.items()))
        found["topic_partitions"] = inferred(topics, "the highest partitions that its rows name")
    if not shared:
        found |= _members(lives, restarts, reading.ended_us)
    found |= _starts(restarts)
    unknown = {} if reading.is_storm else {**_unknown(found, shared), **_NOT_IN_LOGS}
    return Measured(str(run), found, unknown)


def _unknown(found: Mapping[str, Known], shared: Collection[str]) -> dict[str, str]:
    came_back = "no process stops and comes back under its name"
    if shared:
        came_back += f"; several at once have the client id {min(shared)}"
    reasons = {
        "partitions": ("topic_partitions", "no row names any: the log of the group's leader does"),
        "record_rate": ("record_rate", "it has no ends of logs and no commits over 30 s, as a capture has"),
        "start_ms": ("start_ms", came_back),
    }
    return {name: why for name, (setting, why) in reasons.items() if setting not in found}


def _is_shared(signs: Sequence[Sign]) -> bool:
    """Whether several processes have the client id at once: one joins while another is in the group."""
    present: set[str] = set()
    for sign in signs:
        if sign.kind == JOINED:
            present.add(sign.member_id)
        elif sign.kind == REPLACED:
            present = {sign.member_id}
        elif sign.kind == REMOVED:
            present.discard(sign.member_id)
        if len(present) > 1:
            return True
    return False


def _starts(restarts: Sequence[Restart]) -> dict[str, Known]:
    """From the end of a process to the first JoinGroup of its successor."""
    took_ms = sorted((one.start_us - one.stop_us) // 1000 for one in restarts)
    if not took_ms:
        return {}
    least, most = took_ms[0], took_ms[-1]
    where = "from LeaveGroup to the next JoinGroup"
    if len(took_ms) == 1:
        return {"start_ms": inferred(least, f"1 start, {least / 1000:.1f} s {where}")}
    quantiles = {0: least, 50: percentile(took_ms, 50), 95: percentile(took_ms, 95), 100: most}
    why = f"{len(took_ms)} starts, {least / 1000:.1f} to {most / 1000:.1f} s {where}"
    return {"start_ms": inferred({"quantiles": quantiles}, why)}


def _members(lives: Lives, restarts: Sequence[Restart], ended_us: int) -> dict[str, Known]:
    """How many members the group had for most of the time that it had any; those that restart count."""
    changes: Counter[int] = Counter()
    for stint in lives.stints:
        changes[max(0, stint.start.at_us)] += 1
        changes[ended_us if stint.end is None else stint.end.at_us] -= 1
    for one in restarts:
        changes[one.stop_us] += 1
        changes[one.start_us] -= 1
    lasted_us: Counter[int] = Counter()
    count = 0
    for at_us, next_us in pairwise(sorted(changes)):
        count += changes[at_us]
        lasted_us[count] += next_us - at_us
    del lasted_us[0]
    if not lasted_us:
        return {}
    return {"members": inferred(lasted_us.most_common(1)[0][0], "so many for most of the time")}


def _record_rate(reading: Reading) -> dict[str, Known]:
    """The mean over the partitions; of each topic if there are several."""
    rates = reading.growth.rates()
    if not rates:
        return {}
    by_topic: dict[str, list[float]] = {}
    for name, rate in rates.items():
        by_topic.setdefault(name.rpartition("-")[0], []).append(rate)
    means = {topic: _rounded(fmean(each)) for topic, each in sorted(by_topic.items())}
    value: Any = means if len(reading.topics) > 1 else next(iter(means.values()))
    source = "the commits of the group" if reading.growth.by_commits else "the ends of the logs"
    busiest = max(rates, key=lambda name: rates[name])
    why = f"the mean by {source} over {counted(len(rates), 'partition')}"
    if rates[busiest] > _BUSY * fmean(rates.values()):
        why += f"; {_rounded(rates[busiest]):,} in {busiest}"
    return {"record_rate": inferred(value, why)}


def _rounded(rate: float) -> float | int:
    return round(rate) if rate >= 10 else round(rate, 3)
