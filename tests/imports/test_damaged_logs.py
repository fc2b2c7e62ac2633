"""No log makes the parser fail: cut, shuffled, doubled and mixed lines, and bytes that are no text.

Whatever is imported is a trace that every reader takes, in the order of time.
"""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.figures.by_group import figures_by_group
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.problems import InputError
from groupstorm.report.story import Selection, story
from groupstorm.trace.reader import read_rows
from tests.imports.importing import LOGS

LINES = [line for path in sorted(LOGS.glob("*.log")) for line in path.read_bytes().splitlines()]


@given(seed=st.integers(0, 2**32), logs=st.integers(1, 3), count=st.integers(1, 60))
def test_damaged_logs_import_or_are_refused(seed: int, logs: int, count: int) -> None:
    chance = random.Random(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{number}.log" for number in range(logs)]
        for path in paths:
            path.write_bytes(b"\n".join(damaged(chance, chance.choice(LINES)) for _ in range(count)))
        refusal = None
        try:
            import_logs(find_logs([*map(str, paths)]), folder / "out", Options())
        except InputError as error:
            refusal = str(error)
        if refusal is not None:
            assert "\n" not in refusal
            assert not (folder / "out").exists()
            return
        rows = [*read_rows(folder / "out")]
        assert [row["time_us"] for row in rows] == sorted(row["time_us"] for row in rows)
        assert all(row["provenance"] in ("observed", "inferred", "missing") for row in rows)
        assert [*story(rows, Selection(everything=True))]
        assert figures_by_group(rows)


def damaged(chance: random.Random, line: bytes) -> bytes:
    """The line, or what a terminal, an editor or a collector of logs makes of it."""
    at = chance.randrange(len(line) + 1)
    return chance.choice(
        [
            line,
            line,
            line[:at],
            line[at:],
            line + b" " + chance.choice(LINES),
            line + b"\n" + line,
            line[:at] + bytes([chance.randrange(256)]) + line[at:],
            line.replace(b"generation", b"generation -"),
            line.replace(b"0", b"99999999999999999999"),
        ]
    )
