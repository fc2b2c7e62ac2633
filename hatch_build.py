"""Compiles the modules that storms spend their time in, with mypyc (a C compiler and a minute or two).

    HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 pip install .     an installation with compiled modules
    ./dev compile                                      a compiled copy of this checkout, for the benchmarks

Everything runs without it, and gives the same traces; without the variable wheels are pure Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "groupstorm"

#: What a storm of consumers runs at every step, and the leader's side of the assignors. Measured: what is
#: not here is seldom called, or spends its time in libraries.
COMPILED = (
    "assignors/consumer/claims",
    "assignors/consumer/constrained",
    "assignors/leader/assignment",
    "assignors/server/uniform",
    "assignors/userdata/consumer_protocol",
    "assignors/userdata/sticky",
    "assignors/userdata/wire",
    "clients/consumer_group/heartbeating",
    "clients/consumer_group/member",
    "clients/consumer_group/membership",
    "clients/consumer_group/reconciling",
    "clients/consumer_group/timing",
    "clients/leadership",
    "clients/member_session",
    "clients/membership",
    "clients/requests",
    "clients/streams/group_member",
    "coordinator/changes",
    "coordinator/classic/changes",
    "coordinator/classic/group",
    "coordinator/classic/joins",
    "coordinator/classic/rebalances",
    "coordinator/classic/sessions",
    "coordinator/classic/states",
    "coordinator/consumer/group",
    "coordinator/consumer/heartbeats",
    "coordinator/consumer/migration",
    "coordinator/consumer/subscriptions",
    "coordinator/consumer/targets",
    "coordinator/coordinator",
    "coordinator/dispatch",
    "coordinator/effects",
    "coordinator/errors",
    "coordinator/failures",
    "coordinator/long_work",
    "coordinator/modern/group",
    "coordinator/modern/membership",
    "coordinator/modern/subscribed",
    "coordinator/offset_requests",
    "coordinator/offsets",
    "coordinator/shard",
    "coordinator/share/group",
    "coordinator/simulated",
    "coordinator/streams/group",
    "coordinator/timers",
    "coordinator/topics",
    "coordinator/writes",
    "figures/accumulator",
    "history/causes",
    "history/frontier",
    "history/gaps",
    "history/group_sums",
    "history/lag",
    "history/ownership",
    "history/records",
    "history/rounds",
    "history/row_rules",
    "history/settling",
    "javahash",
    "pipeline/group_tables",
    "pipeline/trace_fold",
    "share_records/acknowledgement",
    "share_records/acquisition",
    "share_records/broker",
    "share_records/coordinator",
    "share_records/fetches",
    "share_records/in_flight",
    "share_records/messages",
    "share_records/partition",
    "share_records/ports",
    "share_records/sessions",
    "share_records/states",
    "share_records/timers",
    "storms/checks/commits",
    "storms/checks/figure_checks",
    "storms/checks/invariants",
    "storms/checks/membership",
    "storms/checks/ownership",
    "storms/checks/states",
    "storms/checks/verdicts",
    "storms/records/logs",
    "storms/records/positions",
    "storms/scenario/randomness",
    "storms/share/consumer",
    "storms/share/leader",
    "storms/share/log",
    "storms/share/work",
    "storms/streams/application",
    "storms/streams/protocol_threads",
    "storms/streams/thread",
    "storms/world/application_polls",
    "storms/world/batches",
    "storms/world/broker",
    "storms/world/clock",
    "storms/world/connection",
    "storms/world/consumer",
    "storms/world/consumer_group/network_thread",
    "storms/world/consumer_group/process",
    "storms/world/consumer_group/quiet_heartbeats",
    "storms/world/disturbances",
    "storms/world/environment",
    "storms/world/looks",
    "storms/world/periodic_requests/schedule",
    "storms/world/periodic_requests/requests",
    "storms/world/periodic_requests/series",
    "storms/world/poll_loop",
    "storms/world/process",
    "storms/world/rebalance_callbacks",
    "storms/world/record_times",
    "storms/world/topics",
    "trace/parquet",
    "trace/writer",
    "turns",
)

# Tests set MYPYC_OPT_LEVEL=0: the compiler takes a fraction of the time, and the modules do the same.
_SETUP = """
import os

from mypyc.build import mypycify
from setuptools import setup

options = ["--ignore-missing-imports", "--follow-imports=silent"]
level = os.environ.get("MYPYC_OPT_LEVEL", "3")
modules = mypycify([*options, *{files!r}], group_name={package!r}, opt_level=level, debug_level="0")
if os.name == "posix":
    # gcc's looks for warnings take four fifths of its time: mypyc indents lines by up to a thousand columns.
    for module in modules:
        module.extra_compile_args.append("-Wno-all")
setup(name={package!r}, packages=[], ext_modules=modules)
"""


class CompileFailed(Exception):
    """It cannot be done, or mypyc or the C compiler did not do it; the text says why."""


def missing() -> str | None:
    """What stands in the way, with its remedy; None where nothing does."""
    for module in ("mypyc", "setuptools"):
        if find_spec(module) is None:
            return f"{module} is missing: pip install mypy setuptools, or use ./dev compile"
    compiler = str(sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler {compiler} (Debian and Ubuntu: apt install gcc)"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "the headers of this Python are missing (Debian and Ubuntu: apt install python3-dev)"
    return None


def compile_into(source: Path, folder: Path) -> list[Path]:
    """Copy the package into ``folder`` and compile there. Returns the libraries, relative to ``folder``.

    Raises CompileFailed.
    """
    if (obstacle := missing()) is not None:
        raise CompileFailed(obstacle)
    shutil.copytree(source / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    files = [f"{PACKAGE}/{module}.py" for module in COMPILED]
    (folder / "setup.py").write_text(_SETUP.format(files=files, package=PACKAGE), encoding="utf-8")
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileFailed(done.stdout + done.stderr)
    for leftover in ("build", ".mypy_cache"):
        shutil.rmtree(folder / leftover, ignore_errors=True)
    (folder / "setup.py").unlink()
    return sorted(path.relative_to(folder) for path in folder.rglob("*.so"))


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel; their sources stay in it beside them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        temporary = TemporaryDirectory(prefix="groupstorm-compile-")
        folder = Path(temporary.name)
        self._temporary = temporary  # until the wheel is written
        for library in compile_into(Path(self.root), folder):
            build_data["force_include"][str(folder / library)] = str(library)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        del version, build_data, artifact_path
        self._temporary.cleanup()


def main() -> None:
    """``python hatch_build.py FOLDER``: a compiled copy of the package, put there whole or not at all."""
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"compiling {len(COMPILED)} modules, which takes a minute or two", flush=True)
    with TemporaryDirectory(prefix=".compile-", dir=target.parent) as temporary:
        folder = Path(temporary) / "compiled"
        folder.mkdir()
        try:
            libraries = compile_into(Path(__file__).parent, folder)
        except CompileFailed as failed:
            sys.exit(f"compile: {failed}")
        shutil.rmtree(target, ignore_errors=True)
        folder.replace(target)
    print(f"{len(libraries)} libraries; use them: PYTHONPATH={target} python -P -m groupstorm ...")


if __name__ == "__main__":
    main()
