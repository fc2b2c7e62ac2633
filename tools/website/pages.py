"""The pages that the site is built from: docs/, the first page, reference, presets, and the playground."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from groupstorm.cli.printing import print_lines_aside
from groupstorm.problems import InputError
from groupstorm.storms.scenario.preset_files import preset_summaries, preset_text
from groupstorm.version import __version__
from tools.documentation.broker import reference_page
from tools.documentation.clients import options_page, profiles_page
from tools.documentation.reference import events_page, patterns_page, settings_page

#: Pages outside docs/, with their names on the site.
OTHERS = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "compose/README.md": "compose.md",
}

#: Pages that stand nowhere else: their text is the code's own, as the commands print it.
REFERENCE: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "events.md": events_page,
    "patterns.md": patterns_page,
    "broker-reference.md": reference_page,
    "client-profiles.md": profiles_page,
    "consumer-options.md": options_page,
}

_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:")


def stage_pages(root: Path, pages: Path, answered: Collection[str]) -> None:
    """Write the folder ``pages``. Links to files that the site has not become their names.

    ``answered``: the presets whose pages have an answer.
    """
    shutil.copytree(root / "docs", pages)
    sources = {f"docs/{page.name}": page.name for page in pages.glob("*.md")} | OTHERS
    for source, name in sources.items():
        text = (root / source).read_text("utf-8")
        if source == "README.md":  # its commands are wider than a page beside a table of contents
            text = f"---\nhide: [toc]\n---\n\n{text}"
        (pages / name).write_text(_with_links(text, Path(source).parent, root, sources), "utf-8")
    for name, page in REFERENCE.items():
        (pages / name).write_text(page(), "utf-8")
    folder = pages / "presets"
    folder.mkdir()
    for name, text in preset_pages(write_answers(answered, folder)).items():
        (folder / name).write_text(text, "utf-8")


def _with_links(text: str, folder: Path, root: Path, names: dict[str, str]) -> str:
    def on_site(found: re.Match[str]) -> str:
        shown, target = found.groups()
        if target.startswith("#") or _ELSEWHERE.match(target):
            return found[0]
        path, hash_, anchor = target.partition("#")
        source = (root / folder / path).resolve().relative_to(root.resolve()).as_posix()
        if source in names:
            return f"[{shown}]({names[source]}{hash_}{anchor})"
        if source.startswith("docs/") and (root / source).is_file():
            return f"[{shown}]({source.removeprefix('docs/')}{hash_}{anchor})"
        return f"{shown} (`{source}`)" if source not in shown else shown

    return _LINK.sub(on_site, text)


def preset_pages(answers: Mapping[str, str]) -> dict[str, str]:
    """Return the pages of the presets by file name."""
    index = [
        "# Presets",
        "",
        "Each is a question with its variants; `groupstorm compare NAME` answers it.",
        "",
    ]
    index += ["| preset | question |", "|---|---|"]
    pages = {}
    for name, question, variants in preset_summaries():
        index.append(f"| [{name}]({name}.md) | {question} |")
        pages[f"{name}.md"] = (
            f"# {name}\n\n{question}\n\n"
            f"```sh\ngroupstorm compare {name}\n```\n\n"
            f'<p><a href="../../playground/#{name}">Run it in the browser</a></p>\n\n'
            f"Variants: {', '.join(f'`{variant}`' for variant in variants)}.\n\n{_told(answers.get(name))}"
            f"## The scenario\n\n```yaml\n{preset_text(name)}```\n\n"
            "[Scenarios](../scenarios.md) explains it; all [settings and steps](../settings.md).\n"
        )
    return {"index.md": "\n".join(index) + "\n", **pages}


def _told(answer: str | None) -> str:
    if answer is None:
        return ""
    made = f"Of groupstorm {__version__}, with one seed; `groupstorm compare` runs five."
    return f"## The answer\n\n{made}\n\n{answer}\n\n"


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


#: The files of Pyodide that a page loads.
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
#: What storms, comparisons and reports import besides the standard library; all of it runs as pure Python.
DEPENDENCIES = ("kio", "structlog", "yaml")


def stage_playground(root: Path, folder: Path) -> None:
    """Write the playground's files into ``folder``. Raises InputError if npm is missing or fails."""
    source = root / "website" / "playground"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (folder / "pyodide").mkdir()
    with tempfile.TemporaryDirectory(prefix="groupstorm-site-") as temporary:
        installed = _install_pyodide(root / "website", Path(temporary))
        for name in PYODIDE:
            shutil.copy(installed / name, folder / "pyodide" / name)
        wheel = _build_wheel(root, Path(temporary))
        with zipfile.ZipFile(folder / "groupstorm.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            with zipfile.ZipFile(wheel) as ours:
                for name in ours.namelist():
                    packed.writestr(name, ours.read(name))
            for file, name in _dependencies():
                packed.write(file, name)
            packed.write(source / "storm.py", "storm.py")


def _install_pyodide(website: Path, temporary: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise InputError(
            "npm is not on the path; the playground needs it for Pyodide (Debian: apt install npm)"
        )
    for name in ("package.json", "package-lock.json"):
        shutil.copy(website / name, temporary / name)
    _run([npm, "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"], temporary)
    return temporary / "node_modules" / "pyodide"


def _build_wheel(root: Path, temporary: Path) -> Path:
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(temporary)], root)
    (wheel,) = temporary.glob("*.whl")
    return wheel


def _run(command: list[str], folder: Path) -> None:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip() or "it said nothing").splitlines()[-1]
        raise InputError(f"{Path(command[0]).name} ended with {ran.returncode}: {last}")


def _dependencies() -> Iterator[tuple[Path, str]]:
    for name in DEPENDENCIES:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise InputError(f"{name} is not installed: ./dev site installs it")
        package = Path(found.origin).parent
        for file in sorted(package.rglob("*.py")):
            yield file, file.relative_to(package.parent).as_posix()
