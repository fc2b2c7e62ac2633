"""The scenario that repeats a run: its members, settings and steps, each with how it is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import yaml

from groupstorm.figures.accumulator import WHOLE
from groupstorm.storms.runs.choices import AS_IT_WAS
from groupstorm.storms.scenario.member_rules import named_code
from groupstorm.storms.scenario.setting_names import SHARE, STATEFUL_SET, How, Known, inferred, observed
from groupstorm.whatif.facts import Reading
from groupstorm.whatif.inference import INSTANCE, infer_settings, own_timeouts, timeouts_of
from groupstorm.whatif.lives import BEFORE, CRASH, PAUSE, Lives, Moment, lives_of
from groupstorm.whatif.waves import Wave, find_waves

#: Before the first row of a trace that begins in the middle of a group's life: time for its members to join.
LEAD_MS: Final = 60_000
#: Settings of a storm under which processes behave by rules that no step repeats -> what they do.
_NOT_REPEATED: Final[Mapping[str, str]] = {
    "slow_records": "records that take long (slow_records) hold members up",
    "releases": "rolling restarts roll out other settings (releases)",
    "members_per_pod": "processes have several members (members_per_pod)",
}
#: From whose rows ownership follows in an imported trace whose members have no logs of their own.
COORDINATOR_VIEW: Final = "coordinator"
_PLACE = re.compile(r"member-(\d+)")
#: What a rollout puts behind the names of its pods.
_REVISION = re.compile(r"-v\d+$")
#: The steps that repeat a process's end and its pauses, with the words for a comment.
_WORDS: Final[Mapping[str, str]] = {
    "start": "starts",
    "stop": "stops",
    "crash": "dies",
    "pause": "stands still",
    "busy": "works without poll()",
}


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step as a scenario file has it, and how it is known."""

    step: Mapping[str, Any]
    comment: str


@dataclass
class Draft:
    """``names``: of the members by their places. ``problems``: what the scenario does not repeat.

    ``lead_ms``: how long the scenario runs before the first row of the trace.
    """

    name: str
    question: str
    settings: dict[str, Known]
    names: tuple[str, ...]
    steps: list[DraftStep]
    lead_ms: int
    figures_from_ms: int
    problems: list[str] = field(default_factory=list)
    heartbeat_us: int = 0
    #: The number of partitions of all topics.
    partitions: int = 0
    #: Why the trace does not know for how long partitions had no owner; "" if it does.
    unowned_unknown: str = ""


def draft_of(reading: Reading, name: str, given: Mapping[str, Any]) -> Draft:
    """The draft of the scenario that repeats what the trace says. ``given``: settings that the user knows."""
    settings = infer_settings(reading, given)
    timeouts = timeouts_of(reading, settings)
    lives = lives_of(reading, timeouts)
    waves = find_waves(lives)
    names = _names(lives, waves, reading)
    lead_ms = 0 if reading.began_empty else LEAD_MS
    problems = [*reading.problems, *lives.problems, *_problems(reading, settings)]
    if (code := named_code({setting: known.value for setting, known in settings.items()})) is not None:
        problems.append(f"members have an assignor of your own ({code}), which a file cannot name")
    if not names:
        problems.append("no row names a member: the log of the broker, or of the members, does")
    WHOLE.check(name, reading.figures_from_us, reading.ended_us)
    known = reading.figures is not None and reading.figures.unowned_partition_seconds is not None
    if not reading.rounds.rounds and not known:
        problems.append("no row is about a round of the group, or says for how long partitions had no owner")
    settings |= _size(reading, names, given)
    _name_members(reading, settings, names)
    waves = [wave for wave in waves if _order(wave, names) == _order(waves[0], names) != ""]
    if waves:
        settings["max_unavailable"] = inferred(
            waves[0].unavailable, "so many processes were away at once while all were replaced"
        )
        if _order(waves[0], names) == "reverse":
            settings["order"] = inferred("reverse", "the order in which processes were replaced")
    ended_ms = lead_ms + reading.ended_us // 1000
    settings["least_duration_ms"] = observed(ended_ms, "the last row of the trace")
    return Draft(
        name=name,
        question=f"What would the same hours of the group {reading.group} have cost under other settings?",
        settings=settings,
        names=names,
        steps=_steps(reading, lives, waves, names, lead_ms),
        lead_ms=lead_ms,
        figures_from_ms=lead_ms + reading.figures_from_us // 1000,
        problems=problems,
        heartbeat_us=max([timeouts(one).heartbeat_us for one in names], default=0),
        partitions=_partitions(settings),
        unowned_unknown=_unowned_unknown(reading, lives),
    )


