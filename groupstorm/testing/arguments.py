"""Arguments as people write them in tests: they are checked and converted to those of the broker.

Every check raises InputError with one line that names the argument, the value and what was expected.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path

from groupstorm.problems import InputError
from groupstorm.wording import some

#: A value of one of Kafka's settings: True is "true", 0 is "0".
Setting = str | int | float | bool
#: Name -> partitions, or names; "orders:6" has six partitions.
Topics = Mapping[str, int] | Iterable[str]

_INT32_MAX = 2**31 - 1
_MAX_TIMEOUT_S = 86_400.0
#: The most names that a message lists; the others are counted.
_LISTED = 10


def text(argument: str, value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{argument}: {value!r}: expected a text")
    return value


def optional_text(argument: str, value: object) -> str | None:
    return None if value is None else text(argument, value)


def number(argument: str, value: object, least: int = 0, most: int = _INT32_MAX) -> int:
    """A whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"{argument}: {value!r}: expected a number from {least} to {most}")
    return value


def optional_number(argument: str, value: object) -> int | None:
    return None if value is None else number(argument, value)


def flag(argument: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{argument}: {value!r}: expected True or False")
    return value


def seconds(argument: str, value: object) -> float:
    """A duration of a day at most."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or not 0 <= value <= _MAX_TIMEOUT_S:  # type: ignore[arg-type,operator]
        raise InputError(f"{argument}: {value!r}: expected seconds from 0 to {_MAX_TIMEOUT_S:g}")
    return float(value)  # type: ignore[arg-type]


def path(argument: str, value: object) -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise InputError(f"{argument}: {value!r}: expected a path")
    return Path(value)


def optional_path(argument: str, value: object) -> Path | None:
    return None if value is None else path(argument, value)


def one_of(argument: str, value: object, known: Sequence[str]) -> str:
    if value not in known:
        raise InputError(f"{argument}: {value!r}: expected one of {', '.join(known)}")
    return str(value)


def holds(found: object) -> bool:
    """Whether a test's condition holds. Its coroutine, if it is async, would always be true."""
    if isinstance(found, Coroutine):
        found.close()
        raise InputError("condition: expected a function that is not async")
    return bool(found)


def listed(names: Iterable[str]) -> str:
    """Names for a message: the first ones in order, and how many more there are."""
    return some(sorted(names), _LISTED) or "none"


def as_settings(settings: object) -> dict[str, str]:
    """Kafka's texts by name; None: no settings."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise InputError(f"settings: {settings!r}: expected {{'num.partitions': 3}}")
    texts = {}
    for name, value in settings.items():
        if not isinstance(name, str):
            raise InputError(f"settings: {name!r}: expected the name of one of Kafka's settings")
        if not isinstance(value, Setting):
            raise InputError(f"settings: {name}: {value!r}: expected a text, a number, True or False")
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def as_topics(topics: object, settings: Mapping[str, str]) -> dict[str, int]:
    """Name -> partitions; None: no topics.

    A name in a list without a number of partitions has ``num.partitions`` of them, as a topic that is created
    on demand.
    """
    if topics is None:
        return {}
    if isinstance(topics, Mapping):
        for name, partitions in topics.items():
            if not isinstance(name, str):
                raise InputError(f"topics: {name!r}: expected the name of a topic")
            if not isinstance(partitions, int) or isinstance(partitions, bool):
                raise InputError(f"topics: {name}: {partitions!r}: expected the number of its partitions")
        return dict(topics)
    if isinstance(topics, str | bytes) or not isinstance(topics, Iterable):
        raise InputError(f"topics: {topics!r}: expected {{'orders': 6}}, or a list: ['orders:6', 'payments']")
    return _topics_of_list(topics, settings)


def _topics_of_list(topics: Iterable[object], settings: Mapping[str, str]) -> dict[str, int]:
    by_name: dict[str, int] = {}
    for one in topics:
        if not isinstance(one, str):
            raise InputError(f"topics: {one!r}: expected a name, or a name and its partitions: 'orders:6'")
        name, colon, partitions = one.partition(":")
        if not colon:
            partitions = settings.get("num.partitions", "1").strip()
        if not (partitions.isascii() and partitions.isdigit() and len(partitions) < _DIGITS):
            raise InputError(f"topics: {one!r}: expected a name and its partitions: 'orders:6'")
        if name in by_name:
            raise InputError(f"topics: {one!r}: {name} was named before")
        by_name[name] = int(partitions)
    return by_name


#: Longer numbers are no numbers of partitions.
_DIGITS = 10
