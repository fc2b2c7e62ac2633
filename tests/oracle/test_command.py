"""`./dev oracle`: exit status and output, with our coordinator in Kafka's place."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType

import pytest

from tests.oracle import coordinator
from tests.oracle.build import Built, OracleBroke
from tests.oracle.command import main
from tests.oracle.differential import our_answer
from tests.oracle.faults import DeafToRebalances
from tests.oracle.jvm import Jvm


class _StandIn:
    """Answers as a JVM would, without one."""

    faulty = False

    def __init__(self, built: Built, command: str) -> None:
        assert command == "coordinator"

    def ask(self, line: str) -> str:
        script = json.loads(line)
        return json.dumps(our_answer(script, DeafToRebalances) if self.faulty else our_answer(script))

    def __enter__(self) -> _StandIn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "build_coordinator", lambda kafka: Built(Path("java"), ""))
    monkeypatch.setattr(coordinator, "Jvm", _StandIn)


@pytest.mark.slow
def test_a_difference_ends_with_1_and_its_transcript(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_StandIn, "faulty", True)
    assert main(["coordinator", "--count", "40", "--show", "1"]) == 1
    output = capsys.readouterr().out
    assert "      KAFKA  " in output
    assert "      OURS   " in output


@pytest.mark.parametrize(
    "words", [[], ["nothing"], ["coordinator", "--count", "0"], ["coordinator", "--count", "x"]]
)
def test_misuse_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: ./dev oracle")


def test_streams_groups_are_asked_of_the_newest_release_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coordinator", "--kind", "streams", "--kafka", "4.3.1"]) == 2
    assert "streams groups are asked of Kafka 4.4.0 alone" in capsys.readouterr().err


def test_a_java_side_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nread line\necho 'it broke' >&2\n")
    java.chmod(0o755)
    with Jvm(Built(java, ""), "coordinator") as kafka, pytest.raises(OracleBroke, match="it broke"):
        kafka.ask("{}")
