"""`groupstorm.broker` is a function, and the room of that name can be imported all the same."""

from __future__ import annotations

import inspect

import groupstorm
import groupstorm.broker.assembly as assembly_by_path
from groupstorm.broker import assembly


def test_the_function_stays_and_the_rooms_modules_are_found() -> None:
    assert inspect.isfunction(groupstorm.broker)
    assert assembly_by_path is assembly
