"""The folder of `analyze --out`: all tables of one analysis, or the tables that were there before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from groupstorm.problems import writing

_PARTIAL = ".partial"


@contextmanager
def all_or_none(out: Path, tables: Sequence[str]) -> Iterator[Path]:
    """A folder for the block to write ``tables`` into; if the block succeeds, they replace those in ``out``.

    If the block fails, ``out`` is as it was. Raises OutputError if a folder cannot be made or moved.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    partial = out / _PARTIAL
    try:
        with writing(out):
            shutil.rmtree(partial, ignore_errors=True)  # of an analysis that was killed
            partial.mkdir(parents=True)
        yield partial
        with writing(out):
            for name in tables:
                shutil.rmtree(out / name, ignore_errors=True)
                (partial / name).rename(out / name)
            partial.rmdir()
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise
