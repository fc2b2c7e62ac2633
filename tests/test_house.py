"""The house rules: what a wheel installs, who imports whom, locked versions, links that lead somewhere."""

from __future__ import annotations

import ast
import email.message
import email.parser
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.processes import run_process

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "groupstorm"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# --- the wheel -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="builds the wheel: pip install hatchling, or use ./dev test")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    run_process(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def wheel_names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def wheel_metadata(path: Path) -> email.message.Message:
    (name,) = (n for n in wheel_names(path) if n.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(path) as archive:
        return email.parser.Parser().parsestr(archive.read(name).decode())


def test_a_wheel_installs_nothing_but_groupstorm_at_the_top_level(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in wheel_names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"groupstorm"}


def test_a_wheel_carries_every_file_of_the_package(wheel: Path) -> None:
    """Presets, `py.typed` and whatever else is no Python file included; nothing that is not there."""
    here = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel_names(wheel) if name.startswith("groupstorm/")}
    assert packed == here
    assert "groupstorm/py.typed" in packed
    assert any(name.startswith("groupstorm/storms/presets/") and name.endswith(".yaml") for name in packed)


def test_a_wheel_says_what_it_is(wheel: Path) -> None:
    metadata = wheel_metadata(wheel)
    assert metadata["Name"] == "groupstorm"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"spark", "kafka", "speed"} <= set(metadata.get_all("Provides-Extra", []))
    license_file = next(name for name in wheel_names(wheel) if name.endswith("/licenses/LICENSE"))
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(license_file) == (ROOT / "LICENSE").read_bytes()


def test_the_command_runs_from_an_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    """Away from the checkout, with the entry point that an installation would make."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (entry_points,) = tmp_path.glob("*.dist-info/entry_points.txt")
    assert "groupstorm = groupstorm.cli.app:main" in entry_points.read_text("utf-8")
    assert "[pytest11]\ngroupstorm = groupstorm.pytest_plugin" in entry_points.read_text("utf-8")
    code = (
        "import sys; sys.argv = ['groupstorm', '--version']; from groupstorm.cli import app; "
        "print(app.__file__); app.main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    answer = run_process(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    loaded_from, version = answer.stdout.splitlines()
    assert Path(loaded_from).is_relative_to(tmp_path)
    assert version == f"groupstorm {wheel_metadata(wheel)['Version']}"


# --- rooms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", ["assignors", "coordinator", "clients"])
def test_the_root_keeps_the_designs_rooms_as_relative_links(room: str) -> None:
    link = ROOT / room
    assert link.is_symlink()
    assert os.readlink(link) == f"groupstorm/{room}"
    assert link.resolve() == PACKAGE / room


def test_every_folder_with_python_is_a_package() -> None:
    """import-linter does not see into a folder without `__init__.py`: the rules would not hold there."""
    folders = {path.parent for root in (PACKAGE, ROOT / "tools") for path in root.rglob("*.py")}
    assert [
        str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()
    ] == []


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip(
        "importlinter", reason="checks the imports: pip install import-linter, or use ./dev test"
    )
    return run_process(
        [
            sys.executable,
            "-c",
            "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_rooms_import_only_what_stands_left_of_them() -> None:
    answer = lint_imports(ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr


#: A folder of the package, an import that breaks a rule there, and the rule.
BREAKING = [
    ("assignors", "import groupstorm.storms", "Rooms import only"),
    ("trace", "import groupstorm.coordinator", "Rooms import only"),
    ("clients", "from groupstorm.cli import app", "Rooms import only"),
    ("clients", "import groupstorm.testing", "Rooms import only"),
    ("testing", "import groupstorm.cli", "Rooms import only"),
    ("coordinator", "import groupstorm.broker.config", "Rooms import only"),
    ("protocol", "import groupstorm.coordinator.errors", "Rooms import only"),
    ("figures", "import groupstorm.verdicts.comparison", "Rooms import only"),
    ("history", "import groupstorm.figures.table", "Rooms import only"),
    ("coordinator", "import groupstorm.assignors.consumer", "the members assign"),
    ("coordinator", "import time", "Decisions take"),
    ("coordinator", "from asyncio import sleep", "Decisions take"),
    ("assignors", "import random", "Decisions take"),
    ("figures", "import time", "Decisions take"),
    ("history", "import time", "Decisions take"),
    ("clients", "import groupstorm.broker.shell", "only to start one"),
    ("storms", "import random", "draw by counter"),
    ("cli", "import tools.fuzz", "stands alone"),
    ("testing", "from tests.command import tool", "stands alone"),
]


@pytest.mark.slow
def test_the_import_rules_catch_imports_that_break_them(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "groupstorm", ignore=shutil.ignore_patterns("__pycache__"))
    for number, (folder, statement, _) in enumerate(BREAKING):
        (tmp_path / "groupstorm" / folder / f"added{number}.py").write_text(f"{statement}\n")
    answer = lint_imports(tmp_path)
    assert answer.returncode == 1
    sections = re.split(
        r"^(.+)\n---+\n", answer.stdout.partition("Broken contracts\n")[2], flags=re.MULTILINE
    )
    for number, (folder, statement, contract) in enumerate(BREAKING):
        told = [
            rule
            for rule, lines in zip(sections[1::2], sections[2::2], strict=True)
            if f" groupstorm.{folder}.added{number} -> " in lines
        ]
        assert [contract in rule for rule in told] == [True], f"{folder}: {statement}: {told}"


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for type checkers count: whoever reads one file of a circle has to read them all."""
    grimp = pytest.importorskip("grimp", reason="reads the imports: pip install import-linter")
    networkx = pytest.importorskip("networkx", reason="finds circles: pip install networkx")
    modules = grimp.build_graph("groupstorm", "tools", cache_dir=None)
    imports = networkx.DiGraph(
        (module, imported)
        for module in modules.modules
        for imported in modules.find_modules_directly_imported_by(module)
    )
    circles = [sorted(part) for part in networkx.strongly_connected_components(imports) if len(part) > 1]
    assert circles == []


