"""The coordinator's transcripts on Kafka's own coordinator, where there are Java and Maven.

The commands of each transcript become a script, up to the first request that scripts do not have. All answers
and states of that script have to be Kafka's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coordinator.transcript import as_script
from tests.oracle.build import Built
from tests.oracle.comparison import difference
from tests.oracle.coordinator import COMMAND
from tests.oracle.differential import our_answer
from tests.oracle.jvm import Jvm
from tests.oracle.running import as_line
from tests.oracle.scripts.steps import TIME_MAX_MS
from tests.oracle.transcripts import transcript

_FILES = sorted((Path(__file__).parents[1] / "coordinator" / "transcripts").glob("*.txt"))
#: Kafka's coordinator looks for expired offsets in the meantime, that of scripts does not.
_TOO_LONG = ("offsets_expire",)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka(built: Built) -> Iterator[Jvm]:
    with Jvm(built, COMMAND) as jvm:
        yield jvm


@pytest.mark.parametrize(
    "file", [file for file in _FILES if file.stem not in _TOO_LONG], ids=lambda file: file.stem
)
def test_kafka_answers_the_commands_as_we_do(kafka: Jvm, file: Path) -> None:
    script = as_script(file.read_text("utf-8"), file.stem)
    assert script["steps"]
    assert sum(step["ms"] for step in script["steps"] if step["op"] == "advance") < TIME_MAX_MS
    kafkas, ours = json.loads(kafka.ask(as_line(script))), our_answer(script)
    assert "failed" not in kafkas
    assert difference(kafkas, ours) is None, transcript(script, kafkas, ours)
