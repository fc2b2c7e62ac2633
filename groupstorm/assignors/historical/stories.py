"""Stories: a history, the assignor it is about, what breaks in it, and before and after which release.

They are YAML files, ours under the names of Kafka's tickets; `Story` says what stands in them.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from groupstorm.assignors import registry
from groupstorm.assignors.casefields import Field
from groupstorm.assignors.check.history import Do, History, Racks, Step
from groupstorm.assignors.historical.properties import QUESTIONS
from groupstorm.assignors.historical.released import KAFKAS, version_of
from groupstorm.problems import InputError

#: ``after`` of a story whose bug Kafka still has: the assignor is ours, without ``bug_compat``.
OURS = "groupstorm"


class Story(NamedTuple):
    """``property``: one of `QUESTIONS`, broken in release ``before`` and held in ``after`` (or `OURS`).

    ``affected``: the releases with the bug, in words. ``meant`` and ``mend``: what it did to users, and
    how it was mended. A story of somebody's own needs none of these.
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


def folder() -> Traversable:
    """Where our stories and their recordings are."""
    return resources.files("groupstorm.assignors.historical") / "stories"


def names() -> tuple[str, ...]:
    """Of our stories, in the order of their names."""
    found = (file.name for file in folder().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def load(name_or_file: str) -> Story:
    """One of ours by its name, or a YAML file. Raises `InputError`."""
    if name_or_file in names():
        text = (folder() / f"{name_or_file}.yaml").read_text("utf-8")
        return read(text, f"history {name_or_file}", name_or_file)
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(
            f"{name_or_file}: neither a history of ours ({', '.join(names())}) nor a file (.yaml)"
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot be read: {problem}") from problem
    story = read(text, str(path), path.stem)
    if story.before is not None or story.after is not None:
        raise InputError(f"{path}: fields before and after: expected neither, only ours have recordings")
    return story


def read(text: str, place: str, name: str) -> Story:
    """The story that a file tells; `InputError` names place, field and what was expected."""
    try:
        written = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise InputError(f"{place}: expected YAML: {problem}") from problem
    return _story(Field(place, "the case", written), name)


def _story(file: Field, name: str) -> Story:
    releases = {side: _release(file, side) for side in ("before", "after")}
    affected, broken = file.optional_string("affected"), file.optional("property")
    assignor = file.field("assignor")
    if assignor.string() not in (KAFKAS if releases["before"] else registry.names()):
        raise assignor.expected(f"one of {', '.join(KAFKAS if releases['before'] else registry.names())}")
    if broken is not None and broken.value not in QUESTIONS:
        raise broken.expected(f"one of {', '.join(QUESTIONS)}")
    return Story(
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


def _step(step: Field) -> Step:
    do = step.field("do")
    if do.value not in list(Do):
        raise do.expected(f"one of {', '.join(Do)}")
    topics = step.optional("topics")
    kind = Do(do.value)
    if kind in (Do.JOIN, Do.SUBSCRIBE, Do.RESIZE):
        topics = step.field("topics")
    if kind not in (Do.SUBSCRIBE, Do.RESIZE):
        step.field("member").string()
    if kind is Do.RESIZE:
        step.field("partitions").integer(minimum=0)
    return Step(
        kind,
        step.optional_string("member") or "",
        () if topics is None else tuple(topic.string() for topic in topics.items()),
        step.optional_integer("partitions", minimum=0) or 0,
        step.flag("with_next"),
    )


def _racks(file: Field) -> Racks:
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
    return Racks(read_clients, read_replicas)
