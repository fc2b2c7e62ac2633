"""Puts a mutated module in the place of the file: when it is imported, or in the functions that are."""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.util
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.mutation.mutations import Mutation, mutated
from tests.mutation.rooms import ROOT


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module from its mutated tree."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self._path))

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        exec(self._code, module.__dict__)  # that is what importing a module does


def mutate_imports(path: Path, mutation: Mutation) -> None:
    """In this process, the module is the mutated one; it must not be imported yet."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    sys.meta_path.insert(0, _Mutated(name, path, _mutated_code(path, mutation)))


class Functions:
    """The functions of modules that are imported: a mutation in one of them takes the place of its code, for
    everyone who holds the function. Made once; the processes that are forked then swap."""

    def __init__(self, paths: set[Path]) -> None:
        names = {str(path) for path in paths}
        self._functions: defaultdict[str, list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename in names:
                self._functions[each.__code__.co_filename].append(each)

    def swap(self, path: Path, mutation: Mutation) -> bool:
        """Whether it can be done: the mutation is inside of functions that their lines tell apart."""
        original = list(_codes(compile(ast.parse(path.read_text("utf-8")), str(path), "exec")))
        changed = list(_codes(_mutated_code(path, mutation)))
        if [_key(code) for code in original] != [_key(code) for code in changed]:
            return False
        keys = Counter(_key(code) for code in original)
        swapped = {_key(new): new for old, new in zip(original, changed, strict=True) if old != new}
        if any(keys[key] > 1 for key in swapped):
            return False
        done = 0
        for function in self._functions[str(path)]:
            if (code := swapped.get(_key(function.__code__))) is not None:
                if len(code.co_freevars) != len(function.__code__.co_freevars):
                    return False
                function.__code__ = code
                done += 1
        return done > 0


def _mutated_code(path: Path, mutation: Mutation) -> CodeType:
    return compile(mutated(path.read_text("utf-8"), mutation.place), str(path), "exec")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno
