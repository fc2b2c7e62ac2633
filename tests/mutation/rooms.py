"""The rooms: their modules, and the fast tests that hold each room's rules."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]


class Room(NamedTuple):
    """Patterns of modules, and the folders or files of the tests; both relative to the checkout.

    ``left_out``: modules that only slow tests execute.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def files(self) -> list[Path]:
        found = {path for pattern in self.modules for path in ROOT.glob(pattern)}
        return sorted(found - {ROOT / each for each in self.left_out})

    def test_files(self) -> list[Path]:
        named = [ROOT / each for each in self.tests]
        return sorted(
            {path for each in named for path in ([each] if each.is_file() else each.rglob("test_*.py"))}
        )


ROOMS: Final[dict[str, Room]] = {
    "coordinator": Room(
        ("groupstorm/coordinator/*.py", "groupstorm/coordinator/classic/*.py"),
        ("tests/coordinator",),
    ),
    "consumer-groups": Room(
        ("groupstorm/coordinator/consumer/*.py", "groupstorm/coordinator/modern/*.py"), ("tests/coordinator",)
    ),
    "members": Room(
        (
            "groupstorm/clients/causes.py",
            "groupstorm/clients/config.py",
            "groupstorm/clients/error_tables.py",
            "groupstorm/clients/leadership.py",
            "groupstorm/clients/member*.py",
            "groupstorm/clients/operations.py",
            "groupstorm/clients/requests.py",
        ),
        (
            "tests/clients/test_documentation.py",
            "tests/clients/test_group_member.py",
            "tests/clients/test_group_protocol.py",
            "tests/clients/test_leadership.py",
            "tests/clients/test_membership.py",
            "tests/clients/test_requests.py",
            "tests/clients/test_watched_topics.py",
            "tests/client_profiles/test_profiles.py",
            "tests/oracle/member",
            "tests/storms/test_transcripts.py",
        ),
    ),
    "consumer-members": Room(
        ("groupstorm/clients/consumer_group/*.py",),
        (
            "tests/clients/test_group_member.py",
            "tests/oracle/group_member",
            "tests/storms/test_transcripts.py",
        ),
    ),
    "consumer": Room(("groupstorm/clients/consumer/*.py",), ("tests/clients/consumer",)),
    "checks": Room(
        ("groupstorm/storms/checks/*.py",),
        ("tests/storms/checks", "tests/storms/test_invariants.py", "tests/storms/test_settling.py"),
    ),
    "storms": Room(
        (
            "groupstorm/storms/deployments/*.py",
            "groupstorm/storms/records/*.py",
            "groupstorm/storms/runs/past_runs.py",
            "groupstorm/storms/runs/step_runner.py",
            "groupstorm/storms/runs/steps_of_run.py",
            "groupstorm/storms/scenario/randomness.py",
            "groupstorm/storms/world/**/*.py",
        ),
        ("tests/storms", "tests/tools/fuzz"),
    ),
    "figures": Room(("groupstorm/figures/*.py",), ("tests/figures",)),
    "verdicts": Room(("groupstorm/verdicts/*.py", "groupstorm/wording.py"), ("tests/verdicts",)),
    "pipeline": Room(
        ("groupstorm/pipeline/*.py",),
        ("tests/pipeline",),
        left_out=(
            "groupstorm/pipeline/dataframes.py",
            "groupstorm/pipeline/fold.py",
            "groupstorm/pipeline/read.py",
            "groupstorm/pipeline/spark.py",
            "groupstorm/pipeline/tables.py",
        ),
    ),
    "watch": Room(("groupstorm/watch/*.py",), ("tests/watch",), left_out=("groupstorm/watch/stream.py",)),
}
