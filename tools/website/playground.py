"""The files that the playground loads: page, scripts, Pyodide from npm, groupstorm with its dependencies."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from groupstorm.problems import InputError

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
