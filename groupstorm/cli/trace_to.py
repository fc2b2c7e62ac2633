"""`--trace-to` of run and serve: the rows of a trace as records of a Kafka topic."""

from __future__ import annotations

from typing import Annotated

import typer

TraceToOption = Annotated[
    str | None,
    typer.Option(
        "--trace-to",
        metavar="HOST:PORT/TOPIC",
        help="Produce the rows of the trace to an empty topic of another broker (docs/watch.md).",
    ),
]
