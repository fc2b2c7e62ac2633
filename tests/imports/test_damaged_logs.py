"""No source makes the importer fail: cut, shuffled, doubled and mixed lines, and bytes that are no text.

Of every kind of source that is read. Whatever is imported is a trace that every reader takes, in the order of
time.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.explain.explanation import explain
from groupstorm.imports.importing import Options, SourceKind, import_logs, kinds_of
from groupstorm.imports.lines import Log, find_logs
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.times import MICRO, Instant
from groupstorm.pipeline.results import Request
from groupstorm.pipeline.trace_fold import Part, analyze_traces
from groupstorm.problems import InputError
from groupstorm.report.story import Selection, story
from groupstorm.trace.reader import read_rows
from tests.explain.test_logs import STREAMS_GROUP
from tests.explain.test_other_clients import ONE_OF_EACH
from tests.imports import test_streams
from tests.imports.importing import LOGS, import_texts
from tests.imports.offsets_dumps import OFFSETS
from tests.imports.real_logs import REAL

SEGMENT: Final = OFFSETS / "data" / "__consumer_offsets-0" / "00000000000000000000.log"
#: An output of kafka-consumer-groups does not say when it was printed.
OPTIONS: Final = Options(times={"": Instant(1_795_405_260 * MICRO, True, MICRO)})


def excerpts(*names: str) -> list[bytes]:
    paths = sorted(LOGS.glob("*.log")) if not names else [LOGS / f"{name}.log" for name in names]
    return [line for path in paths for line in path.read_bytes().splitlines()]


def recorded(clients: str, logs: str) -> list[bytes]:
    """Return the lines of all releases that may be about a group."""
    paths = sorted(REAL.glob(f"kafka-*-{clients}/{logs}.log.gz"))
    return [line for path in paths for line in about_groups(path)]


def about_groups(path: Path) -> Iterable[bytes]:
    wanted = (b"roup", b"rebalanc", b"artition", b"onfig values", b"[thrd:")
    for line in gzip.decompress(path.read_bytes()).splitlines():
        if any(word in line for word in wanted) or line[:1] in b"\t ":
            yield line


def printed(name: str) -> list[bytes]:
    return [line for path in sorted(OFFSETS.glob(f"{name}-*.txt")) for line in path.read_bytes().splitlines()]


#: Kind of source -> its lines. All kinds that the documentation lists are here.
KINDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "excerpts": excerpts,
    "broker": lambda: recorded("java", "server"),
    "broker-consumer-groups": lambda: recorded("*-consumer-group", "server"),
    "broker-streams-groups": lambda: STREAMS_GROUP.encode().splitlines(),
    "java": lambda: recorded("java", "[aw]*"),
    "java-consumer-group": lambda: recorded("java-consumer-group", "[aw]*"),
    "streams": lambda: test_streams.LOG.encode().splitlines(),
    "connect": lambda: [line for path in (LOGS / "connect").glob("*.log.gz") for line in about_groups(path)],
    "librdkafka": lambda: recorded("librdkafka", "[aw]*"),
    "librdkafka-consumer-group": lambda: recorded("librdkafka-consumer-group", "[aw]*"),
    "aiokafka": lambda: recorded("aiokafka", "[aw]*"),
    "kafka-python": lambda: recorded("kafka-python", "[aw]*"),
    "franz-go": lambda: excerpts("E48"),
    "kafkajs": lambda: excerpts("E50"),
    "other-clients": lambda: ONE_OF_EACH.encode().splitlines(),
    "dump": lambda: printed("dump"),
    "console-group-metadata": lambda: printed("console-group-metadata"),
    "console-offsets": lambda: printed("console-offsets"),
    "describe": lambda: printed("describe*"),
}
#: Those of a bare `pytest`: each way in which lines are taken apart.
_FEW = {"broker", "java", "aiokafka", "dump"}
lines_of = cache(lambda kind: KINDS[kind]())


@pytest.mark.slow
def test_the_kinds_are_all_there(tmp_path: Path) -> None:
    """Every writer that a log may have, and every kind of source."""
    writers: set[Writer] = set()
    kinds: set[SourceKind] = {*kinds_of(Log("segments", (SEGMENT,)))}
    for kind in KINDS:
        folder = tmp_path / kind
        folder.mkdir()
        text = b"\n".join(lines_of(kind)[:20_000]).decode("utf-8", "replace")
        done = import_texts(folder, {f"{kind}.txt": text}, OPTIONS)
        kinds.update(kinds_of(Log(kind, (folder / f"{kind}.txt",))))
        writers |= done.logs[0].writers
    assert kinds == {*SourceKind}
    assert writers == {*Writer} - {Writer.BARE, Writer.CAPTURE}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in _FEW else [pytest.mark.slow]) for kind in KINDS]
)
@given(seed=st.integers(0, 2**32), logs=st.integers(1, 3), count=st.integers(1, 60))
def test_damaged_sources_import_or_are_refused(kind: str, seed: int, logs: int, count: int) -> None:
    """A piece of a source of this kind; others are of any kind, and lines of theirs are between its own."""
    chance = random.Random(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{number}.log" for number in range(logs)]
        for number, path in enumerate(paths):
            of = kind if number == 0 else chance.choice([*KINDS])
            path.write_bytes(b"\n".join(piece(chance, lines_of(of), count)))
        check([*map(str, paths)], folder / "out")


@given(seed=st.integers(0, 2**32))
def test_damaged_segments_import_or_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(SEGMENT.read_bytes())
    for _ in range(chance.randrange(4)):
        at, to = sorted(chance.randrange(len(data)) for _ in range(2))
        match chance.randrange(4):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                del data[at : min(to, at + 200)]
            case 2:
                data[at:at] = data[at:to][:500]
            case 3:
                del data[max(at, 40) :]
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / SEGMENT.name).write_bytes(bytes(data))
        check([str(folder / SEGMENT.name)], folder / "out")


def check(paths: Sequence[str], out: Path) -> None:
    """The sources are imported, or refused with one line and no trace of them."""
    refusal = None
    try:
        import_logs(find_logs(paths), out, OPTIONS)
    except InputError as error:
        refusal = str(error)
    if refusal is not None:
        assert "\n" not in refusal
        assert not out.exists()
        return
    rows = [*read_rows(out)]
    assert [row["time_us"] for row in rows] == sorted(row["time_us"] for row in rows)
    assert all(row["provenance"] in ("observed", "inferred", "missing") for row in rows)
    assert [*story(rows, Selection(everything=True))]
    analyzed = analyze_traces(Request({out.name: out}), [Part(out.name, out)]).figures
    assert analyzed
    for one in explain(out):
        assert one.history.figures is not None
        assert one.history.figures.to_json() == analyzed[out.name, one.history.group].to_json()
        costs = [each.unowned_us for each in one.history.rebalances]
        costs += [each.unowned_us for each in one.history.absences]
        if one.history.unowned_us is not None:  # a figure in seconds, which a damaged year makes inexact
            assert one.history.unowned_us == pytest.approx(sum(costs), rel=1e-12)


def piece(chance: random.Random, lines: Sequence[bytes], count: int) -> list[bytes]:
    """Lines that follow on each other, or come from anywhere; some damaged, some of another kind."""
    at = chance.randrange(len(lines))
    found = [*lines[at : at + count]]
    if chance.random() < 0.3:
        found = chance.choices(lines, k=count)
    elif chance.random() < 0.3:
        chance.shuffle(found)
    for number in range(len(found)):
        if chance.random() < 0.3:
            found[number] = damaged(chance, found[number], lines)
        elif chance.random() < 0.1:
            found[number] = chance.choice(lines_of(chance.choice([*KINDS])))
    return found


def damaged(chance: random.Random, line: bytes, lines: Sequence[bytes]) -> bytes:
    """The line, or what a terminal, an editor or a collector of logs makes of it."""
    at = chance.randrange(len(line) + 1)
    return chance.choice(
        [
            line[:at],
            line[at:],
            line + b" " + chance.choice(lines),
            line + b"\n" + line,
            line[:at] + bytes([chance.randrange(256)]) + line[at:],
            line.replace(b"generation", b"generation -"),
            line.replace(b"epoch", b"epoch -"),
            line.replace(b"0", b"99999999999999999999"),
        ]
    )
