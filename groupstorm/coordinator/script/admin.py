"""The steps of an administrator that are no single request to the coordinator.

The end of a transaction, which reaches the coordinator as markers; DeleteGroups, a request about each group;
and the check that a broker makes of a group's options before it sets them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.config_options import ConfigError
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.group_configs import check_group
from groupstorm.coordinator.messages import DeleteGroup, DeleteGroupResponse
from groupstorm.coordinator.script.clients import InvalidStep
from groupstorm.coordinator.script.driver import Answered, Driver, Sent
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


def _delete_groups(fields: Fields, driver: Driver, _config: CoordinatorConfig) -> Administered:
    groups = fields.value("groups", [fields.text("group", "g")])
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise InvalidStep(f"groups: {groups!r} is no list of groups")
    errors: dict[str, Error] = {}
    others = []
    for group in dict.fromkeys(groups):
        own = Sent(("delete_groups", group), "delete_groups", "", DeleteGroup(group))
        for answer in driver.send(own).answers:
            if answer.sent is own:
                assert isinstance(answer.response, DeleteGroupResponse)
                errors[group] = answer.response.error
            else:
                others.append(answer)
    return Administered({"groups": sorted([group, error.name] for group, error in errors.items())}, others)


def _check_config(fields: Fields, _driver: Driver, config: CoordinatorConfig) -> Administered:
    changes = {name: _option(value) for name, value in fields.table("set").items()}
    error, message = NO_ERROR, None
    try:
        check_group(changes, config.consumer, config.compatibility)
    except ConfigError as problem:
        error, message = Error.INVALID_CONFIG, str(problem)
    return Administered({"error": error.name, "message": message}, [])


def _option(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_STEPS: Mapping[str, Callable[[Fields, Driver, CoordinatorConfig], Administered]] = {
    "end_txn": _end_txn,
    "delete_groups": _delete_groups,
    "check_config": _check_config,
}
ADMIN_STEPS = frozenset(_STEPS)


def administer(step: Mapping[str, Any], driver: Driver, config: CoordinatorConfig) -> Administered:
    """Carry out a step whose ``op`` is one of `ADMIN_STEPS`. Raises InvalidStep."""
    return _STEPS[step["op"]](Fields(step), driver, config)
