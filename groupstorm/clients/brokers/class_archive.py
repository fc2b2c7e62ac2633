"""Quick starts of JVMs on Kafka's jars: options for short lives, and an archive of loaded classes.

With an archive (AppCDS, as in Kafka's own container image) a broker starts in a third of the CPU time. The
first broker of each release and Java writes it as it ends; a JVM that cannot use it does without.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

#: The second compiler does not earn back in minutes what it costs. The JVM says nothing of archives, which it
#: would do on standard output.
_SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:cds*=off")


def quick_start(java: Path, jars: Path) -> Sequence[str]:
    """Options of Java for a class path that begins with all of ``jars``, as `kafka_classpath` has it."""
    archive = _archive(java, jars)
    return (*_SHORT_LIVED, f"-XX:SharedArchiveFile={archive}") if archive.is_file() else _SHORT_LIVED


def kafka_classpath(jars: Path, *behind: Path) -> str:
    """The class path of a program on Kafka's ``jars``; an archive fits one that begins as the broker's."""
    return os.pathsep.join([f"{jars}{os.sep}*", *map(str, behind)])


def archiving(java: Path, jars: Path, written: Path) -> Sequence[str]:
    """Options for a broker that writes its archive into ``written`` as it ends; none if there is one.

    A Java without an archive of its own classes would not start with them.
    """
    of_java = java.resolve().parents[1] / "lib" / "server" / "classes.jsa"
    is_due = of_java.is_file() and not _archive(java, jars).is_file()
    return (f"-XX:ArchiveClassesAtExit={written}",) if is_due else ()


def keep_archive(java: Path, jars: Path, written: Path) -> None:
    """Move what a broker has written to its place, whole or not at all: a JVM breaks on half an archive."""
    archive = _archive(java, jars)
    with suppress(OSError), tempfile.TemporaryDirectory(dir=archive.parent) as folder:  # without it all works
        beside = Path(folder, archive.name)
        with written.open("rb") as source, beside.open("wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        beside.replace(archive)


def _archive(java: Path, jars: Path) -> Path:
    """One for each build of Java: an archive fits only the one that wrote it."""
    build = java.resolve()
    known_by = f"{build}:{build.stat().st_mtime_ns}".encode()
    return jars.with_name(f"{jars.name}-{zlib.crc32(known_by):08x}.jsa")
