"""The files of the presets, and what `groupstorm list` says of each.

It does not import what checks a scenario: a list reads no settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

import yaml

#: LibYAML's parser takes an eighth of the time; a test holds presets to the checks of `yaml_documents`.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PresetSummary(NamedTuple):
    name: str
    question: str
    variants: tuple[str, ...]


def preset_names() -> tuple[str, ...]:
    folder = resources.files("groupstorm.storms") / "presets"
    return tuple(
        sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))
    )


def preset_text(name: str) -> str:
    return (resources.files("groupstorm.storms") / "presets" / f"{name}.yaml").read_text("utf-8")


def preset_summaries() -> Iterator[PresetSummary]:
    for name in preset_names():
        document = yaml.load(preset_text(name), _Loader)
        yield PresetSummary(document["name"], document["question"], tuple(document["variants"]))
