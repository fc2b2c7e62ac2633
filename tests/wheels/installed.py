"""Does an installed groupstorm give the same trace as this checkout? A script of the standard library alone.

`./dev wheels` and cibuildwheel run it with the Python that a wheel has been installed for.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]

_STORM = ("run", "rolling-deploy", "--seed", "5", "--set", "members=4", "--set", "partitions=8")
_WHERE = (
    "import groupstorm, groupstorm.storms.world.clock as clock; print(groupstorm.__file__, clock.__file__)"
)


def trace_hash(folder: Path, checkout: Path | None) -> str:
    """Return the hash of a small preset's trace, run with the installed package, or with the one in
    ``checkout``."""
    _python("-m", "groupstorm", *_STORM, "--out", str(folder), cwd=folder.parent, checkout=checkout)
    return hashlib.sha256((folder / "trace.jsonl").read_bytes()).hexdigest()


def _python(*arguments: str, cwd: Path, checkout: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout)
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def main() -> None:
    with TemporaryDirectory(prefix="groupstorm-wheel-") as temporary:
        folder = Path(temporary)
        package, clock = _python("-c", _WHERE, cwd=folder).split()
        if Path(package).is_relative_to(ROOT / "groupstorm"):
            sys.exit(f"{package} is the checkout's: install the wheel with {sys.executable}")
        installed, ours = trace_hash(folder / "installed", None), trace_hash(folder / "checkout", ROOT)
    if installed != ours:
        sys.exit(f"{Path(package).parent} gives another trace ({installed}) than {ROOT} ({ours})")
    kind = "pure Python" if clock.endswith(".py") else "compiled modules"
    print(f"{kind}: the trace of {_STORM[1]} is the checkout's: {installed[:16]}")


if __name__ == "__main__":
    main()
