"""The configurations that resources have: types, bounds, and the check of one value with Kafka's message.

Source: ConfigDef.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


class ConfigType(IntEnum):
    """As DescribeConfigs names them (DescribeConfigsResponse.ConfigType)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigError(ValueError):
    """A configuration that Kafka refuses (INVALID_CONFIG); the sentence is Kafka's."""


class Option(NamedTuple):
    """One configuration. ``broker``: the broker's setting that is its default.

    ``pattern``: what a text has to match, and Kafka's description of that.
    """

    kind: ConfigType
    default: str
    least: float = 0
    most: float = INT64_MAX
    values: tuple[str, ...] = ()
    broker: str | None = None
    pattern: tuple[re.Pattern[str], str] | None = None


def long(default: int, least: int = 0, broker: str | None = None) -> Option:
    return Option(ConfigType.LONG, str(default), least, broker=broker)


def integer(default: int, least: int = 0, broker: str | None = None) -> Option:
    return Option(ConfigType.INT, str(default), least, INT32_MAX, broker=broker)


def flag(default: bool) -> Option:
    return Option(ConfigType.BOOLEAN, str(default).lower())


def check(options: Mapping[str, Option], what: str, name: str, value: str) -> str:
    """The checked value. Raises ConfigError for a name or a value that Kafka refuses."""
    option = options.get(name)
    if option is None:
        raise ConfigError(f"Unknown {what} config name: {name}")
    if option.kind is ConfigType.LIST:
        _check_list(option, name, value.strip())
    else:
        problem = _PROBLEMS[option.kind](option, name, value.strip())
        if problem is not None:
            raise ConfigError(f"Invalid value {value} for configuration {name}: {problem}")
    return value.strip()


def _of_flag(_option: Option, _name: str, value: str) -> str | None:
    return None if value.lower() in ("true", "false") else "Expected value to be either true or false"


def _of_text(option: Option, name: str, value: str) -> str | None:
    if option.pattern is not None:
        pattern, description = option.pattern
        if pattern.fullmatch(value):
            return None
        return f"Invalid value `{value}` for configuration {name}. The value must be {description}"
    if not option.values or value in option.values:
        return None
    return f"String must be one of: {', '.join(option.values)}"


def _check_list(option: Option, name: str, value: str) -> None:
    """Raises ConfigError. An empty list is one (KIP-1161)."""
    parts = [part.strip() for part in value.split(",")] if value else []
    if not all(parts):
        raise ConfigError(f"Configuration '{name}' values must not be empty.")
    for part in parts if option.values else ():
        if part not in option.values:
            problem = f"String must be one of: {', '.join(option.values)}"
            raise ConfigError(f"Invalid value {part} for configuration {name}: {problem}")


_LARGEST = {ConfigType.SHORT: 2**15 - 1, ConfigType.INT: INT32_MAX}


def _of_number(option: Option, _name: str, value: str) -> str | None:
    fraction = r"(\.[0-9]{1,19})?" if option.kind is ConfigType.DOUBLE else ""
    largest = _LARGEST.get(option.kind, INT64_MAX)
    is_number = re.fullmatch(rf"[+-]?[0-9]{{1,19}}{fraction}", value)
    if not is_number or not -largest - 1 <= float(value) <= largest:
        return f"Not a number of type {option.kind.name}"
    if float(value) < option.least:
        return f"Value must be at least {option.least}"
    if float(value) > option.most:
        return f"Value must be no more than {option.most}"
    return None


_PROBLEMS: Mapping[ConfigType, Callable[[Option, str, str], str | None]] = {
    ConfigType.BOOLEAN: _of_flag,
    ConfigType.STRING: _of_text,
    ConfigType.CLASS: _of_text,
    ConfigType.PASSWORD: _of_text,
    ConfigType.INT: _of_number,
    ConfigType.SHORT: _of_number,
    ConfigType.LONG: _of_number,
    ConfigType.DOUBLE: _of_number,
}
