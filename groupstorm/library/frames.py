"""Tables of Arrow as data frames of pandas and of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groupstorm.problems import InputError
from groupstorm.trace.parquet import import_pyarrow

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


def as_pandas(table: pyarrow.Table) -> pandas.DataFrame:
    """Whole numbers keep their type if some are missing (Int64), maps become dictionaries.

    Raises InputError if pandas is not installed.
    """
    try:
        import pandas
    except ImportError as missing:
        raise InputError("to_pandas needs pandas: pip install 'groupstorm[pandas]'") from missing
    types = {import_pyarrow().int64(): pandas.Int64Dtype()}
    frame: Any = table.to_pandas(types_mapper=types.get, maps_as_pydicts="strict")
    return frame


def as_spark(table: pyarrow.Table, spark: SparkSession) -> DataFrame:
    """A DataFrame of ``spark``, a session of the user's."""
    return spark.createDataFrame(table)
