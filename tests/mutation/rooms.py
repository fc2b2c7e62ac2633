"""The rooms: patterns of their modules, and the folders or files of the fast tests that hold their rules."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

ROOMS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "coordinator": (("groupstorm/coordinator/**/*.py",), ("tests/coordinator",)),
    "members": (("groupstorm/clients/*.py", "groupstorm/clients/consumer_group/*.py"),
                (*("tests/clients", "tests/client_profiles/test_profiles.py", "tests/oracle/member"),
                 *("tests/oracle/group_member", "tests/storms/test_transcripts.py"))),
    "consumer": (("groupstorm/clients/consumer/*.py",), ("tests/clients/consumer",)),
    "checks": (("groupstorm/storms/checks/*.py",), ("tests/storms/checks", "tests/storms/test_settling.py")),
    "storms": (("groupstorm/storms/**/*.py",), ("tests/storms", "tests/tools/fuzz")),
    "figures": (("groupstorm/figures/*.py", "groupstorm/history/*.py"), ("tests/figures",)),
    "verdicts": (("groupstorm/verdicts/*.py", "groupstorm/wording.py"), ("tests/verdicts",)),
    "pipeline": (("groupstorm/pipeline/*.py",), ("tests/pipeline",)),
    "watch": (("groupstorm/watch/*.py",), ("tests/watch",)),
}  # fmt: skip
