"""Parquet, as far as traces need it: the schema in pyarrow's terms, files, and their columns' types."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from groupstorm.problems import InputError
from groupstorm.trace.schema import IMPORTED_VERSION, SCHEMA_VERSION, VERSION_KEY, ColumnType, columns_of

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet


def import_pyarrow() -> ModuleType:
    """The module `pyarrow`. Raises InputError if it is not installed."""
    try:
        import pyarrow
    except ImportError as missing:
        raise InputError("Parquet needs pyarrow: pip install 'groupstorm[parquet]'") from missing
    return cast(ModuleType, pyarrow)


def arrow_schema(version: int = SCHEMA_VERSION) -> pyarrow.Schema:
    """A version of the schema in pyarrow's terms. Raises InputError if pyarrow is not installed."""
    pyarrow = import_pyarrow()
    types = {
        ColumnType.INT: pyarrow.int64(),
        ColumnType.TEXT: pyarrow.string(),
        ColumnType.TEXTS: pyarrow.list_(pyarrow.string()),
        ColumnType.INTS: pyarrow.list_(pyarrow.int64()),
    }
    fields = [pyarrow.field(column.name, types[column.type]) for column in columns_of(version)]
    return pyarrow.schema(fields, metadata={VERSION_KEY: str(version)})


def open_parquet(file: Path) -> parquet.ParquetFile:
    """The opened file. Raises InputError if it is not Parquet, or if pyarrow is not installed."""
    import_pyarrow()
    from pyarrow import ArrowInvalid, parquet

    try:
        return parquet.ParquetFile(file)
    except ArrowInvalid as problem:
        raise InputError(f"{file}: not a Parquet file: {problem}") from problem


def check_columns(file: Path, opened: parquet.ParquetFile) -> None:
    """Raise InputError if a column of the schema has another type in ``file``."""
    found = opened.schema_arrow
    for field in arrow_schema(IMPORTED_VERSION):
        if field.name in found.names and not found.field(field.name).type.equals(field.type):
            raise InputError(
                f"{file}: column {field.name}: {found.field(field.name).type}: expected {field.type}"
            )