# -- what cannot be repeated -------------------------------------------------------------------------


def _problems(reading: Reading, settings: Mapping[str, Known]) -> Iterator[str]:
    if len(reading.assignors) > 1:
        yield f"the group changed its assignor ({', '.join(reading.assignors)})"
    if reading.scenario.get("group.protocol") == SHARE:
        yield "the members are share consumers, whose partitions have no owners"
    for name, what in _NOT_REPEATED.items():
        if (value := reading.scenario.get(name)) and value != 1:
            yield what
    if "members" in reading.missing:
        yield f"the logs do not name all members: {reading.missing['members']}"
    if len(set(reading.subscriptions.values())) > 1:
        yield "members subscribe to different topics, and those of a scenario all subscribe to the same ones"
    if reading.is_storm and reading.scenario.get("topic_pattern"):
        yield "members subscribe by a regular expression (topic_pattern)"
    if "topic_partitions" in settings:
        return
    if not reading.topics:
        yield (
            "no row says which topics and partitions the group reads: the log of the group's leader does, or "
            "--known topic_partitions='{orders: 12}'"
        )
    for topic in sorted({topic for topics in reading.subscriptions.values() for topic in topics}):
        if topic not in reading.topics:
            yield f"no row says how many partitions {topic} has: --known topic_partitions says it"


def _unowned_unknown(reading: Reading, lives: Lives) -> str:
    """Why the trace does not know un-owned time."""
    if reading.imported_view == COORDINATOR_VIEW or not reading.has_member_rows:
        return "no row of the members says when they gave partitions up"
    ends = [stint.end for stint in lives.stints if stint.end is not None]
    silent = [one for one in (*ends, *(pause for _, pause in lives.pauses)) if one.at.how is How.INFERRED]
    if reading.imported_view and any(one.do in (CRASH, PAUSE) for one in silent):
        return "no log says when processes died or stood still, only when their sessions expired"
    return ""


# -- members ------------------------------------------------------------------------------------------


def _names(lives: Lives, waves: Sequence[Wave], reading: Reading) -> tuple[str, ...]:
    """The members by their places: in the order of the first deployment, else by place or name."""
    names = sorted({stint.name for stint in lives.stints}, key=lambda name: (_place(reading, name), name))
    if not waves or _has_places(reading):
        return tuple(names)
    return (*waves[0].names, *(name for name in names if name not in waves[0].names))


def _order(wave: Wave, names: Sequence[str]) -> str:
    """The order in which the wave replaces ``names``; "" if no rolling-restart has it."""
    in_order = tuple(name for name in names if name in wave.names)
    return {in_order[::-1]: "reverse", in_order: "ordinal"}.get(wave.names, "")


def _place(reading: Reading, name: str) -> int:
    """The place that a storm's scenario gives to the process of this name; -1 if it names no such process."""
    name = _REVISION.sub("", name)
    rules = reading.scenario.get("member_settings") or ()
    named = [place for rule in rules if rule.get("name") == name for place in rule["members"]]
    match = _PLACE.fullmatch(name)
    return int(named[0] if named else match[1] if match and reading.is_storm else -1)


def _has_places(reading: Reading) -> bool:
    """Whether the scenario of a storm says something about members by their places."""
    by_place = any(reading.scenario.get(name) for name in ("member_settings", "machines", "racks"))
    is_stateful = reading.scenario.get("deployment") == STATEFUL_SET  # which replaces the last place first
    return by_place or is_stateful or len(reading.scenario.get("client_profile", ())) > 1


