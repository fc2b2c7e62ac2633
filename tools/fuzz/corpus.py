"""A folder of scenarios that failed once: `groupstorm run` runs them, and fuzzing replays them first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from groupstorm.problems import InputError, writing
from groupstorm.storms.runs.run_folder import write_text
from groupstorm.yaml_documents import parse_yaml, read_text
from tools.fuzz.drawing import Document


class Corpus:
    """The scenario files of one folder, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> Iterator[tuple[Path, Document]]:
        """Each file and its content, by name. Raises InputError for a file that is no scenario."""
        for path in sorted(self.folder.glob("*.yaml")):
            document = parse_yaml(read_text(path), str(path))
            if not isinstance(document, Mapping) or not isinstance(document.get("steps"), list):
                raise InputError(f"{path}: no scenario: name another folder with --out, or remove the file")
            yield path, {"name": path.stem, "seed": 0, "settings": {}, **document}

    def keep(self, document: Document, kind: str, found: Mapping[str, str]) -> Path:
        """Write a scenario that failed; ``kind``: the property that broke. Raises OutputError."""
        content = {
            "name": document["name"],
            "question": "; ".join(f"{name}: {sentence}" for name, sentence in found.items()),
            "seed": document["seed"],
            "settings": document["settings"],
            "steps": document["steps"],
        }
        path = self.folder / f"{kind}-{_digest(content)}.yaml"
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))
        return path


def _digest(content: Mapping[str, Any]) -> str:
    """Return the name by which equal scenarios have one file."""
    same = {name: content[name] for name in ("seed", "settings", "steps")}
    return hashlib.blake2b(yaml.safe_dump(same).encode(), digest_size=4).hexdigest()
