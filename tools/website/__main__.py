"""`./dev site`: stage the pages, vendor what the playground loads, build with warnings as errors."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from groupstorm.cli.printing import print_line, print_lines_aside
from groupstorm.problems import InputError
from groupstorm.storms.scenario.preset_files import preset_summaries
from tools.command import run_tool
from tools.website.pages import stage_pages, stage_playground

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "website" / "mkdocs.yml"


def build_site(
    out: Annotated[Path, typer.Option("--out", help="The folder of the site; it is made anew.")] = ROOT
    / "build/site",
    quick: Annotated[
        bool, typer.Option("--quick", help="Only rolling-deploy has its answer on its page.")
    ] = False,
) -> None:
    """Build the site: guides, presets, results and the playground. Needs npm for the playground's Python."""
    presets = ["rolling-deploy"] if quick else [name for name, _, _ in preset_summaries()]
    with tempfile.TemporaryDirectory(prefix="groupstorm-site-") as temporary:
        pages = Path(temporary) / "pages"
        stage_pages(ROOT, pages, presets)
        stage_playground(ROOT, pages / "playground")
        built = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "-f", CONFIGURATION, "--site-dir", out.absolute()],
            env={**os.environ, "GROUPSTORM_SITE_PAGES": str(pages), "NO_MKDOCS_2_WARNING": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if built.returncode:
        found = [line for line in built.stderr.splitlines() if line.startswith(("WARNING", "ERROR"))]
        print_lines_aside("\n".join(found) or built.stderr.strip())
        raise InputError("the site is not built: mend what is named above")
    print_line(f"{out}: python -m http.server --bind 127.0.0.1 --directory {out} shows it")


if __name__ == "__main__":
    run_tool("site", build_site)