def _size(reading: Reading, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Known]:
    found = {"members": observed(max(1, len(names)), "the names in the trace")}
    if "topic_partitions" in given:
        return found
    grown = {topic for _, topic, _, _ in reading.grown}
    topics = {
        topic: reading.first_counts[topic] if topic in grown else count
        for topic, count in sorted(reading.topics.items())
    }
    if topics:
        why = "row 0, scenario_started" if reading.is_storm else "the highest partitions that rows name"
        found["topic_partitions"] = (observed if reading.is_storm else inferred)(topics, why)
    return found


def _partitions(settings: Mapping[str, Known]) -> int:
    known = settings.get("topic_partitions")
    return 0 if known is None or known.value is None else sum(known.value.values())


def _name_members(reading: Reading, settings: dict[str, Known], names: Sequence[str]) -> None:
    """Names, group.instance.ids and settings of single members."""
    digits = len(str(len(names)))
    rules: list[dict[str, Any]] = []
    instances = {name: reading.instances[name] for name in names if name in reading.instances}
    are_names = len(instances) == len(names) and all(name == own for name, own in instances.items())
    if instances and are_names:
        settings[INSTANCE] = observed("ordinal", "every member's group.instance.id is its client id")
    for index, name in enumerate(names):
        rule: dict[str, Any] = {"members": [index]}
        if name != f"member-{index:0{digits}d}":
            rule["name"] = name
        if name in instances and not are_names:
            rule["instance"] = instances[name]
        own = own_timeouts(reading, settings, name)
        if own:
            rule["settings"] = own
        if len(rule) > 1:
            rules.append(rule)
    rules += _rules_of_storm(reading, settings, names)
    if rules:
        settings["member_settings"] = observed(
            rules, "names, group.instance.ids and configurations in the trace"
        )


