"""The pages of questions that people search for: their answers are what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import groupstorm
from tests.generated_pages import DOCS, check_section

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parent / "imports" / "logs" / "real" / "kafka-4.4.0-java"

QUESTIONS = {
    "static-membership-cost": "compare deploy-and-crash --variant cooperative --variant static"
    " --set members=8 --set partitions=24 --seeds 3",
    "cooperative-or-eager": "compare rolling-deploy --variant eager --variant cooperative"
    " --set members=12 --set partitions=48 --seeds 3",
    "session-timeout-and-gc-pauses": "sweep deploy-and-crash --over session.timeout.ms=6s,10s,20s,45s"
    " --set members=8 --set partitions=24 --set 'gc_pause_ms={p50: 3s, p95: 12s}' --set gc_interval_ms=60s"
    " --seeds 3",
    "streams-storms": "compare stateful-warmup --variant shipped --variant streams --set topics=1 --seeds 1",
    "migrate-to-kip-848": "compare migrate-to-consumer-protocol"
    " --variant cooperative --variant user-data --variant user-data-left-first"
    " --set members=6 --set partitions=24 --seeds 3",
}


def shown(command: str, folder: Path) -> str:
    """The command and its answer, without the table of all figures and the names of files."""
    done = groupstorm(*shlex.split(command), cwd=folder, GROUPSTORM_COMMAND="groupstorm")
    assert done.returncode == 0, done.stderr
    answer = re.split(r"\n\n(?=[\w-]+, seeds? )|\nIts story: |\n\nAll figures", done.stdout)[0]
    return f"```\n$ groupstorm {command}\n{answer.strip()}\n```"


@pytest.mark.parametrize("page", QUESTIONS)
def test_a_page_shows_what_its_command_answers(page: str, tmp_path: Path) -> None:
    """GROUPSTORM_REWRITE=1 writes it anew."""
    check_section(f"{page}.md", "answer", shown(QUESTIONS[page], tmp_path))


def test_the_page_of_a_log_shows_what_is_explained(tmp_path: Path) -> None:
    for name in ("app-0", "app-1", "app-2", "server-1", "server-2"):
        (tmp_path / f"{name}.log.gz").write_bytes((RECORDED / f"{name}.log.gz").read_bytes())
    logs = sorted(file.name for file in tmp_path.iterdir())
    imported = groupstorm("import", *logs, "--out", "incident", cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    explained = groupstorm(
        "explain", "incident", "--group", "orders-dynamic", cwd=tmp_path, GROUPSTORM_COMMAND="groupstorm"
    )
    assert explained.returncode == 0, explained.stderr
    command = (
        "$ groupstorm import *.log.gz --out incident && groupstorm explain incident --group orders-dynamic"
    )
    answer = explained.stdout.split("\n\n2. ")[0].strip()
    check_section("why-did-my-group-rebalance.md", "answer", f"```\n{command}\n{answer}\n```")


def test_the_file_of_the_page_about_tests_passes_as_it_stands(tmp_path: Path) -> None:
    pytest.importorskip("aiokafka", reason="needs the kafka set: ./dev test installs it")
    text = (DOCS / "test-a-consumer-without-kafka.md").read_text("utf-8").partition("<!-- file -->")[2]
    (file,) = re.findall(r"```python\n(.*?)```", text.partition("<!-- /file -->")[0], re.DOTALL)
    (tmp_path / "test_billing.py").write_text(file, "utf-8")
    plugin = ["-p", "groupstorm.pytest_plugin", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, "test_billing.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(DOCS.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout
