"""Scenarios: YAML or TOML files, read, checked and resolved into what a run needs.

A file names a question, the settings that differ from the defaults, variants (more settings each)
and steps. A resolved scenario is such a file again, with everything spelled out, the seed included:
running it gives the same trace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from groupstorm.problems import InputError, did_you_mean, not_one_of
from groupstorm.storms.scenario.consistency import (
    check_application,
    check_consistency,
    check_member_names,
    check_share_group,
    refuse_idle,
    unused_settings,
)
from groupstorm.storms.scenario.member_rules import STRATEGY, named_code
from groupstorm.storms.scenario.preset_files import preset_names, preset_text
from groupstorm.storms.scenario.quantities import is_name, whole
from groupstorm.storms.scenario.setting_names import CLASSIC, STREAMS_PROTOCOL, refuse_unsupported
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import (
    Step,
    created_topics,
    partitions_at_end,
    read_step,
    read_time,
    releases,
    with_releases,
)
from groupstorm.storms.scenario.topics import check_topics
from groupstorm.yaml_documents import parse_toml, parse_yaml, read_text

#: The field of a scenario that says from when on figures count; `figures.accumulator` reads it in the trace.
FIGURES_FROM = "figures_from"
FIELDS = ("name", "question", "settings", "variants", "steps", "variant", "seed", FIGURES_FROM, "rank")
DEFAULT_VARIANT = "default"
MAX_SEED = 2**63 - 1
RATE_CHANGES = "record_rate_over_time"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file, checked: ``variants`` in the file's order, never empty."""

    name: str
    question: str
    settings: Mapping[str, Any]
    variants: Mapping[str, Mapping[str, Any]]
    steps: tuple[Any, ...]
    source: str
    seed: int | None = None
    variant: str | None = None
    #: From when on figures count: as a step's time, 0 for the whole run.
    figures_from: Any = 0
    #: The ranking of its variants, as `--rank` takes it; None: the usual one.
    rank: str | None = None

    def resolve(
        self,
        variant: str | None,
        seed: int | None,
        overrides: Mapping[str, Any],
        overrides_from: str = "--set ",
    ) -> ResolvedScenario:
        """One variant with one seed; ``overrides`` are the user's, errors call them ``overrides_from``.

        Raises InputError.
        """
        chosen = variant or self.variant or next(iter(self.variants))
        if chosen not in self.variants:
            raise InputError(f"variant: {not_one_of(chosen, self.variants)}")
        if STRATEGY not in overrides:
            for overlay in (self.settings, self.variants[chosen]):
                _refuse_code(self.source, overlay)
        overlays = (
            (f"{self.source}: settings: ", self.settings),
            (f"{self.source}: variants: {chosen}: ", self.variants[chosen]),
            (overrides_from, overrides),
        )
        for where, overlay in overlays[1:]:  # the settings of the file serve variants of both protocols
            refuse_unsupported(where, overlay)
        written_steps = with_releases(self.steps, Settings(*overlays))
        settings = Settings(*overlays, releases=releases(self.source, written_steps))
        created = created_topics(written_steps)
        steps = []
        for number, written in enumerate(written_steps, start=1):
            release = sum("settings" in step for step in written_steps[:number] if isinstance(step, Mapping))
            steps.append(read_step(f"{self.source}: steps: {number}", written, settings, created, release))
        if not any(step.do in ("start", "add") for step in steps):
            raise InputError(f"{self.source}: steps: nobody ever starts: a step `do: start` is needed")
        for own in settings.of_profiles():
            check_consistency(own)
        check_member_names(settings)
        check_topics(f"{self.source}: ", settings, partitions_at_end(settings, steps))
        check_application(self.source, settings, steps)
        refuse_idle(settings, overlays[1:2] if self._has_other_protocols(overrides) else overlays)
        check_share_group(self.source, settings, steps)
        chosen_seed = seed if seed is not None else self.seed or 0
        figures_from_ms = read_time(f"{self.source}: figures_from", self.figures_from, settings)
        return ResolvedScenario(
            self.name, self.question, chosen, chosen_seed, settings, tuple(steps), overrides, figures_from_ms
        )

    def _has_other_protocols(self, overrides: Mapping[str, Any]) -> bool:
        """Whether a variant makes use of settings that a streams group does not have."""
        protocols = [{**self.settings, **own, **overrides} for own in self.variants.values()]
        return any(one.get("group.protocol", CLASSIC) != STREAMS_PROTOCOL for one in protocols)


