"""The questions that a rollout asks: settings that no manifest has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.workloads import Workload
from groupstorm.storms.scenario.knowledge import Measured


class _Question(NamedTuple):
    """A setting that no manifest has: ``meaning`` says what it is, ``example`` how to give it."""

    name: str
    meaning: str
    example: str


#: Settings that no manifest has and for which no client has a default.
_QUESTIONS = (
    _Question("partitions", "partitions of the topic", "partitions=240"),
    _Question("record_rate", "records a second into each partition", "record_rate=100"),
    _Question("start_ms", "from a container's start to its first poll()", "start_ms=25s"),
)
_STATE = _Question(
    "state_bytes",
    "state of a task of Kafka Streams; 0 if it keeps none; if it is no such application, --set "
    "application=consumer",
    "state_bytes=4GB",
)
_MEMBERS = _Question("members", "pods: the manifest gives no replicas", "members=10")


def ask(
    workload: Workload,
    of_streams: bool,
    replicas: int,
    each: int,
    given: Mapping[str, Any],
    measured: Measured,
) -> None:
    """Raise InputError that asks for all settings that are missing, in one line.

    ``replicas``: of the manifest, 0 if it does not say; ``each``: the consumers of a pod; ``given``: all
    answers, those of the trace ``measured`` too.
    """
    questions = (*_QUESTIONS, *[_STATE] * of_streams)
    missing = [question for question in questions if question.name not in given]
    if "topic_partitions" in given:
        missing = [question for question in missing if question.name != "partitions"]
    if not replicas and "members" not in given:
        several = f", each with {each} consumers, which members counts" if each > 1 else ""
        missing.insert(
            0, _MEMBERS._replace(meaning=_MEMBERS.meaning + several, example=f"members={10 * each}")
        )
    if missing:
        asked = "; ".join(
            f"{one.name} ({': '.join([one.meaning, *filter(None, [measured.unknown.get(one.name)])])})"
            for one in missing
        )
        options = " ".join(f"--set {one.example}" for one in missing)
        silent = f"neither it nor {measured.source} says" if measured.source else "a manifest does not say"
        raise InputError(f"{workload}: {silent} {asked}: give {options}")
