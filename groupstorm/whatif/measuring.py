"""The settings of a group that its trace measures, for rollouts that are not those of the trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from groupstorm.clients.profiles import PROFILES
from groupstorm.history.gaps import percentile
from groupstorm.storms.scenario.member_rules import OF_ONE_MEMBER
from groupstorm.storms.scenario.setting_names import How, Known, Measured, inferred, observed
from groupstorm.storms.scenario.settings import BY_NAME
from groupstorm.whatif.facts import JOINED, REMOVED, REPLACED, Reading, Sign
from groupstorm.whatif.inference import (
    CONSUMER_HEARTBEAT,
    CONSUMER_SESSION,
    INITIAL_DELAY,
    INSTANCE,
    STRATEGY,
    differs_from_default,
    infer_settings,
    timeouts_of,
)
from groupstorm.whatif.lives import lives_of
from groupstorm.whatif.reading import read_run
from groupstorm.whatif.waves import QUIET_US, Restart, restarts_of
from groupstorm.wording import counted

#: Settings of the steps that repeat a run.
_OF_STEPS: Final = frozenset({"stop_grace_ms", "phases", "tail_ms"})
#: Settings of a storm that its group keeps in another deployment, beside those of its members.
_OF_GROUP: Final = frozenset(
    {INITIAL_DELAY, CONSUMER_SESSION, CONSUMER_HEARTBEAT, "record_skew", "stop_grace_ms", "drain_ms"}
)
#: Settings of a storm that count even if they are the defaults: nothing else says them.
_ALWAYS: Final = frozenset({"start_ms", "record_rate"})
#: Offsets that were seen for less than this say nothing: commits come every 5 s.
_SPAN_US: Final = 30_000_000
#: Settings that no log says -> why.
_NOT_IN_LOGS: Final = {
    "stop_grace_ms": "no log says when a process got SIGTERM",
    "drain_ms": "no log says for how long a process works on after SIGTERM",
    "process_ms": "no log says how long the application works on a record",
}


def measure(run: Path, group: str | None) -> Measured:
    """Measure a group of the trace at ``run``: ``group``, needed if it has several. Raises InputError."""
    reading = read_run(run, group)
    lives = lives_of(reading, timeouts_of(reading, infer_settings(reading, {})))
    shared = {name for name, signs in reading.signs.items() if _is_shared(signs)}
    restarts = [
        one
        for one in restarts_of(lives)
        if one.name not in shared and 0 <= one.start_us - one.stop_us <= QUIET_US
    ]
    found = _of_storm(reading) if reading.is_storm else _of_logs(reading)
    if not reading.is_storm and lives.stints and all(one.name in reading.instances for one in lives.stints):
        ids = ("ordinal", "and come back under their ids") if restarts else ("podname", "as far as rows say")
        found[INSTANCE] = observed(ids[0], f"its members are static, {ids[1]}")
    if reading.topics:
        topics = dict(sorted(reading.topics.items()))
        found["topic_partitions"] = inferred(topics, "the highest partitions that its rows name")
    found |= _starts(restarts)
    named = {*found, "partitions"} if reading.topics else found
    return Measured(str(run), found, {} if reading.is_storm else _unknown(named, shared))


def _of_storm(reading: Reading) -> dict[str, Known]:
    return {
        name: observed(value, "the run's own setting")
        for name, value in reading.scenario.items()
        if name in _ALWAYS or (name in _OF_GROUP | OF_ONE_MEMBER and differs_from_default(name, value))
    }


def _of_logs(reading: Reading) -> dict[str, Known]:
    settings = infer_settings(reading, {})
    found = {
        name: known._replace(why=known.why.rsplit("/", 1)[-1])  # the log without its folder
        for name, known in settings.items()
        if name not in _OF_STEPS and known.how != How.ASSUMED
    }
    profile = PROFILES[str(settings["client_profile"].value[0])]
    default = profile.defaults.get(STRATEGY, BY_NAME[STRATEGY].default)
    if STRATEGY in found and found[STRATEGY].value == default[:1]:
        # the group chooses one, and its members may have the default's others, too
        found[STRATEGY] = found[STRATEGY]._replace(how=How.ASSUMED)
    return found | _record_rate(reading)


def _unknown(found: Collection[str], shared: Collection[str]) -> dict[str, str]:
    several = f"; several at once have the client id {min(shared)}" if shared else ""
    reasons = {
        "partitions": "no row names any: the log of the group's leader does",
        "record_rate": "it has no ends of logs and no commits over 30 s, as a capture has",
        "start_ms": f"no process stops and comes back under its name{several}",
    }
    return {name: why for name, why in reasons.items() if name not in found} | _NOT_IN_LOGS


def _is_shared(signs: Sequence[Sign]) -> bool:
    """Whether several processes have the client id at once: one joins while another is in the group."""
    present = None
    for sign in signs:
        if sign.kind == JOINED and present not in (None, sign.member_id):
            return True
        if sign.kind in (JOINED, REPLACED):
            present = sign.member_id
        elif sign.kind == REMOVED and sign.member_id == present:
            present = None
    return False


def _starts(restarts: Sequence[Restart]) -> dict[str, Known]:
    """From the end of a process to the first JoinGroup of its successor."""
    took_ms = sorted((one.start_us - one.stop_us) // 1000 for one in restarts)
    if not took_ms:
        return {}
    least, most = took_ms[0], took_ms[-1]
    quantiles = {0: least, 50: percentile(took_ms, 50), 95: percentile(took_ms, 95), 100: most}
    lasted = f"{least / 1000:.1f} to {most / 1000:.1f} s" if least < most else f"{least / 1000:.1f} s"
    why = f"{counted(len(took_ms), 'start')}, {lasted} from LeaveGroup to the next JoinGroup"
    return {"start_ms": inferred({"quantiles": quantiles} if least < most else least, why)}


def _record_rate(reading: Reading) -> dict[str, Known]:
    """The mean over the partitions whose offsets were seen for long enough."""
    source = "the ends of the logs" if reading.log_ends else "the commits of the group"
    rates = [
        (last - first) * 1e6 / (last_us - first_us)
        for (first_us, first), (last_us, last) in (reading.log_ends or reading.commits).values()
        if last_us - first_us >= _SPAN_US and last >= first
    ]
    if not rates:
        return {}
    mean, most = (round(rate) if rate >= 10 else round(rate, 3) for rate in (fmean(rates), max(rates)))
    why = f"the mean of {counted(len(rates), 'partition')} by {source}; the busiest one has {most:,}"
    return {"record_rate": inferred(mean, why)}
