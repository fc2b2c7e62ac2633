"""The fields of a manifest, each read with its type and its place in the file for errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.scenario.pod_counts import PodCount, parse_pod_count

#: Kubernetes' numbers have 32 bits; a scenario's times are milliseconds.
SECONDS_MAX = 10 * 24 * 3600
INT32_MAX = 2**31 - 1


class Fields:
    """A mapping of a manifest. ``where``: its place: file, object, path. A null counts as no value."""

    def __init__(self, where: str, content: Any) -> None:
        self.where = where
        if not isinstance(content, Mapping):
            raise InputError(f"{where}: {_shown(content)}: expected names with values")
        self.content: Mapping[Any, Any] = content

    def __contains__(self, name: str) -> bool:
        return self.content.get(name) is not None

    def names(self) -> Iterator[str]:
        return (str(name) for name in self.content)

    def at(self, *path: str) -> Fields:
        """The mapping at ``path``, empty if it is not there."""
        found = self
        for name in path:
            found = Fields(f"{found.where}.{name}", {} if name not in found else found.content[name])
        return found

    def objects(self, name: str) -> list[Fields]:
        """The mappings of a list, empty if it is not there."""
        return [Fields(f"{self.where}.{name}[{at}]", one) for at, one in enumerate(self._list(name))]

    def texts(self, name: str) -> list[str]:
        """The texts of a list; numbers and flags as texts."""
        return [str(one) for one in self._list(name) if isinstance(one, str | int | float)]

    def _list(self, name: str) -> list[Any]:
        value = self.content.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self.content.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def scalar(self, name: str) -> str | None:
        """A text, number or flag as a text: flags as YAML writes them."""
        value = self.content.get(name)
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, str | int | float) else None

    def whole(self, name: str, default: int, least: int = 0, most: int = INT32_MAX) -> int:
        value = self.content.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(name, f"a whole number from {least} to {most}")
        return value

    def seconds(self, name: str, default: int) -> int:
        return self.whole(name, default, 0, SECONDS_MAX)

    def pods(self, name: str, default: PodCount) -> PodCount:
        value = self.content.get(name)
        if value is None:
            return default
        count = parse_pod_count(value)
        if count is None or count.number > INT32_MAX:
            raise self._wrong(name, "a number of pods or a percentage like 25%")
        return count

    def _wrong(self, name: str, expected: str) -> InputError:
        return InputError(f"{self.where}.{name}: {_shown(self.content.get(name))}: expected {expected}")


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
