"""Options on what a command prints. They import nothing of storms: `analyze` starts without these."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output instead of tables.")
]
CsvOption = Annotated[
    bool, typer.Option("--csv", help="Comma-separated values on standard output: a row per run, exact.")
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="The tables in Markdown.")]
AllOption = Annotated[bool, typer.Option("--all", help="All figures in the table, not only the first ones.")]
