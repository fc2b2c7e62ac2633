"""The steps of an administrator that are no request to the coordinator.

The end of a transaction, which reaches the coordinator as markers, and the check that a broker makes of a
group's options before it sets them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.config_options import ConfigError
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.group_configs import check_group
from groupstorm.coordinator.script.clients import InvalidStep
from groupstorm.coordinator.script.driver import Answered, Driver
from groupstorm.coordinator.script.fields import LONG_MAX, Fields, whole_number


class Administered(NamedTuple):
    """``fields``: those of the step's own answer; ``answers``: to requests that waited for it."""

    fields: dict[str, Any]
    answers: list[Answered]


def _end_txn(fields: Fields, driver: Driver, _config: CoordinatorConfig) -> Administered:
    producer = whole_number("producer", fields.value("producer", 1), LONG_MAX)
    is_commit = fields.value("commit", True)
    if not isinstance(is_commit, bool):
        raise InvalidStep(f"commit: {is_commit!r} is neither true nor false")
    answers = driver.end_transaction(producer, is_commit).answers
    return Administered({"error": NO_ERROR.name}, answers)


def _check_config(fields: Fields, _driver: Driver, config: CoordinatorConfig) -> Administered:
    changes = {name: _option(value) for name, value in fields.table("set").items()}
    error, message = NO_ERROR, None
    try:
        check_group(changes, config)
    except ConfigError as problem:
        error, message = Error.INVALID_CONFIG, str(problem)
    return Administered({"error": error.name, "message": message}, [])


def _option(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_STEPS: Mapping[str, Callable[[Fields, Driver, CoordinatorConfig], Administered]] = {
    "end_txn": _end_txn,
    "check_config": _check_config,
}
ADMIN_STEPS = frozenset(_STEPS)


def administer(step: Mapping[str, Any], driver: Driver, config: CoordinatorConfig) -> Administered:
    """Carry out a step whose ``op`` is one of `ADMIN_STEPS`. Raises InvalidStep."""
    return _STEPS[step["op"]](Fields(step), driver, config)
