"""Bug histories: a history, its assignor, the property that breaks, and the releases before and after.

They are YAML files; ours are named after Kafka's tickets. `BugHistory` lists the fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from groupstorm.assignors import registry
from groupstorm.assignors.casefields import Field
from groupstorm.assignors.check.history import Change, History, HistoryRacks, HistoryStep, StepKind
from groupstorm.assignors.check.properties import DETERMINISTIC, MEMBER_ORDER, OF_CHANGES, OF_ROUNDS, Subject
from groupstorm.problems import InputError
from groupstorm.yaml_documents import parse_yaml, read_text
from tools.historical_assignors.released import KAFKAS, version_of

#: ``after`` if Kafka still has the bug: the assignor is ours, without ``bug_compat``.
OURS = "groupstorm"


#: The folder of our histories and their recordings.
FOLDER = Path(__file__).with_name("histories")


class BugHistory(NamedTuple):
    """``property``: one of `QUESTIONS`; it breaks in release ``before`` and holds in ``after`` (or `OURS`).

    ``affected``: the releases with the bug, in words. ``meant`` and ``mend``: its effect on users, and the
    fix. A history in a user's own file needs none of these.
    """

    name: str
    question: str
    assignor: str
    history: History
    property: str | None = None
    before: str | None = None
    after: str | None = None
    affected: str = ""
    meant: str = ""
    mend: str = ""


def names() -> tuple[str, ...]:
    """The names of our histories, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


def load(name_or_file: str) -> BugHistory:
    """One of our histories by its name, or a YAML file. Raises `InputError`."""
    if name_or_file in names():
        text = (FOLDER / f"{name_or_file}.yaml").read_text("utf-8")
        return read(text, f"history {name_or_file}", name_or_file)
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(
            f"{name_or_file}: neither a history of ours ({', '.join(names())}) nor a file (.yaml)"
        )
    bug = read(read_text(path), str(path), path.stem)
    if bug.before is not None or bug.after is not None:
        raise InputError(f"{path}: fields before and after: expected neither, only ours have recordings")
    return bug


def read(text: str, place: str, name: str) -> BugHistory:
    """The history of a file; `InputError` names the place, the field and the expected value."""
    return _story(Field(place, "the case", parse_yaml(text, place)), name)


def _story(file: Field, name: str) -> BugHistory:
    releases = {side: _release(file, side) for side in ("before", "after")}
    affected, broken = file.optional_string("affected"), file.optional("property")
    assignor = file.field("assignor")
    if assignor.string() not in (KAFKAS if releases["before"] else registry.names()):
        raise assignor.expected(f"one of {', '.join(KAFKAS if releases['before'] else registry.names())}")
    if broken is not None and broken.value not in QUESTIONS:
        raise broken.expected(f"one of {', '.join(QUESTIONS)}")
    return BugHistory(
        name,
        file.optional_string("question") or "",
        assignor.string(),
        History(
            {topic: size.integer(minimum=0) for topic, size in file.field("topics").entries()},
            tuple(_step(step) for step in file.field("steps").items()),
            _racks(file),
        ),
        None if broken is None else broken.string(),
        releases["before"],
        releases["after"],
        affected or "",
        file.optional_string("meant") or "",
        file.optional_string("mend") or "",
    )


def _release(file: Field, side: str) -> str | None:
    release = file.optional_string(side)
    if release is None or (side == "after" and release == OURS):
        return release
    try:
        version_of(release)
    except ValueError:
        raise file.field(side).expected("a release of Kafka such as 3.4.0") from None
    return release


def _step(step: Field) -> HistoryStep:
    do = step.field("do")
    if do.value not in list(StepKind):
        raise do.expected(f"one of {', '.join(StepKind)}")
    topics = step.optional("topics")
    kind = StepKind(do.value)
    if kind in (StepKind.JOIN, StepKind.SUBSCRIBE, StepKind.RESIZE):
        topics = step.field("topics")
    if kind not in (StepKind.SUBSCRIBE, StepKind.RESIZE):
        step.field("member").string()
    if kind is StepKind.RESIZE:
        step.field("partitions").integer(minimum=0)
    return HistoryStep(
        kind,
        step.optional_string("member") or "",
        () if topics is None else tuple(topic.string() for topic in topics.items()),
        step.optional_integer("partitions", minimum=0) or 0,
        step.flag("with_next"),
    )


def _racks(file: Field) -> HistoryRacks:
    clients, replicas = file.optional("client_racks"), file.optional("replica_racks")
    read_clients: dict[str, str] = {}
    read_replicas: dict[str, Any] = {}
    if clients is not None:
        read_clients = {member: rack.string() for member, rack in clients.entries()}
    if replicas is not None:
        read_replicas = {
            topic: tuple(frozenset(rack.string() for rack in racks.items()) for racks in listed.items())
            for topic, listed in replicas.entries()
        }
    return HistoryRacks(read_clients, read_replicas)


EVERY_TOPIC = "every topic spread"

#: Asked of one change of a group: a sentence if the property is broken.
PropertyCheck = Callable[[Subject, Change], str | None]


def every_topic_spread(_: Subject, change: Change) -> str | None:
    """No member has two partitions of a topic more than another subscriber, once the group has settled."""
    for topic in change.rounds[-1].topics:
        having = {
            member: Counter(partition.topic for partition in change.after.get(member, ()))[topic]
            for member, subscription in change.rounds[-1].subscriptions.items()
            if topic in subscription.topics
        }
        most, least = max(having, key=having.__getitem__), min(having, key=having.__getitem__)
        if having[most] > having[least] + 1:
            return f"of {topic} {most} has {having[most]} partitions and {least} has {having[least]}"
    return None


def _of_every_round(question: Callable[..., str | None]) -> PropertyCheck:
    def ask(subject: Subject, change: Change) -> str | None:
        return next((broken for round_ in change.rounds if (broken := question(subject, round_))), None)

    return ask


#: Without the properties that ask the assignor a second question: a recording has no answer to that.
QUESTIONS: dict[str, PropertyCheck] = {
    **{name: _of_every_round(ask) for name, ask in OF_ROUNDS if name not in (DETERMINISTIC, MEMBER_ORDER)},
    **dict(OF_CHANGES),
    EVERY_TOPIC: every_topic_spread,
}
