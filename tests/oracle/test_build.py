"""Finding Java and Maven, and saying what is missing. Nothing is built here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.oracle import build as building
from tests.oracle.build import OracleBroke, OracleUnavailable, build, find_java
from tests.oracle.command import main

#: What `java -XshowSettings:properties -version` prints, as far as it is read.
_JAVA = """\
#!/bin/sh
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""

#: A Maven that writes down its arguments, makes what a build makes, and can be told to fail.
_MAVEN = """\
#!/bin/sh
echo "$@" >>{log}
if [ -n "$FAKE_MAVEN" ]; then echo "$FAKE_MAVEN"; exit 1; fi
for argument; do
    case $argument in
        -Doracle.build=*) mkdir -p "${{argument#*=}}/classes" ;;
        -Doracle.lib=*) lib=${{argument#*=}} ;;
        -Dmdep.skip=false) mkdir -p "$lib" ;;
    esac
done
"""


def _install(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on its path but a shell; its JDK would be in `jdk`."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "mkdir", "echo"):
        (tmp_path / "bin" / tool).symlink_to(f"/bin/{tool}")
    return tmp_path


def _give_java(machine: Path, version: int) -> None:
    home = machine / "jdk"
    _install(home / "bin" / "java", _JAVA.format(home=home, version=version))
    _install(home / "bin" / "javac", "#!/bin/sh\n")
    (machine / "bin" / "java").symlink_to(home / "bin" / "java")


def _give_maven(machine: Path) -> Path:
    log = machine / "maven.log"
    _install(machine / "bin" / "mvn", _MAVEN.format(log=log))
    return log


def test_a_machine_without_java_is_told_what_to_install(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["coordinator", "--count", "1"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("oracle: no java was found: install a JDK of version 17 or newer")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_an_old_java_is_named(machine: Path) -> None:
    _give_java(machine, 11)
    with pytest.raises(OracleUnavailable, match=r"java is Java 11: install a JDK of version 17"):
        find_java()


def test_a_machine_without_maven_is_told_what_to_install(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _give_java(machine, 17)
    with pytest.raises(OracleUnavailable, match="Maven was not found: install it"):
        build(machine / "cache")
    assert not (machine / "cache").exists()


def test_it_is_built_once_for_one_content(
    machine: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path_factory.mktemp("sources")
    (sources / "src").mkdir()
    (sources / "pom.xml").write_text("<project/>")
    java = sources / "src" / "A.java"
    java.write_text("class A {}")
    monkeypatch.setattr(building, "SOURCES", sources)
    _give_java(machine, 17)
    log = _give_maven(machine)
    cache = machine / "cache"

    first = build(cache)
    assert build(cache) == first
    assert len(log.read_text().splitlines()) == 1
    classes, jars = first.classpath.split(os.pathsep)
    assert Path(classes).is_dir()
    assert Path(jars).parent.is_dir()

    java.write_text("class A { int changed; }")
    second = build(cache)
    assert second.classpath != first.classpath
    assert second.classpath.split(os.pathsep)[1] == jars, "Kafka's jars are fetched for a pom.xml once"
    assert "-Dmdep.skip=true" in log.read_text().splitlines()[1]
    assert sorted(path.name.partition("-")[0] for path in cache.iterdir()) == ["classes", "classes", "lib"]


@pytest.mark.parametrize(
    ("printed", "kind", "said"),
    [
        ("[ERROR] Could not transfer artifact org.apache.kafka:x", OracleUnavailable,
         "it reaches no repository"),
        ("[INFO] so\n[ERROR] A.java:[1,2] not a statement\n[ERROR] more", OracleBroke,
         r"A.java:\[1,2\] not a statement$"),
    ],
)  # fmt: skip
def test_a_failed_build_is_explained_in_one_line(
    machine: Path, monkeypatch: pytest.MonkeyPatch, printed: str, kind: type[Exception], said: str
) -> None:
    """Tests are skipped where Maven is not or reaches nothing, and fail if our own Java does not compile."""
    _give_java(machine, 17)
    _give_maven(machine)
    monkeypatch.setenv("FAKE_MAVEN", printed)
    with pytest.raises(kind, match=said) as caught:
        build(machine / "cache")
    assert "\n" not in str(caught.value)
    assert list((machine / "cache").iterdir()) == [], "nothing half-built is left"
