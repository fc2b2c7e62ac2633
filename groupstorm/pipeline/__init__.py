"""`groupstorm analyze`: traces -> figures and tables (intervals, handovers, rounds, members), by two engines.

`trace_fold` reads one trace after the other, in this process or, with `spark`, in tasks. `dataframes` has
plain functions from DataFrame to DataFrame, for rows of any number of runs; this package exports them.
PySpark is imported with the first one.

`sweep` does the runs of `groupstorm sweep --master`, and writes them as one table.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupstorm.pipeline.dataframes import figures, handovers, intervals, members, rounds
    from groupstorm.pipeline.read import find_traces, read_traces
    from groupstorm.pipeline.session import spark_session

__all__ = [
    "figures",
    "find_traces",
    "handovers",
    "intervals",
    "members",
    "read_traces",
    "rounds",
    "spark_session",
]

_MODULES = {"find_traces": "read", "read_traces": "read", "spark_session": "session"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, 'dataframes')}")
    return getattr(module, name)
