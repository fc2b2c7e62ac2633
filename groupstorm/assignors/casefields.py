"""Fields of a case with their place in the input, so that an error can name a wrong one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.problems import InputError

_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1
_SHOWN = 60

#: More than any cluster has (KRaft aims at two million), so that a typing error cannot use up the memory.
MAX_PARTITIONS = 5_000_000


E = TypeVar("E", bound=StrEnum)
D = TypeVar("D", bound=int | None)


def answers(lines: Iterable[bytes], answer: Callable[[bytes, str], dict[str, Any]]) -> Iterator[str]:
    """The answers to lines as JSON texts; blank lines are skipped. `InputError`: a line is no case."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield json.dumps(answer(line, f"line {number}"), ensure_ascii=False)


def refused(case_id: object, refusal: AssignmentRefused) -> dict[str, Any]:
    return {"id": case_id, "error": refusal.error, "message": refusal.message}


def read_line(line: bytes, place: str) -> Field:
    """The case of one line; ``place`` names the line. `InputError` if it is no case with an id."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{place}: expected a case as a JSON object: {problem}") from problem
    case = Field(place, "the case", value)
    if "id" not in case.object():
        raise InputError(f"{place}: field id: expected one, to name the answer by")
    return case


class Field(NamedTuple):
    """One JSON value: ``place`` is the line, ``path`` its path within the case."""

    place: str
    path: str
    value: Any

    def expected(self, what: str) -> InputError:
        """The error to raise: the line, the field, the value and the expected value."""
        shown = json.dumps(self.value, ensure_ascii=True)
        if len(shown) > _SHOWN:
            shown = shown[:_SHOWN] + "..."
        return InputError(f"{self.place}: field {self.path}: {shown}: expected {what}")

    def _child(self, name: str, value: object) -> Field:
        return Field(self.place, name if self.path == "the case" else f"{self.path}.{name}", value)

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.expected("a JSON object")
        return self.value

    def entries(self) -> list[tuple[str, Field]]:
        return [(name, self._child(name, value)) for name, value in self.object().items()]

    def items(self) -> list[Field]:
        if not isinstance(self.value, list):
            raise self.expected("a list")
        return [self._child(str(number), value) for number, value in enumerate(self.value)]

    def optional(self, name: str) -> Field | None:
        """A field of an object; null counts as absent."""
        value = self.object().get(name)
        return None if value is None else self._child(name, value)

    def field(self, name: str) -> Field:
        """A required field of an object."""
        found = self.optional(name)
        if found is None:
            raise self._child(name, None).expected("a value, there is none")
        return found

    def string(self) -> str:
        if not isinstance(self.value, str):
            raise self.expected("a string")
        return self.value

    def integer(self, minimum: int = _INT32_MIN) -> int:
        """A 32 bit integer."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.expected("an integer")
        if not minimum <= self.value <= _INT32_MAX:
            raise self.expected(f"an integer from {minimum} to {_INT32_MAX}")
        return self.value

    def listed(self, name: str) -> list[Field]:
        """The elements of an optional list."""
        found = self.optional(name)
        return [] if found is None else found.items()

    def optional_string(self, name: str) -> str | None:
        found = self.optional(name)
        return None if found is None else found.string()

    def optional_integer(self, name: str, minimum: int = _INT32_MIN) -> int | None:
        return self.integer_or(name, None, minimum)

    def integer_or(self, name: str, default: D, minimum: int = _INT32_MIN) -> int | D:
        found = self.optional(name)
        return default if found is None else found.integer(minimum)

    def flag(self, name: str) -> bool:
        """A truth value; false if it is absent."""
        found = self.optional(name)
        if found is None:
            return False
        if not isinstance(found.value, bool):
            raise found.expected("true or false")
        return found.value

    def choice(self, name: str, default: E) -> E:
        """A member of the default's enum."""
        found = self.optional(name)
        if found is None:
            return default
        choices = [str(member) for member in type(default)]
        if found.value not in choices:
            raise found.expected(f"one of {', '.join(choices)}")
        return type(default)(found.value)