def _rules_of_storm(
    reading: Reading, settings: dict[str, Known], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The settings that the scenario of a storm gives to members by their places."""
    if not _has_places(reading):
        return
    places = {name: _place(reading, name) for name in names}
    profiles = list(reading.scenario.get("client_profile", ()))
    for number, profile in enumerate(profiles if len(profiles) > 1 else ()):
        members = [i for i, name in enumerate(names) if places[name] % len(profiles) == number]
        yield {"members": members, "settings": {"client_profile": [profile]}}
    if len(profiles) > 1:
        settings["client_profile"] = observed(profiles[:1], "row 0, scenario_started")
    if "machines" in settings:
        machines = [(_members_in(one, places), one["factor"]) for one in settings["machines"].value]
        found = [{"members": members, "factor": factor} for members, factor in machines if members]
        settings["machines"] = observed(found, "row 0, scenario_started")
    for rule in reading.scenario.get("member_settings") or ():
        members = _members_in(rule, places)
        if members and rule.get("settings"):
            yield {"members": members, "settings": rule["settings"]}


def _members_in(rule: Mapping[str, Any], places: Mapping[str, int]) -> list[int]:
    """The members, in the order of ``places``, whose place a rule of the storm names."""
    return [number for number, place in enumerate(places.values()) if place in rule["members"]]


# -- steps --------------------------------------------------------------------------------------------


def _steps(
    reading: Reading, lives: Lives, waves: Sequence[Wave], names: Sequence[str], lead_ms: int
) -> list[DraftStep]:
    in_waves = {identity for wave in waves for identity in wave.stints}
    moments: list[tuple[int, str, str, Moment]] = []
    for stint in lives.stints:
        begun_by_wave = any(stint.start.at_us > wave.at_us and id(stint) in wave.stints for wave in waves)
        if not begun_by_wave:
            moments.append((_ms(stint.start.at_us, lead_ms), stint.start.do, stint.name, stint.start))
        if stint.end is not None and not (
            id(stint) in in_waves and any(_ends(wave, stint.end.at_us, stint.name) for wave in waves)
        ):
            moments.append((_ms(stint.end.at_us, lead_ms), stint.end.do, stint.name, stint.end))
    for name, pause in lives.pauses:
        moments.append((_ms(pause.at_us, lead_ms), pause.do, name, pause))
    moments.sort(key=lambda moment: moment[0])
    places = {name: index for index, name in enumerate(names)}
    steps = [*_merged(moments, places)]
    steps += [_wave_step(wave, lead_ms) for wave in waves]
    for at_us, topic, count, place in reading.grown:
        step = {"at_ms": _ms(at_us, lead_ms), "do": "add-partitions", "topic": topic, "partitions": count}
        steps.append(DraftStep(step, observed(None, place).comment))
    return sorted(steps, key=lambda step: step.step["at_ms"])


def _ends(wave: Wave, at_us: int, name: str) -> bool:
    """Whether the wave stops the process then."""
    return name in wave.names and wave.at_us <= at_us <= wave.last_stop_us


def _ms(time_us: int, lead_ms: int) -> int:
    return 0 if time_us == BEFORE else lead_ms + (time_us + 500) // 1000


def _merged(
    moments: Sequence[tuple[int, str, str, Moment]], places: Mapping[str, int]
) -> Iterator[DraftStep]:
    """One step for processes that do the same at the same time."""
    for (at_ms, do, for_us), together in groupby(moments, key=lambda one: (one[0], one[1], one[3].for_us)):
        group = [*together]
        members = sorted(places[name] for _, _, name, _ in group)
        step: dict[str, Any] = {"at_ms": at_ms, "do": do, "members": members}
        if for_us:
            step["for_ms"] = max(1, for_us // 1000)
        first = group[0][3].at
        who = group[0][2] if len(group) == 1 else f"{len(group)} members"
        verb = _WORDS[do] if len(group) == 1 else _plural(_WORDS[do])
        yield DraftStep(step, f"{first.how}: {who} {verb} ({first.why})")


def _plural(verb: str) -> str:
    """They start; they work without poll()."""
    first, _, rest = verb.partition(" ")
    return f"{first.removesuffix('s') if first != 'dies' else 'die'} {rest}".strip()


def _wave_step(wave: Wave, lead_ms: int) -> DraftStep:
    step = {
        "at_ms": _ms(wave.at_us, lead_ms),
        "do": "rolling-restart",
        "start_ms": list(wave.start_ms),
        "ready_ms": list(wave.ready_ms),
    }
    words = "one after the other" if wave.unavailable == 1 else f"{wave.unavailable} at a time"
    return DraftStep(step, f"inferred: all {len(wave.names)} processes are replaced, {words}")


_HEAD: Final = """\
# Made by `groupstorm whatif` from {source}.
# observed: a row of the trace says it. inferred: a rule says it. assumed: nothing says it, check it.
# given: --known says it. Times are milliseconds{lead}.
"""
_LEAD: Final = "; the trace begins at {lead_ms}, until then its first members join"


def scenario_text(draft: Draft, source: str, variants: Mapping[str, Mapping[str, Any]]) -> str:
    """The file. ``variants``: further settings by name, beside `AS_IT_WAS`, which has none."""
    lead = _LEAD.format(lead_ms=draft.lead_ms) if draft.lead_ms else ""
    lines = [_HEAD.format(source=source, lead=lead).rstrip("\n")]
    lines += [f"name: {_flow(draft.name)}", f"question: {_flow(draft.question)}"]
    if draft.figures_from_ms:
        lines.append(f"figures_from: {draft.figures_from_ms}")
    lines.append("settings:")
    for name, known in draft.settings.items():
        if name == "member_settings":
            lines += [f"  # {_comment(known.comment)}", f"  {name}:"]
            lines += [f"    - {_flow(rule)}" for rule in known.value]
        else:
            lines.append(f"  {name}: {_flow(known.value)}  # {_comment(known.comment)}")
    lines.append("variants:")
    lines += [
        f"  {_flow(name)}: {_flow(dict(overlay))}" for name, overlay in {AS_IT_WAS: {}, **variants}.items()
    ]
    lines.append("steps:")
    lines += [f"  - {_flow(dict(one.step))}  # {_comment(one.comment)}" for one in draft.steps]
    return "\n".join([*lines, ""])


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    written = yaml.safe_dump(value, default_flow_style=True, width=2**31, sort_keys=False, allow_unicode=True)
    return written.removesuffix("...\n").strip()


def _comment(text: str) -> str:
    return " ".join(text.split())
