"""Tables of the package that are data: a row a line, tabs between its columns, # in front of a remark."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator


def rows(package: str, name: str) -> Iterator[list[str]]:
    """The rows of the table ``name`` of a package."""
    data = pkgutil.get_data(package, f"{name}.tsv")
    assert data is not None, f"{package} has no table {name}"
    return (line.split("\t") for line in data.decode().splitlines() if not line.startswith("#"))
