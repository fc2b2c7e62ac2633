"""A pytest plugin: one module is imported with one changed place (`GROUPSTORM_MUTATION`, PLACE:PATH)."""

from __future__ import annotations

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from tests.mutation.mutations import mutated

VARIABLE = "GROUPSTORM_MUTATION"


def _swap(place: int, path: str) -> None:
    unchanged = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path != path:
            return unchanged(loader, name)
        code: CodeType = compile(mutated(Path(path).read_text("utf-8"), place), path, "exec")
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]


if os.environ.get(VARIABLE):
    _place, _, _path = os.environ[VARIABLE].partition(":")
    _swap(int(_place), _path)