# --- locked versions -------------------------------------------------------------------------------


def lock_files() -> dict[str, list[Requirement]]:
    """The requirements that `./dev` installs one lock file from: an extra (with the base), or a group."""
    base = PYPROJECT["project"]["dependencies"]
    files = {"base": base}
    extras = PYPROJECT["project"]["optional-dependencies"]
    files |= {name: base + listed for name, listed in extras.items()}
    files |= PYPROJECT["dependency-groups"]
    return {name: [Requirement(line) for line in listed] for name, listed in files.items()}


def pinned(name: str) -> dict[str, set[str]]:
    """Package -> versions (several where markers choose) of one file of `requirements/`."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    pins: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9-]+)==([^ ;\\\n]+)", text, re.MULTILINE):
        pins.setdefault(package, set()).add(version)
    return pins


@pytest.mark.parametrize("name", sorted(lock_files()))
def test_a_lock_file_pins_what_the_project_asks_for(name: str) -> None:
    pins = pinned(name)
    for requirement in lock_files()[name]:
        if requirement.name == "groupstorm":
            for extra in requirement.extras:
                assert pinned(extra).items() <= pins.items()
            continue
        versions = pins[requirement.name.lower()]
        assert all(requirement.specifier.contains(version) for version in versions), requirement
    everything = pinned("all")
    assert all(versions <= everything[package] for package, versions in pins.items()), "run ./dev lock"


@pytest.mark.parametrize("name", sorted(lock_files()))
def test_a_lock_file_has_hashes_and_names_no_host(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    assert "://" not in text
    for block in re.split(r"\n(?=[a-z0-9])", text)[1:]:
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_the_wheel_is_built_with_one_version_of_hatchling() -> None:
    (requirement,) = PYPROJECT["build-system"]["requires"]
    assert requirement in PYPROJECT["dependency-groups"]["test"]


def test_compiled_wheels_are_built_for_every_python_that_the_project_names() -> None:
    prefix = "Programming Language :: Python :: 3."
    minors = [
        line.removeprefix(prefix) for line in PYPROJECT["project"]["classifiers"] if line.startswith(prefix)
    ]
    builds = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert builds == [f"cp3{minor}-manylinux_x86_64" for minor in minors]


# --- types -----------------------------------------------------------------------------------------


def imported_modules(path: Path) -> set[str]:
    """The absolute names that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module))
    return names


@pytest.mark.slow
def test_mypy_gives_the_same_answer_without_the_optional_packages() -> None:
    """`./dev lint` installs two lock files: a package outside of them has to count as untyped."""
    pytest.importorskip("mypy", reason="asks which packages the set `lint` installs: run ./dev lint once")
    options = PYPROJECT["tool"]["mypy"]
    roots = [ROOT / name for name in options["files"]]
    files = [file for root in roots for file in ([root] if root.suffix else root.rglob("*.py"))]
    own = {root.stem for root in roots} | {file.stem for file in files if ROOT / "examples" in file.parents}
    (untyped,) = (table["module"] for table in options["overrides"] if table.get("ignore_missing_imports"))
    patterns = tuple(pattern.removesuffix(".*") for pattern in untyped)
    installed = pinned("base").keys() | pinned("lint").keys()
    distributions = importlib.metadata.packages_distributions()

    def is_known(module: str) -> bool:
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names or top in own:
            return True
        if any(module == pattern or module.startswith(f"{pattern}.") for pattern in patterns):
            return True
        return any(re.sub(r"[-_.]+", "-", name).lower() in installed for name in distributions.get(top, ()))

    unknown = {
        module: file.relative_to(ROOT).as_posix()
        for file in files
        for module in imported_modules(file)
        if not is_known(module)
    }
    assert unknown == {}, "list it under mypy's overrides in pyproject.toml"


# --- documents -------------------------------------------------------------------------------------

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def links(page: Path) -> list[str]:
    """Targets of a page's links, without those of other hosts; code blocks and spans hold none."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "code", text)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page get on GitHub."""
    headings = re.findall(r"^#+ +(.+?) *$", page.read_text("utf-8"), re.MULTILINE)
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return set(slugs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name}: {target}"
        assert linked.is_relative_to(ROOT), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page.name}: {target}"


def test_files_that_hold_a_rule_are_there() -> None:
    text = (ROOT / "docs" / "development.md").read_text("utf-8")
    table = text.partition("## Where a rule stands")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", table)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "groupstorm" / name).exists()] == []


def test_every_page_of_the_documentation_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = {(page.parent / target.partition("#")[0]).resolve() for target in links(page)}
        waiting += [path for path in targets - reached if path.suffix == ".md" and path.is_file()]
    assert set(PAGES) <= reached
