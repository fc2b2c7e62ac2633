"""The names of a scenario's processes: their client ids."""

from __future__ import annotations

from groupstorm.problems import InputError
from groupstorm.storms.scenario.settings import Settings


def member_name(settings: Settings, index: int, kind: str = "member") -> str:
    """The name of the process in this place: as a rule of `member_settings` says, or member-07."""
    own = settings.of_member(index).name
    return own or f"{kind}-{index:0{len(str(settings.integer('members')))}d}"


def check_member_names(settings: Settings) -> None:
    """Raise InputError if a rule gives a process the name that another one has by its place."""
    if not settings.names_members:
        return
    places: dict[str, int] = {}
    for index in range(settings.integer("members")):
        name = member_name(settings, index)
        other = places.setdefault(name, index)
        if other != index:
            raise InputError(
                f"member_settings: name: {name!r}: members {other} and {index} have this name: every process "
                "has a name of its own"
            )
