"""Typed access to a step's fields: a missing field has its default, null is null."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.config import INT_MAX
from groupstorm.coordinator.script.clients import InvalidStep

LONG_MAX = 2**63 - 1
_SHORT_MAX = 2**15 - 1


class Fields:
    """One step, read field by field; a value of another type is an `InvalidStep` that names the field."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        self._step = step

    def __contains__(self, name: str) -> bool:
        return name in self._step

    def value(self, name: str, default: Any = None) -> Any:
        return self._step.get(name, default)

    def text(self, name: str, default: str) -> str:
        value = self._step.get(name, default)
        if not isinstance(value, str):
            raise InvalidStep(f"{name}: {value!r} is no text")
        return value

    def optional_text(self, name: str, default: str | None = None) -> str | None:
        value = self._step.get(name, default)
        if value is not None and not isinstance(value, str):
            raise InvalidStep(f"{name}: {value!r} is neither text nor null")
        return value

    def int32(self, name: str, default: int) -> int:
        return whole_number(name, self._step.get(name, default), INT_MAX)

    def version(self, default: int, lowest: int, highest: int) -> int:
        value = whole_number("version", self._step.get("version", default), _SHORT_MAX)
        if not lowest <= value <= highest:
            raise InvalidStep(f"version: {value} is not between {lowest} and {highest}")
        return value

    def table(self, name: str) -> dict[str, Any]:
        value = self._step.get(name, {})
        if not isinstance(value, dict):
            raise InvalidStep(f"{name}: {value!r} is no object")
        return value

    def numbers_by_name(self, name: str) -> dict[str, tuple[int, ...]]:
        """Lists of partitions or tasks by the names of their topics or subtopologies."""
        lists = {f"{name}.{one}": value for one, value in self.table(name).items()}
        return {one: Fields(lists).numbers(f"{name}.{one}", INT_MAX) for one in self.table(name)}

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._step.get(name, default)
        if not isinstance(value, bool):
            raise InvalidStep(f"{name}: {value!r} is neither true nor false")
        return value

    def listed(self, name: str) -> list[Any]:
        value = self._step.get(name, [])
        if not isinstance(value, list):
            raise InvalidStep(f"{name}: {value!r} is no list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.listed(name)
        if not all(isinstance(text, str) for text in value):
            raise InvalidStep(f"{name}: {value!r} is no list of texts")
        return tuple(value)

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        return None if self._step.get(name) is None else self.texts(name)

    def numbers(self, name: str, highest: int) -> tuple[int, ...]:
        return tuple(whole_number(name, number, highest) for number in self.listed(name))

    def objects(self, name: str) -> list[Fields]:
        value = self.listed(name)
        if not all(isinstance(one, dict) for one in value):
            raise InvalidStep(f"{name}: {value!r} is no list of objects")
        return [Fields(one) for one in value]


def whole_number(name: str, value: Any, highest: int) -> int:
    """A whole number between -highest - 1 and highest."""
    if isinstance(value, bool) or not isinstance(value, int) or not -highest - 1 <= value <= highest:
        raise InvalidStep(f"{name}: {value!r} is no whole number between {-highest - 1} and {highest}")
    return value


def partition_number(name: str, text: str) -> int:
    """A partition as the key of an object."""
    if not text.isdecimal():
        raise InvalidStep(f"{name}: {text!r} is no partition")
    return whole_number(name, int(text), INT_MAX)


def from_base64(name: str, value: Any) -> bytes:
    """The bytes of a base64 text. Python callers may give the bytes themselves."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise InvalidStep(f"{name}: {value!r} is no base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise InvalidStep(f"{name}: {value!r} is no base64 text") from problem
