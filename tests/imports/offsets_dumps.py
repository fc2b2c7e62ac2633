"""Records of `__consumer_offsets` as Kafka 4.3.1 wrote them, and as the tools of Kafka 1 to 3 print them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.trace.reader import read_rows

OFFSETS = Path(__file__).parent / "offsets"
DUMP = OFFSETS / "dump-4.3.1.txt"
SEGMENT = OFFSETS / "data" / "__consumer_offsets-0"


#: A line of kafka-dump-log of Kafka 3.x in front of its key.
_BATCH = (
    "baseOffset: {at} lastOffset: {at} count: 1 baseSequence: -1 lastSequence: -1 producerId: {producer} "
    "producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: {transactional} isControl: {control} "
    "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: {ms} size: 339 magic: 2 compresscodec: none "
    "crc: 810578779 isvalid: true\n"
    "| offset: {at} CreateTime: {ms} keySize: 12 valueSize: 257 sequence: -1 headerKeys: [] {rest}\n"
)


def record(at: int, ms: int, rest: str, producer: int = -1, control: bool = False) -> str:
    transactional = str(producer >= 0).lower()
    return _BATCH.format(
        at=at, ms=ms, rest=rest, producer=producer, transactional=transactional, control=str(control).lower()
    )


def told(folder: Path, out: str = "out") -> list[dict[str, Any]]:
    """The rows of a trace without the places of their lines."""
    return [
        {name: value for name, value in row.items() if name not in ("evidence", "detail")}
        for row in read_rows(folder / out)
    ]


def import_files(folder: Path, *sources: Path, groups: frozenset[str] | None = None) -> Any:
    return import_logs(find_logs([str(one) for one in sources]), folder / "out", Options(groups=groups))


A, B = "a-11111111-2222-3333-4444-555555555555", "b-11111111-2222-3333-4444-666666666666"


def old_generation(at: int, ms: int, number: int, assignment: str) -> str:
    value = f'{{"protocolType":"consumer","protocol":"range","generationId":{number},'
    value += f'"assignment":"{assignment}"}}'
    return record(at, ms, f"key: group_metadata::group=g payload: {value}")