@dataclass(frozen=True, slots=True)
class ResolvedScenario:
    """One run, fully spelled out."""

    name: str
    question: str
    variant: str
    seed: int
    settings: Settings
    steps: tuple[Step, ...]
    #: The settings that were changed on the command line.
    changed: Mapping[str, Any] = field(default_factory=dict)
    #: The figures count from this time on.
    figures_from_ms: int = 0

    def written(self) -> dict[str, Any]:
        """The scenario as a file that gives this very run: without settings of other variants that do nothing
        in this one."""
        settings = dict(self.settings.written())
        idle = unused_settings(self.settings, ())
        return self._written({name: value for name, value in settings.items() if name not in idle})

    def _written(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": self.name,
            "question": self.question,
            "seed": self.seed,
            "variant": self.variant,
            "settings": settings,
            "variants": {self.variant: {}},
            **({FIGURES_FROM: self.figures_from_ms} if self.figures_from_ms else {}),
            "steps": [step.written() for step in self.steps],
        }

    def as_yaml(self) -> str:
        return yaml.safe_dump(self.written(), sort_keys=False, allow_unicode=True, width=100)

    def as_json(self) -> str:
        """All settings, also those that do nothing: runs are compared by them."""
        whole = self._written(dict(self.settings.written()))
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def load(name_or_path: str) -> Scenario:
    """A preset by its name, or a scenario file (.yaml, .yml, .toml). Raises InputError."""
    if name_or_path in preset_names():
        return parse(preset_text(name_or_path), "yaml", f"preset {name_or_path}")
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml", ".toml"):
        if name_or_path and path.exists():
            raise InputError(_no_scenario_file(path))
        ways = ": `groupstorm list` has all presets, and `groupstorm find WORD` looks for settings, too"
        hint = did_you_mean(name_or_path, preset_names(), ": ", ways)
        raise InputError(f"{name_or_path}: neither a preset nor a scenario file (.yaml, .toml){hint}")
    syntax = "toml" if path.suffix == ".toml" else "yaml"
    return parse(read_text(path), syntax, str(path), folder=path.parent)


def _no_scenario_file(path: Path) -> str:
    """The reason why something that is there is not read as a scenario."""
    what = "is a folder" if path.is_dir() else "its name ends neither in .yaml nor in .toml"
    inside = (
        f"; the scenario of this run is {path / 'scenario.yaml'}"
        if (path / "scenario.yaml").is_file()
        else ""
    )
    return f"{path}: {what}: expected a preset or a scenario file (.yaml, .toml){inside}"


def parse(text: str, syntax: str, source: str, folder: Path | None = None) -> Scenario:
    """A scenario from text. Raises InputError naming field, value and what was expected.

    Files that the settings name lie in ``folder``, or in the current one.
    """
    document = _mapping(source, parse_toml(text, source) if syntax == "toml" else parse_yaml(text, source))
    unknown = [str(key) for key in document if key not in FIELDS]
    if unknown:
        raise InputError(f"{source}: {unknown[0]}: no such field: expected {', '.join(FIELDS)}")
    steps = document.get("steps")
    if not isinstance(steps, list) or not steps:
        raise InputError(f"{source}: steps: a list of at least one step is needed")
    settings = _mapping(f"{source}: settings", document.get("settings", {}))
    seed = document.get("seed")
    variants = {
        _name(f"{source}: variants", name): _mapping(f"{source}: variants: {name}", overlay or {})
        for name, overlay in _mapping(f"{source}: variants", document.get("variants", {})).items()
    } or {DEFAULT_VARIANT: {}}
    return Scenario(
        name=_name(f"{source}: name", document.get("name", "scenario")),
        question=_text(f"{source}: question", document.get("question", "")),
        settings=_in_folder(settings, folder),
        variants={name: _in_folder(overlay, folder) for name, overlay in variants.items()},
        steps=tuple(steps),
        source=source,
        seed=None if seed is None else whole(f"{source}: seed", seed, 0, MAX_SEED),
        variant=_text(f"{source}: variant", document["variant"]) if "variant" in document else None,
        rank=_text(f"{source}: rank", document["rank"]) if "rank" in document else None,
        figures_from=document.get(FIGURES_FROM, 0),
    )


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: {value!r}: expected names with values")
    return value


def _in_folder(overlay: Mapping[str, Any], folder: Path | None) -> Mapping[str, Any]:
    """The file of rates that settings name is a neighbour of the scenario's file."""
    changes = overlay.get(RATE_CHANGES)
    if folder is None or not isinstance(changes, Mapping) or not isinstance(changes.get("file"), str):
        return overlay
    return {**overlay, RATE_CHANGES: {**changes, "file": str(folder / changes["file"])}}


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: {value!r}: expected a text")
    return value


def _name(where: str, value: Any) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise InputError(
            f"{where}: {value!r}: expected letters, digits, - _ and ., a letter or a digit in front, "
            "at most 100 characters, in quotes if YAML takes them for something else"
        )
    return value


def _refuse_code(source: str, overlay: Mapping[str, Any]) -> None:
    """A file must not make us import a module: assignors of one's own are named on the command line."""
    if (name := named_code(overlay)) is not None:
        raise InputError(
            f"{source}: {STRATEGY}: {name!r}: a file cannot name code; use --set {STRATEGY}={name}"
        )
