"""The answer of each preset, as `groupstorm compare` and `groupstorm report` give it with one seed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from groupstorm.cli.printing import print_lines_aside
from groupstorm.problems import InputError

#: The end of the report's Markdown: commands that name folders of this machine.
_ENDS_AT: Final = "\n<details>"


def write_answers(presets: Iterable[str], folder: Path) -> Mapping[str, str]:
    """Run the presets' comparisons, and write a picture of each into ``folder``: NAME.svg.

    Returns the answers as Markdown, by preset. Raises InputError if a command fails.
    """

    def answer(preset: str) -> tuple[str, str]:
        found = preset, _answer(preset, folder)
        print_lines_aside(f"site: {preset} is answered")
        return found

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return dict(threads.map(answer, presets))


def _answer(preset: str, folder: Path) -> str:
    runs, page = folder / f"{preset}.runs", folder / f"{preset}.answer.md"
    _groupstorm("compare", preset, "--seeds", "1", "--out", str(runs))
    _groupstorm("report", str(runs), "-o", str(page))
    text = page.read_text("utf-8")
    page.unlink()
    page.with_suffix(".svg").rename(folder / f"{preset}.svg")
    shutil.rmtree(runs)
    _question, _, answered = text.partition("\n")
    return answered.partition(_ENDS_AT)[0].strip().replace(f"{preset}.answer.svg", f"{preset}.svg")


def _groupstorm(*arguments: str) -> None:
    command = [sys.executable, "-m", "groupstorm", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise InputError(
            f"groupstorm {' '.join(arguments)} ended with {ran.returncode}: {ran.stderr.strip()}"
        )
