"""The busiest modules give equal traces when mypyc has compiled them."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import pkgutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.command import ROOT, groupstorm
from tests.processes import BUILD_DEADLINE_S, run_process

#: The compiler takes a minute of one core; on a busy machine it has an eighth of one.
pytestmark = pytest.mark.timeout(2_400)

_ALL_STEPS = str(ROOT / "tests/storms/all-steps.yaml")
_STORMS = (
    ("compare", "rolling-deploy"),
    ("compare", "cold-start"),
    ("compare", "slow-member-hostage"),
    ("compare", "client-profiles"),
    ("compare", _ALL_STEPS),
    ("run", "cold-start", "--exact"),
    ("run", "stateful-warmup", "--format", "parquet"),
    ("compare", "share-deploy"),
    ("compare", str(ROOT / "tests/storms/streams/all-steps.yaml")),
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked wheel with compiled modules."""
    hatch_build = pytest.importorskip("hatch_build", reason="needs hatchling: requirements/test.txt")
    if (obstacle := hatch_build.missing()) is not None:
        pytest.skip(obstacle)
    folder = tmp_path_factory.mktemp("compiled")
    wheel = build_wheel(folder)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def build_wheel(folder: Path) -> Path:
    done = run_process(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1", "MYPYC_OPT_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=False,
        deadline_s=2 * BUILD_DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    assert "none-any" not in wheel.name
    return wheel


def traces(folder: Path, storm: tuple[str, ...], path: Path) -> dict[str, str]:
    """Return what a storm leaves behind: the digests of its files by name, but for what was measured."""
    command = (*storm, "--seeds", "1", "--seed", "5", "--out", str(folder))
    done = groupstorm(*command, cwd=folder.parent, PYTHONPATH=str(path))
    assert done.returncode in (0, 1), done.stderr  # 1: a checker has found what it should find
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "measured.json"
    }


def test_no_module_that_stays_python_has_a_subclass_of_a_compiled_class() -> None:
    """mypyc's classes have compiled subclasses only: an instance of another one raises a TypeError."""
    hatch_build = pytest.importorskip("hatch_build", reason="needs hatchling: requirements/test.txt")
    compiled = {f"groupstorm.{module.replace('/', '.')}" for module in hatch_build.COMPILED}
    rooms = {module.split("/")[0] for module in hatch_build.COMPILED if "/" in module}
    interpreted = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages([str(ROOT / "groupstorm")], "groupstorm.")
        if module.name.split(".")[1] in rooms and module.name not in compiled
    ]
    assert [
        (one, base)
        for module in interpreted
        for one in vars(module).values()
        if inspect.isclass(one) and one.__module__ == module.__name__
        for base in one.__mro__
        if base.__module__ in compiled
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("storm", _STORMS, ids=lambda storm: "-".join(Path(part).stem for part in storm))
def test_compiled_modules_give_the_same_traces(
    storm: tuple[str, ...], compiled: Path, tmp_path: Path
) -> None:
    plain = traces(tmp_path / "plain", storm, ROOT)
    assert any(Path(name).name.startswith("trace.") for name in plain)
    assert traces(tmp_path / "compiled", storm, compiled) == plain


@pytest.mark.slow
def test_the_compiled_modules_are_those_that_run(compiled: Path, tmp_path: Path) -> None:
    asked = "from groupstorm.storms.world import broker, clock; print(broker.__file__, clock.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(compiled)}
    command = [sys.executable, "-c", asked]
    used = run_process(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    for path in used.stdout.split():
        assert path.startswith(str(compiled))
        assert path.endswith(".so")
    assert {path.name for path in compiled.iterdir() if path.suffix != ".dist-info"} == {
        "groupstorm",
        *(path.name for path in compiled.glob("groupstorm__mypyc.*.so")),
    }
